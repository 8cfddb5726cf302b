"""What the self-test draws: honest hand-ins get their full points and nobody is suspected; hostile ones get nothing."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import nbformat
import pytest
from workshop.grading import self_test
from workshop.grading.self_test import answered, honest, judged, lesson, neighbours, program
from workshop.grading.sharing import PATIENT, all_in, here, one_process
from workshop.grading.small_lesson import grade_id
from workshop.grading.variants import HABITS, WAYS, doubled, endless_above, helper, helper_below
from wrong_answers.test_wrong_answers import inputs_drawn_once  # noqa: F401 - a fixture: twenty are marked on the same

from companion.workshop.cli.lessons import all_lessons
from companion.workshop.grading.course.marking import mark
from companion.workshop.grading.notebook.submissions import assemble, cells

pytestmark = pytest.mark.needs("sandbox")


# A process for many keeps something of each. Lesson 06's summit, the largest, takes 222 of 416 MiB in its own
ROOMY = replace(PATIENT, memory=1 << 30)


def test_work_in_every_cell_of_a_lesson_is_no_flag():
    given, solved = lesson(1)
    notebook = nbformat.reads(json.dumps(solved), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(r"\b7\b", "8", given.sources.get(grade_id(cell), cell.source))
            cell.source += "" if grade_id(cell).endswith("-check") else "\n# tried: keep the signal, open the bracket"
    assert len(given.code) > 20
    assert [
        flag for flag in assemble(given, cells(json.dumps(notebook).encode())).flags if "check cell" not in flag
    ] == []


@pytest.mark.parametrize("number", range(len(all_lessons())))
def test_twenty_styles_of_each_lesson_lose_no_points_and_raise_no_flag(number):
    lessons = len(all_lessons())
    with one_process(ROOMY, course=True) as process, all_in(process):
        problems = [judged(case, PATIENT) for case in range(number, 20 * lessons, lessons)]
    assert list(filter(None, problems)) == []


# Run last of all cells, in a process for many: the first time figures are drawn, and then left blank
BLANK = "from companion.lesson import figures\nfigures.png = lambda figure: b''"


@pytest.mark.parametrize("number", [7, 12])
def test_what_is_run_of_a_lesson_earns_what_all_of_it_earns(number):
    """The first answer in every style, by what it needs and by all cells that stand above its check; but for a loop
    without an end, which all of it never leaves.
    """
    given, differ = lesson(number)[0], []
    question = given.automatic[0]
    with one_process(ROOMY, course=True) as process, all_in(process):
        for ways, habits in [
            *(([way], []) for way in WAYS),
            ([helper, helper_below], [doubled]),  # the self-test's case 364749
            *(([], [habit]) for habit in HABITS if habit is not endless_above),
        ]:
            notebook, name = answered(number, question, ways, habits)
            handed = assemble(given, cells(json.dumps(notebook).encode()))
            handed.answers = {question.id: handed.answers[question.id]}
            handed.below.clear()
            above = {question.id: handed.whole.cells[: handed.whole.ends[question.id][0]]}
            whole = replace(handed, before=above, code={question.id: BLANK})
            found = [
                mark(one, given, [5, 6], PATIENT, unsafe=False)["exercises"][question.id] for one in (handed, whole)
            ]
            right = [entry["outcome"] == "right" for entry in found]
            differ += [f"{name}: {found}"] if right != [name != "corrected_below"] * 2 else []
    assert differ == []


@pytest.mark.parametrize("case", [4])  # a pipe for a timestamp.txt held the run for ever
def test_those_who_mean_harm_win_nothing_and_take_nothing(case):
    assert neighbours(case, 8) == []


def sources(notebook):
    return [cell.source for cell in notebook.cells]


def test_a_case_can_be_made_again():
    assert sources(honest(7)[2]) == sources(honest(7)[2]) != sources(honest(20)[2])
    assert sources(program(Random(3))) == sources(program(Random(3)))


@pytest.mark.parametrize(("lost", "won"), [("lost", ["won", "gone"]), ("", [])])
def test_what_is_found_is_said_and_counted(monkeypatch, capsys, lost, won):
    monkeypatch.setattr(self_test, "alone", here)
    monkeypatch.setattr(self_test, "judged", lambda case, limits: lost)
    monkeypatch.setattr(self_test, "neighbours", lambda case, many: won)
    assert self_test.main(0.0005, 20) == len(won[:1])
    said = capsys.readouterr().out
    assert all(word in said for word in [lost, *won])
    assert (", 0 found" in said) == (not won)


@pytest.mark.parametrize(("longest", "says"), [(300, "case 1000 was not done"), (0.3, "case 1000: took more than 0.3")])
def test_a_case_that_never_ends_ends_with_the_time(monkeypatch, capsys, longest, says):
    monkeypatch.setattr(self_test, "trial", time.sleep)
    monkeypatch.setattr(self_test, "ready", abs)
    monkeypatch.setattr(self_test, "LONGEST", longest)
    started = time.monotonic()
    assert self_test.main(0.01, 1000) == (longest == 0.3)
    assert time.monotonic() - started < 60
    assert says in capsys.readouterr().out


def test_it_starts_as_the_command_starts_it():
    command = [sys.executable, "-m", "workshop.grading.self_test", "0.001", "1"]
    done = subprocess.run(command, cwd=Path(self_test.__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "case 1 was not done" in done.stdout, done.stdout + done.stderr
