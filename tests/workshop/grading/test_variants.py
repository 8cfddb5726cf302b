"""A hundred honest ways to hand in right answers of the lessons: every one its full points, and nobody suspected."""

import functools
import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell
from workshop.grading.sharing import PATIENT, all_in, one_process
from workshop.grading.variants import WAYS

from companion.workshop.cli.lessons import all_lessons
from companion.workshop.grading.course.marking import mark
from companion.workshop.grading.notebook.handout import handout
from companion.workshop.grading.notebook.submissions import assemble, cells
from companion.workshop.grading.sandbox import bubblewrap

pytestmark = pytest.mark.skipif(bool(bubblewrap.missing()), reason=f"no sandbox here: {bubblewrap.missing()}")
LESSONS = all_lessons()[:4]


@functools.cache
def lesson(number):
    """A lesson's questions and its solved notebook."""
    source = LESSONS[number].source
    released = source.parents[2] / "lessons" / source.parent.name / source.name
    return handout(source, released), json.loads(source.read_text(encoding="utf-8"))


def variants():
    """A hundred of them: (lesson, question, way), each way about as often as another."""
    asked = [(n, question.id) for n in range(len(LESSONS)) for question in lesson(n)[0].automatic]
    return [(*asked[n % len(asked)], WAYS[n % len(WAYS)]) for n in range(100)]


def submitted(number, name, way):
    """The solved notebook with one answer rewritten."""
    given, solved = lesson(number)
    [question] = [question for question in given.automatic if question.id == name]
    notebook = nbformat.reads(json.dumps(solved), as_version=4)
    [place] = [n for n, cell in enumerate(notebook.cells) if grade_id(cell) == question.answer_id]
    source = notebook.cells[place].source
    text = "\n".join(line for line in source.splitlines() if not line.strip().startswith("### "))
    before, notebook.cells[place].source = way(text)
    notebook.cells[place:place] = [new_code_cell(cell) for cell in before]
    for cell in notebook.cells:  # as learners get them
        if grade_id(cell) in given.sources and grade_id(cell).endswith("-check"):
            cell.source = given.sources[grade_id(cell)]
    handed = assemble(given, cells(json.dumps(notebook).encode()))
    handed.answers = {name: handed.answers[name]}
    return given, handed


def grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


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


def test_a_hundred_honest_variants():
    lost, flagged = [], []
    with one_process(PATIENT) as process, all_in(process):
        for number, name, way in variants():
            given, handed = submitted(number, name, way)
            entry = mark(handed, given, [5, 6], PATIENT, unsafe=False)["exercises"][name]
            lost += [(name, way.__name__, entry["diagnosis"])] if entry["outcome"] != "right" else []
            flagged += [(name, way.__name__, handed.flags)] if handed.flags else []
    assert not lost
    assert len(flagged) <= 2, flagged
