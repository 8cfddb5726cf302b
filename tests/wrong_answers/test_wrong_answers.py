"""The checks, checked: every wrong answer gets its diagnosis, every right one passes, on the check's inputs and on
others.
"""

import functools

import jaxtyping
import pytest
import torch
from wrong_answers.cases import CASES, EXERCISES, compiled

from companion.lesson import exercise as machinery
from companion.lesson.exercise import Exercise, Mistake, NotAttempted
from companion.lesson.mistakes import Mistakes, topic_rows
from companion.lesson.near_misses.families import family
from companion.lesson.summit import Summit

EACH = [
    pytest.param(EXERCISES[key], case, id=f"{'-'.join(key)}-{'right' if case.message is None else case.message}")
    for key, cases in CASES.items()
    for case in cases
]
QUICK = [each for each in EACH if not isinstance(each.values[0], Summit)]  # a summit trains, for seconds
EVERY = pytest.mark.parametrize(
    "exercise", [pytest.param(exercise, id="-".join(key)) for key, exercise in EXERCISES.items()]
)
COMPARED = pytest.mark.parametrize(
    "exercise",
    [
        pytest.param(exercise, id="-".join(key))
        for key, exercise in EXERCISES.items()
        if not isinstance(exercise, Summit)
    ],
)
# The seeds of `check`, of `grade`, and twenty more: luck with one set of inputs must not decide
SEEDS = [machinery.CHECK_SEEDS, machinery.GRADE_SEEDS, *(range(start, start + 5) for start in range(50, 70, 5))]


@pytest.fixture
def near_misses_silenced(monkeypatch):
    """Nothing is looked for among the near misses, which would take its time; the calls in vain are kept."""
    calls = []
    monkeypatch.setattr(Exercise, "_near_miss", lambda *inputs: calls.append(inputs))
    return calls


@pytest.fixture(autouse=True)
def inputs_drawn_once(monkeypatch):
    """Each exercise's inputs of a seed are drawn once for all answers: whoever calls an answer hands it a copy."""
    monkeypatch.setattr(Exercise, "_drawn", drawn)


@pytest.fixture(autouse=True)
def no_advice_told_yet(monkeypatch):
    """Each answer gets the advice that a notebook gets once."""
    monkeypatch.setattr(machinery, "told_once", set())


@pytest.mark.parametrize("exercise, case", EACH)
def test_each_answer_gets_what_it_deserves(exercise, case, monkeypatch, capsys):
    if case.message and not foreseen(exercise, case) and not isinstance(exercise, Summit):
        make_near_misses(exercise, monkeypatch)  # on a slow machine, too
    gets_what_it_deserves(exercise, case, capsys)


@pytest.mark.types_unchecked
@pytest.mark.parametrize("exercise, case", QUICK)
def test_each_answer_gets_it_on_other_inputs(exercise, case, monkeypatch, capsys, near_misses_silenced):
    """Only what near misses name is not named again, but still rejected."""
    for seeds in SEEDS[1:]:
        monkeypatch.setattr(machinery, "CHECK_SEEDS", seeds)
        near_misses_silenced.clear()
        machinery.told_once.clear()
        torch.default_generator.manual_seed(0)  # for an answer that draws from it
        try:
            gets_what_it_deserves(exercise, case, capsys, near_misses_silenced)
        except BaseException as failure:
            failure.add_note(f"on the inputs of {seeds}")
            raise


def make_near_misses(exercise, monkeypatch):
    """All single ones, without checks of types, which `tests/lesson/test_near_misses.py` has."""
    with monkeypatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        assert family(exercise).singles


def foreseen(exercise, case):
    return any(case.message in said for said in exercise.mistakes)


def gets_what_it_deserves(exercise, case, capsys, silenced=()):
    answer = compiled(exercise, case.source)
    if case.message is None:
        exercise.check(answer)
        first, *advice = " ".join(capsys.readouterr().out.split()).split(" Advice: ")  # lines break between words
        assert first == f"{exercise.name}: correct" + (f": {exercise.now}" if exercise.now else "")
        told = "".join(advice)
        assert case.advice in told and bool(case.advice) == bool(told), f"write it behind the answer (cases.py): {told}"
    else:
        with pytest.raises(Mistake) as caught:
            exercise.check(answer)
        assert str(caught.value).startswith(f"{exercise.name}: ")
        assert case.message in str(caught.value) or (silenced and not foreseen(exercise, case))
        assert not isinstance(caught.value, NotAttempted)


@pytest.mark.types_unchecked
@pytest.mark.parametrize("exercise, case", EACH)
def test_the_grade_agrees(exercise, case, monkeypatch):
    monkeypatch.setattr(Exercise, "_searched", lambda *search: None)  # whether it is right, not why
    answer = compiled(exercise, case.source)
    if case.message is None:
        exercise.grade(answer)
    else:
        with pytest.raises(Mistake):
            exercise.grade(answer)


@pytest.mark.weekly
@pytest.mark.types_unchecked
@pytest.mark.parametrize("exercise, case", [each for each in EACH if each.values[1].message is None])
def test_hardly_a_secret_refuses_a_right_answer(exercise, case):
    """What the seeds of an instructor may draw. A summit's answer trains, and may fail on one draw of twenty: the
    grader refuses what fails on three.
    """
    draws, allowed = (20, 1) if isinstance(exercise, Summit) else (300, 0)
    answer, refused = compiled(exercise, case.source), []
    for seed in range(10**9, 10**9 + draws):
        try:
            exercise.grade(answer, [seed])
        except Mistake as mistake:
            refused.append((seed, str(mistake)))
    assert len(refused) <= allowed, refused


def test_there_are_answers_for_every_exercise_and_no_other():
    assert CASES.keys() == EXERCISES.keys()


@pytest.mark.parametrize("key", EXERCISES, ids="-".join)
def test_every_exercise_has_at_least_five_wrong_answers_and_three_right_ones(key):
    messages = [case.message for case in CASES[key]]
    assert sum(message is None for message in messages) >= 3, "write three right answers"
    assert len({message for message in messages if message}) >= 5, "write wrong answers with five different messages"
    assert len({case.source for case in CASES[key]}) == len(messages)


@pytest.mark.parametrize("key", EXERCISES, ids="-".join)
def test_every_diagnosis_is_one_that_a_written_answer_gets(key):
    messages = [case.message for case in CASES[key] if case.message]
    mistakes = EXERCISES[key].mistakes
    without = [diagnosis for diagnosis in mistakes if not any(message in diagnosis for message in messages)]
    assert not without, "write a wrong answer that gets it, into the topic's table beside this file"


def test_every_row_of_a_mistake_belongs_to_an_exercise():
    for topic in {topic for topic, _ in EXERCISES}:
        assert {(topic, name) for name in topic_rows(f"companion.topics.{topic}")} <= EXERCISES.keys()


@pytest.mark.parametrize(
    "row, times", [(["M @ S @ N", "S"], 0), (["M", "S"], 3), (["2 * M", "M", "M @ S", "S", "2 * M", ""], 0)]
)
def test_a_mistake_whose_old_part_does_not_occur_exactly_once_is_refused_by_name(row, times, monkeypatch):
    newton_step = EXERCISES["regression", "newton_step"]
    mistakes = Mistakes(newton_step.name, newton_step.answer)
    monkeypatch.setattr("companion.lesson.mistakes.topic_rows", lambda package: {"newton_step": {"a mistake": row}})
    with pytest.raises(ValueError, match=f"newton_step, the mistake 'a mistake': .* occurs {times} times"):
        list(mistakes)


@pytest.mark.types_unchecked
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@EVERY
def test_no_diagnosis_hides_another(exercise, seeds, monkeypatch):
    monkeypatch.setattr(machinery, "CHECK_SEEDS", seeds)
    for diagnosis, wrong in exercise.mistakes.items():
        with pytest.raises(Mistake) as caught:
            exercise.check(wrong)
        said = str(caught.value)
        bare = said.startswith(f"{exercise.name}: wrong ") and said.endswith(f" The reason: {diagnosis}.")
        assert bare or said == f"{exercise.name}: {diagnosis}"


@EVERY
def test_the_courses_own_answer_passes_and_keeps_what_it_is_given(exercise):
    exercise.check(exercise.answer)
    exercise.grade(exercise.answer)


@EVERY
def test_a_stub_is_not_attempted_and_gets_no_points(exercise, capsys):
    stub = compiled(exercise, f"def {exercise.name}(*arguments):\n    raise NotImplementedError  # your code here")
    exercise.check(stub)
    assert capsys.readouterr().out == f"{exercise.name}: not attempted\n"
    with pytest.raises(NotAttempted):
        exercise.grade(stub)


@COMPARED
def test_what_knows_the_checks_inputs_alone_gets_no_points(exercise, near_misses_silenced):
    known = {str([*drawn(exercise, seed).values()]) for seed in machinery.CHECK_SEEDS}

    def remembers(*arguments):
        key = str([each.detach() if isinstance(each, torch.Tensor) else each for each in arguments])
        return exercise.answer(*arguments) if key in known else torch.zeros((), device=arguments[0].device)

    exercise.check(remembers)
    with pytest.raises(Mistake):
        exercise.grade(remembers)


@functools.cache
def drawn(exercise, seed):
    return exercise.draw(torch.Generator().manual_seed(seed))
