"""A class whose hand-ins are graded without a sandbox, and what is said of them: for the tests of `handins`."""

import html
import json
import os
from datetime import datetime

from workshop.grading.answers import RIGHT
from workshop.grading.reading import small_handout
from workshop.grading.sharing import here, unless_stubs
from workshop.grading.small_lesson import NAME, checkout, hand_in, handed_in, page, rows, solved

from companion import __version__
from companion.workshop.grading.course import classroom, handins
from companion.workshop.grading.course.settings import read_settings

OWN = f"{NAME}.ipynb"
DUE = f'[deadlines]\n"{NAME}" = 2026-11-20T12:00:00Z\n[late]\nper_day = 0.1\n'
SOLVED, UNTOUCHED, FIRST, WRITTEN = (
    json.dumps(notebook).encode()
    for notebook in (
        solved(),
        handed_in({}),
        handed_in({"triplet-tokens": RIGHT["triplet-tokens"]}),
        handed_in({}, "There is none."),
    )
)
MARKED = "to be marked: open-question"


def without_sandbox(root, monkeypatch):
    """A checkout; everything that is handed in as anything but a stub is right."""
    monkeypatch.setattr(classroom, "mark", unless_stubs)
    monkeypatch.setattr(classroom, "alone", here)
    return checkout(root)


def grade(root, **options):
    return classroom.grade(small_handout(), root / "solutions" / NAME / f"{NAME}.ipynb", root, **options)


def at(path, when):
    seconds = datetime.fromisoformat(when).timestamp()
    os.utime(path, (seconds, seconds))
    return path


def put(course, name, files):
    """Files by their place in a student's folder."""
    for file, data in files.items():
        hand_in(course, name, data, file)


def said(course, name="anna"):
    """A student's points and what else the table says, once it was graded twice alike; the page says that, too."""
    grade(course)
    first, files = rows(course), sorted((course / "grading" / "kept").rglob("*"))
    grade(course)
    assert rows(course) == first and sorted((course / "grading" / "kept").rglob("*")) == files
    row = first[name]
    text = html.unescape(page(course, name))
    reasons = [reason for reason in row["needs_a_person"].split("; ") if reason not in ("", MARKED)]
    for reason in reasons:
        assert reason.removeprefix("cannot be read: ") in text, text
    return row["points"], "; ".join(reasons)


def kept(course, name="anna"):
    """What counts, as it is handed on to marking."""
    settings = read_settings(course / "grading" / "settings.toml")
    return handins.collect(course / "grading", NAME, settings, 20 << 20)[name]


def version(course, data, when, name="anna"):
    """Hand in once more, over what is there, and grade."""
    at(hand_in(course, name, data), when)
    grade(course)
    return rows(course)[name]


def further() -> bytes:
    """The lesson's second notebook, as it is released."""
    notebook = handed_in({})
    notebook.metadata["companion"] = {"notebook": f"{NAME}-further", "version": __version__}
    return json.dumps(notebook).encode()
