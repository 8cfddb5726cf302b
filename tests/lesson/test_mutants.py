"""The checks against what nobody listed: each near miss of every answer must be rejected, be the answer in other words,
or be listed with a reason.

`wrong_answers/mutants.csv` has the score of each exercise: how many were made, rejected, the answer in other words on
any inputs, and equal to it on the task's inputs alone, for a reason in `wrong_answers/equal.py`. The rows of exercises,
of all if none is named, are written by

    PYTHONPATH=.:tests .venv/bin/python tests/lesson/test_mutants.py [exercise ..]
"""

import re
import sys
import warnings
from pathlib import Path

import pytest
import torch
from tqdm import tqdm
from wrong_answers.cases import EXERCISES
from wrong_answers.equal import EQUAL
from wrong_answers.scores import put_rows, row_of

from companion.lesson import exercise as machinery
from companion.lesson.near_misses import families
from companion.lesson.near_misses.running import called, same
from companion.lesson.summit import Summit

COMPARED = {key: exercise for key, exercise in EXERCISES.items() if not isinstance(exercise, Summit)}


def unrestricted(inputs, seed):
    """Inputs of the same shapes, with numbers of any size and sign."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: 2 * torch.randn(value.shape, generator=generator, dtype=value.dtype) + 0.3
        if isinstance(value, torch.Tensor) and value.is_floating_point()
        else value
        for name, value in inputs.items()
    }


def passes(near_miss, exercise, pairs):
    """Whether a near miss passes for the answer on every pair of inputs and what is right on them."""
    for inputs, right in pairs:
        got = called(near_miss.function, list(inputs.values()))
        if got is None or got.dtype.is_floating_point != right.dtype.is_floating_point:
            return False
        if not exercise._close(got, right):
            return False
    return True


def is_the_answer(near_miss, exercise, pairs):
    """Whether a near miss does as the answer on all inputs, also those that break it."""
    for inputs, right in pairs:
        got = called(near_miss.function, list(inputs.values()))
        if got is None or right is None:
            if got is not right:
                return False
        elif got.shape != right.shape or not same(got, right, 1e-6):
            return False
    return True


SCORES = Path(__file__).parents[1] / "wrong_answers" / "mutants.csv"
COLUMNS = ("exercise", "made", "rejected", "in_other_words", "equal_for_a_reason")


def score(key):
    """An exercise's row, and the sentences of the near misses that its check lets through for no reason listed."""
    exercise = EXERCISES[key]
    family = families.family(exercise)
    made = family.singles + family.alike
    drawn = [exercise._drawn(seed) for seed in machinery.CHECK_SEEDS]
    known = [(inputs, exercise.answer(**inputs)) for inputs in drawn]
    free = [unrestricted(exercise._drawn(seed), seed) for seed in range(7000, 7006)]
    with family.guard:
        any_inputs = [(inputs, called(exercise.answer, list(inputs.values()))) for inputs in free]
        passing = [miss for miss in made if passes(miss, exercise, known)]
        equal = [miss for miss in passing if not is_the_answer(miss, exercise, any_inputs)]
    listed = re.compile("|".join(pattern for pattern, _ in EQUAL.get(exercise.name, [("^$", "")])))
    row = (exercise.name, len(made), len(made) - len(passing), len(passing) - len(equal), len(equal))
    return row, [miss.mistake for miss in equal if not listed.search(miss.mistake)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", COMPARED, ids="-".join)
@pytest.mark.types_unchecked
def test_every_near_miss_is_rejected_or_no_miss_at_all(key):
    """What a check would let through is the answer in other words, or listed with a reason."""
    (name, *counts), for_no_reason = score(key)
    assert not for_no_reason, "mend the draw, or give a reason in tests/wrong_answers/equal.py"
    assert counts[0] > 100, "an answer is a plain `def` that shows its steps"
    row = row_of(SCORES, name, "tests/lesson/test_mutants.py")
    few = 0.02 * counts[0]  # that differ by a rounding error
    written = [int(row[column]) for column in COLUMNS[1:]]
    assert counts == pytest.approx(written, abs=few), "made anew by the command above"


def test_one_row_is_made_anew_and_what_is_gone_goes(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("exercise,made\ngone,1\nlast,2\n")
    put_rows(path, [{"exercise": "first", "made": 3}], ["first", "last", "none yet"])
    assert path.read_text() == "exercise,made\nfirst,3\nlast,2\n"
    with pytest.raises(AssertionError, match=r"has 0 rows of gone; .*python tests/made.py gone"):
        row_of(path, "gone", "tests/made.py")


def test_each_exercise_with_listed_equals_exists():
    names = {name for _, name in EXERCISES}
    assert EQUAL.keys() <= names


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    keys = [key for key in COMPARED if key[1] in sys.argv[1:] or not sys.argv[1:]]
    scores = [score(key) for key in tqdm(keys, "near misses of every answer")]
    put_rows(SCORES, [dict(zip(COLUMNS, row, strict=True)) for row, _ in scores], [name for _, name in COMPARED])
    for (name, *_), for_no_reason in scores:
        for said in for_no_reason:
            print(f"{name}: passes, for no reason listed in tests/wrong_answers/equal.py: {said}")
