"""Review: what was missed comes back after days, five minutes at a time, and no answer is lost."""

import json
import os
from argparse import Namespace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sample_lesson import FACTS, NAME

from companion.lesson.widgets.predictions import Predictions
from companion.workshop.cli import progress, review, work
from companion.workshop.cli.lessons import released

START = date(2026, 11, 1)
QUIZ = """## Recap\n\nIt doubles.\n\n## Quiz\n
**1. What is $2^k$ at k = 1?**\n
<details><summary>One.</summary>No: that is at 0.</details>
<details><summary>2<sup>1</sup>, two.</summary>Yes: twice one.</details>\n
**2. And at 2?**\n
<details><summary>Four.</summary>Yes.</details>
<details><summary>Three.</summary>No.</details>\n\n## Open problem\n\n**3. No question.**
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout with a lesson, half of it solved, and two predictions missed on the first day."""
    cells = [new_code_cell(f"exercises.e.check(e{number})") for number in range(3)] + [new_markdown_cell(QUIZ)]
    (tmp_path / "lessons" / NAME).mkdir(parents=True)
    lesson = new_notebook(cells=cells, metadata={"companion": FACTS})
    nbformat.write(lesson, tmp_path / "lessons" / NAME / f"{NAME}.ipynb")
    assert work.refresh(tmp_path) == []
    for cell in lesson.cells[:2]:
        cell.outputs = [new_output("stream", name="stdout", text="e: correct\n")]
    nbformat.write(lesson, tmp_path / "work" / NAME / f"{NAME}.ipynb")
    monkeypatch.chdir(tmp_path / "work" / NAME)
    predictions = Predictions(NAME)
    predictions.number("steps", "How many steps?").field.value = "100"
    predictions.choice("rate", "Which rate?", ["linear", "exponential"]).field.value = "linear"
    predictions.choice("start", "From where?", ["one", "two"]).field.value = "one"
    predictions.compare("steps", 691, within=2, because="Each step doubles it.")
    predictions.compare("rate", "exponential")
    predictions.compare("start", "one")
    worked(tmp_path)
    return tmp_path


def worked(root: Path) -> None:
    at = datetime(START.year, START.month, START.day, 12).timestamp()
    for path in (root / "work" / NAME).glob("*"):
        os.utime(path, (at, at))


@pytest.fixture
def sit(root, monkeypatch, capsys):
    """Sit down on a day, counted from the first, and type; what is said. After the last word, the input ends."""

    def sitting(day: int, *words: Any) -> str:
        typed = iter(words)

        def answer(prompt: str) -> str:
            word = next(typed, EOFError)
            if word in (EOFError, KeyboardInterrupt):
                raise word
            return word if isinstance(word, str) else word()

        monkeypatch.setattr("builtins.input", answer)
        capsys.readouterr()
        status = review.main(Namespace(), root, START + timedelta(days=day))
        assert list(typed) == [], "all was asked for"
        said = capsys.readouterr().out
        assert status == said.startswith("review: ")
        return said

    return sitting


def state(root: Path) -> dict[str, tuple[int, int]]:
    """Of each card, how many rests it has passed, and on which day it is due."""
    kept = json.loads((root / "work/review.json").read_bytes())["cards"]
    days = {name: (date.fromisoformat(entry["due"]) - START).days for name, entry in kept.items()}
    return {name.partition("/")[2]: (kept[name]["passed"], days[name]) for name in kept}


def test_a_box_of_cards_over_days(root, sit):
    assert sit(0) == "Nothing more is due before 2026-11-02.\n"
    assert state(root) == {"steps": (0, 1), "rate": (0, 1), "quiz 1": (3, 1), "quiz 2": (3, 1)}
    first = sit(1, "many", "700", "9", "1", "2", "")
    assert "1 of 4 · 07-doubling\nHow many steps?\n“many” is not a number" in first
    assert "Right: 691\nEach step doubles it.\nIt comes back on 2026-11-05." in first
    assert "  2  exponential\nNot right. The answer: exponential\nIt comes back on 2026-11-03." in first
    assert "What is 2^k at k = 1?\n  1  One.\n  2  2^1, two.\nRight: 2^1, two.\nYes: twice one.\nYou are done" in first
    assert first.endswith("\n2 of 4 right. Nothing more is due before 2026-11-03.\n")
    assert state(root) == {"steps": (1, 4), "rate": (0, 2), "quiz 1": (4, 1), "quiz 2": (0, 2)}
    assert "No.\nNot right. The answer: Four.\nYes.\n" in sit(2, "2", "2")
    assert state(root) == {"steps": (1, 4), "rate": (1, 5), "quiz 1": (4, 1), "quiz 2": (0, 3)}
    sit(4, "1", "800")  # the longest due first
    assert state(root) == {"steps": (2, 11), "rate": (1, 5), "quiz 1": (4, 1), "quiz 2": (1, 7)}
    sit(5, "2")
    assert state(root) == {"steps": (2, 11), "rate": (2, 12), "quiz 1": (4, 1), "quiz 2": (1, 7)}
    assert sit(6) == "Nothing more is due before 2026-11-08.\n"
    sit(12, "1", "700", "")
    assert state(root) == {"steps": (3, 33), "rate": (0, 13), "quiz 1": (4, 1), "quiz 2": (2, 19)}
    sit(13, "2"), sit(40, "2", "1", "700"), sit(47, "2"), sit(61, "1")
    assert sit(68, "2").endswith("You are done with it.\n\n1 of 1 right. Nothing is left to review.\n")


@pytest.mark.parametrize("stop", [EOFError, KeyboardInterrupt])
def test_who_stops_keeps_what_was_answered_and_goes_on_after_it(root, sit, stop):
    assert sit(1, "700", stop).endswith("\n1 of 1 right. 3 more to review.\n")
    assert state(root)["steps"] == (1, 4)
    assert "1 of 3" in sit(1)


def test_a_sitting_is_short_and_two_terminals_share_the_file(root, sit):
    path = root / "work" / NAME / "predictions.json"
    kept = json.loads(path.read_bytes())
    kept["lessons"][NAME] |= {f"more-{number}": kept["lessons"][NAME]["rate"] for number in range(9)}
    path.write_text(json.dumps(kept))
    worked(root)

    def in_another_terminal() -> str:
        other = review.cards(root, {})[-1:]
        other[0].passed = 4
        review._keep(root / "work/review.json", other)
        return "2"

    said = sit(1, "700", in_another_terminal, *["2"] * 4)
    assert "\n6 of 6 · " in said and "7 more to review." in said
    assert (state(root)["quiz 2"], state(root)["rate"]) == ((4, 1), (1, 4))


def test_predictions_of_version_0_3_are_shown_and_judged_by_oneself(root, sit):
    path = root / "work" / NAME / "predictions.json"
    kept = json.loads(path.read_bytes())
    for entry in kept["lessons"][NAME].values():
        for key in ("options", "within", "because"):
            del entry[key]
    path.write_text(json.dumps(kept))
    worked(root)
    said = sit(1, "about 700", "y", "", "n")
    assert "How many steps?\nThe answer: 691\nIt comes back on 2026-11-05." in said
    assert "Which rate?\nThe answer: exponential\nIt comes back on 2026-11-03." in said


def test_an_answer_that_was_mended_in_the_notebook_stays_in_the_box(root, sit):
    sit(0)
    Predictions(NAME).choice("rate", "Which rate?", ["linear", "exponential"]).field.value = "exponential"
    predictions = Predictions(NAME)
    predictions.choice("rate", "Which rate?", ["linear", "exponential"])
    predictions.compare("rate", "exponential")
    assert "2 of 4 · 07-doubling\nWhich rate?" in sit(1, "700")


def test_a_lesson_less_than_half_solved_has_no_quiz_yet_and_one_without_predictions_nothing(root, sit):
    copy = root / "work" / NAME / f"{NAME}.ipynb"
    lesson = nbformat.read(copy, as_version=4)
    lesson.cells[1].outputs = []
    nbformat.write(lesson, copy)
    assert "2 of 2" in sit(1, "700", "2")
    copy.with_name("predictions.json").unlink()
    assert sit(1).startswith("Nothing to review yet: here predictions that you miss come back")
    assert state(root) == {"steps": (1, 4), "rate": (1, 4)}, "and what was known of them is not lost"


def test_progress_counts_what_is_due_and_writes_nothing(root, capsys):
    arguments = Namespace(reset=None, lessons=[])
    assert progress.main(arguments, root) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "4 to review: python3 -m companion review"
    assert not (root / "work/review.json").exists()
    (root / "work" / NAME / "predictions.json").write_text("{")
    (root / "work" / NAME / f"{NAME}.ipynb").unlink()
    assert progress.main(arguments, root) == 0
    assert "review" not in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["", "[]", '{"format": "other", "cards": {}}', '{"cards": {"a": {"passed": 9}}}'])
def test_a_damaged_file_is_kept_aside(root, sit, broken):
    (root / "work/review.json").write_text(broken)
    said = sit(1, "700")
    assert said.startswith("review.json is not a file of reviews of this course; it is now review (set aside 1).json")
    assert (root / "work/review (set aside 1).json").read_text() == broken
    assert state(root)["steps"] == (1, 4)


def test_damaged_predictions_are_left_to_their_lesson(root, sit):
    path = root / "work" / NAME / "predictions.json"
    path.write_text("{")
    assert sit(1).startswith(f"{NAME}/predictions.json is damaged; its questions are left out\n")
    assert path.read_text() == "{"


@pytest.mark.parametrize("held", ["review.json", "predictions.json"])
def test_what_is_locked_is_said_and_written_over_by_nobody(root, sit, monkeypatch, held):
    sit(0)
    before, read = (root / "work/review.json").read_bytes(), Path.read_bytes

    def refuses(path):
        if path.name == held:
            raise PermissionError(13, "in use")
        return read(path)

    monkeypatch.setattr("companion.core.files.PAUSES", ())
    with monkeypatch.context() as now:
        now.setattr(Path, "read_bytes", refuses)
        assert f"{held} cannot be read now (in use)" in sit(1)
    assert (root / "work/review.json").read_bytes() == before


def test_a_disk_that_refuses_is_said_and_tried_again(root, sit, monkeypatch):
    write, full = review.atomic_write, [True, True]

    def refuses(path, text):
        if full and full.pop():
            raise OSError(30, "Read-only file system")
        write(path, text)

    monkeypatch.setattr(review, "atomic_write", refuses)
    said = sit(1, "700", "2")
    assert said.count("review.json cannot be written now (Read-only file system): your answers are not kept yet.") == 2
    assert state(root) == {"steps": (1, 4), "rate": (1, 4), "quiz 1": (3, 1), "quiz 2": (3, 1)}


def test_each_quiz_of_the_course_has_one_right_option_for_each_question():
    quizzes = [[*review.quiz(lesson, START)] for lesson in released() if not lesson.is_taster]
    assert all(len(quiz) == 3 and all(len(card.options) >= 2 for card in quiz) for quiz in quizzes)
