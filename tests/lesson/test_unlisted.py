"""A mistake need not have been foreseen: with the listed diagnoses taken away, most wrong answers are still named.

How many are, of each exercise, is written in ``tests/wrong_answers/unlisted.csv``, by

    PYTHONPATH=.:tests .venv/bin/python tests/lesson/test_unlisted.py [exercise ..]

which prints each answer with what is said of it then, and writes the rows of these exercises; of all, if none is named.
"""

import csv
import dataclasses
import re
import sys
import warnings
from pathlib import Path

import pytest
import torch
from wrong_answers.cases import CASES, EXERCISES, compiled
from wrong_answers.reviewed import REVIEWED
from wrong_answers.scores import put_rows, row_of
from wrong_answers.test_wrong_answers import foreseen

from companion.lesson.exercise import Mistake
from companion.lesson.near_misses import families
from companion.lesson.summit import Summit

# near misses are of exercises with one right answer; a summit has many
KEYS = {name: (topic, name) for topic, name in CASES if not isinstance(EXERCISES[topic, name], Summit)}
NAMED = Path(__file__).parents[1] / "wrong_answers" / "unlisted.csv"
COLUMNS = ("lesson", "exercise", "foreseen", "named")
FLOOR = 0.7
NAMELESS = re.compile(r"wrong values? |nearly right, |every entry is (0$|\S+ times)")  # true, but not what is wrong


def lesson_of(key):
    """A topic; of regression, which two lessons have, the module."""
    return EXERCISES[key].answer.__module__.rpartition(".")[2] if key[0] == "regression" else key[0]


def written():
    with NAMED.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KEYS, ids=lambda name: "-".join(KEYS[name]))
@pytest.mark.types_unchecked
def test_as_many_wrong_answers_are_named_without_the_list_as_is_written(name):
    row = row_of(NAMED, name, "tests/lesson/test_unlisted.py")
    said = list(said_of(name))
    named = [each for each in said if not NAMELESS.match(each[1])]
    assert (lesson_of(KEYS[name]), len(said)) == (row["lesson"], int(row["foreseen"]))
    # another machine's rounding may decide one
    assert len(named) == pytest.approx(int(row["named"]), abs=1), "made anew by the command above"
    assert not [each for each in named if not agrees(name, *each)], "against its review"


@pytest.mark.parametrize("lesson", sorted(set(map(lesson_of, KEYS.values()))))
def test_most_of_a_lessons_wrong_answers_are_named(lesson):
    rows = [row for row in written() if row["lesson"] == lesson]
    assert sum(int(row["named"]) for row in rows) >= FLOOR * sum(int(row["foreseen"]) for row in rows)


def test_what_was_reviewed_is_there():
    for name, phrases in REVIEWED.items():
        messages = [case.message for case in CASES[KEYS[name]] if case.message]
        assert not [part for part in phrases if not any(part in each or each in part for each in messages)]


def said_of(name):
    """Of each wrong answer with a listed diagnosis: its message, and what is said without the list."""
    listed = EXERCISES[KEYS[name]]
    bare, family = dataclasses.replace(listed, mistakes={}), families.family(listed)
    assert family.singles
    families._families[id(bare)] = family  # its near misses are made
    try:
        for case in CASES[KEYS[name]]:
            if case.message and foreseen(listed, case):
                with pytest.raises(Mistake) as mistake:
                    bare.check(compiled(bare, case.source))
                yield case.message, str(mistake.value).removeprefix(f"{name}: ")
    finally:
        del families._families[id(bare)]


def agrees(name, message, sentence):
    """Whether a sentence says what was found right when somebody read it; true if nobody has."""
    phrases = [phrase for part, phrase in REVIEWED.get(name, {}).items() if part in message or message in part]
    return not phrases or any(phrase in sentence for phrase in phrases)


def main(names):
    """Print what is said of every answer of these exercises, of all, if none is named; write how many are named."""
    rows = []
    for name in names or KEYS:
        said = list(said_of(name))
        for message, sentence in said:
            print(f"{name} [{message}]\n    {sentence}")
        counts = len(said), sum(not NAMELESS.match(each) for _, each in said)
        rows.append(dict(zip(COLUMNS, (lesson_of(KEYS[name]), name, *counts), strict=True)))
    put_rows(NAMED, rows, KEYS)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    main(sys.argv[1:])
