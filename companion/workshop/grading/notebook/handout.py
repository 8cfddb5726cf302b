"""Reads off a lesson's own notebook, not a student's, which exercises there are, what they are worth and what checks
them.
"""

import re
from importlib import import_module
from pathlib import Path

import nbformat

from companion.lesson.exercise import Exercise
from companion.workshop.grading.notebook.questions import Handout, Question
from companion.workshop.grading.notebook.syntax import aliases, defined, plain

GRADES = re.compile(r"^(\w+)\.(\w+)\.grade\((\w+)\)", re.MULTILINE)


class HandoutError(ValueError):
    """A lesson that cannot be graded as it is; the message names it."""


def handout(source: Path, released: Path) -> Handout:
    """Return the questions of the lesson ``source``. ``released`` is the notebook that learners get, whose stubs tell
    what was not attempted.
    """
    solved, unsolved = (nbformat.read(path, as_version=4) for path in (source, released))
    stubs = {cell.metadata.nbgrader.grade_id: cell.source for cell in unsolved.cells if "nbgrader" in cell.metadata}
    modules = aliases([cell.source for cell in solved.cells if cell.cell_type == "code"])
    functions: dict[str, tuple[str, str]] = {}  # function -> its answer cell's id and the answer
    questions, code, solutions = [], [], {}
    for cell in solved.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution") and not marks.get("grade"):
            functions |= dict.fromkeys(defined(plain(cell.source)), (marks.grade_id, cell.source))
        elif marks.get("solution"):
            questions.append(Question(marks.grade_id, marks.grade_id, float(marks.points), stubs[marks.grade_id]))
        elif marks.get("grade"):
            exercise, function = _graded(source.stem, cell, modules, functions)
            answer_id, solutions[marks.grade_id] = functions[function]
            points = float(marks.points)
            questions.append(Question(marks.grade_id, answer_id, points, stubs[answer_id], function, exercise))
        elif cell.cell_type == "code":
            code.append(cell.source)
    return Handout(source.stem, tuple(questions), tuple(code), stubs, solutions)


def _graded(lesson: str, cell: nbformat.NotebookNode, modules: dict, functions: dict) -> tuple[tuple[str, str], str]:
    """The exercise, as (module, name), and the learner's function that a check cell grades."""
    called = GRADES.findall(cell.source)
    if len(called) != 1 or called[0][2] not in functions or called[0][0] not in modules:
        check = cell.metadata.nbgrader.grade_id
        raise HandoutError(
            f"{lesson}: the check {check} does not grade one exercise by `exercises.NAME.grade(FUNCTION)`"
        )
    [(alias, name, function)] = called
    if not isinstance(getattr(import_module(modules[alias]), name, None), Exercise):
        raise HandoutError(f"{lesson}: {modules[alias]}.{name} is no Exercise")
    return (modules[alias], name), function
