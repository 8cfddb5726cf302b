"""The checks, checked: every wrong answer gets its diagnosis, every right one passes, on the check's inputs and on others."""

import pkgutil
from importlib import import_module

import pytest
import torch

import companion.checks
from companion.checks import exercise as machinery
from companion.checks.exercise import Exercise, Mistake, NotAttempted

TOPICS = [module.name for module in pkgutil.iter_modules(companion.checks.__path__) if module.name != "exercise"]
EXERCISES = {
    (topic, name): value
    for topic in TOPICS
    for name, value in vars(import_module(f"companion.checks.{topic}")).items()
    if isinstance(value, Exercise)
}
CASES = {(topic, name): cases for topic in TOPICS for name, cases in import_module(f"wrong_answers.{topic}").CASES.items()}
EACH = [
    pytest.param(EXERCISES[key], case, id=f"{key[1]}-{'right' if case.message is None else case.message}")
    for key, cases in CASES.items()
    for case in cases
]
SEEDS = (machinery.CHECK_SEEDS, machinery.GRADE_SEEDS, range(50, 60))


def compiled(exercise, source):
    """The function as a cell would define it, decorated."""
    namespace = {"torch": torch}
    exec(source, namespace)
    return exercise(namespace[exercise.name])


@pytest.mark.parametrize("exercise, case", EACH)
@pytest.mark.parametrize("seeds", SEEDS, ids=["check", "grade", "others"])
def test_each_answer_gets_what_it_deserves(exercise, case, seeds, monkeypatch):
    monkeypatch.setattr(machinery, "GRADE_SEEDS", seeds)
    answer = compiled(exercise, case.source)
    if case.message is None:
        exercise.grade(answer)
    else:
        with pytest.raises(Mistake) as caught:
            exercise.grade(answer)
        assert case.message in str(caught.value)
        assert not isinstance(caught.value, NotAttempted)


@pytest.mark.parametrize("key", EXERCISES, ids="-".join)
def test_every_exercise_has_at_least_five_wrong_answers_and_three_right_ones(key):
    messages = [case.message for case in CASES[key]]
    assert sum(message is None for message in messages) >= 3
    assert len({message for message in messages if message}) >= 5


@pytest.mark.parametrize("key", EXERCISES, ids="-".join)
def test_no_diagnosis_hides_another(key):
    exercise = EXERCISES[key]
    for diagnosis, wrong in exercise.mistakes.items():
        with pytest.raises(Mistake) as caught:
            exercise.check(lambda *arguments, wrong=wrong: wrong(*arguments))
        assert diagnosis in str(caught.value)


@pytest.mark.parametrize("key", EXERCISES, ids="-".join)
def test_a_stub_is_not_attempted_and_gets_no_points(key, capsys):
    exercise = EXERCISES[key]
    stub = compiled(exercise, f"def {exercise.name}(*arguments):\n    raise NotImplementedError  # your code here")
    exercise.check(stub)
    assert capsys.readouterr().out == f"{exercise.name}: not attempted\n"
    with pytest.raises(NotAttempted):
        exercise.grade(stub)
