"""Every worker begins with its share of the long tests, and no test is lost or run twice."""

from pathlib import Path

import pytest
from longest_first import BY_EXERCISE, SINGLY, TOGETHER, order

ROOT = Path(__file__).resolve().parents[1]
SHORT = [f"tests/core/test_files.py::test_{n}" for n in range(20)]
LESSONS = [f"{SINGLY[0]}::test_a[{n}]" for n in range(4)]
CLASS = [f"{TOGETHER[0]}::test_{n}" for n in range(3)]


def stretches(names, workers):
    ordered = [names[place] for place in order(names, workers)]
    size = len(names) // workers
    return [ordered[start : start + size] for start in range(0, size * workers, size)]


def test_each_stretch_begins_with_long_ones_and_a_file_stays_together():
    first, second = stretches([*SHORT, *LESSONS, *CLASS, "tests/test_links.py::test_last"], 2)
    assert first[:6] == [LESSONS[0], LESSONS[2], *CLASS, SHORT[0]]
    assert second[:3] == [LESSONS[1], LESSONS[3], SHORT[9]]
    assert second[-1] == "tests/test_links.py::test_last"


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
@pytest.mark.parametrize("names", [[], SHORT, LESSONS, CLASS, [*SHORT, *LESSONS, *CLASS]])
def test_every_test_runs_once(names, workers):
    assert sorted(order(names, workers)) == list(range(len(names)))


def test_what_is_asked_of_one_exercise_stays_together():
    mutants, _, answers = (f"{name}::test_a" for name in BY_EXERCISE)
    names = [f"{mutants}[waves-up]", f"{mutants}[tides-low]", f"{answers}[waves-up-right]", SHORT[0]]
    assert [names[place] for place in order(names, 1)] == [SHORT[0], names[1], names[0], names[2]]


def test_what_is_long_exists():
    assert [name for name in (*SINGLY, *TOGETHER, *BY_EXERCISE) if not (ROOT / name.partition("::")[0]).is_file()] == []
