"""The honest half of the class: what each hands in, and exactly what it is worth."""

import json
from dataclasses import dataclass, field

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from workshop.grading.answers import RETURNS, RIGHT, newton_step
from workshop.grading.small_lesson import AUTOMATIC, NAME, POINTS, cell, edited, handed_in, solution, solved
from wrong_answers.cases import CASES

FULL = {name: POINTS[name] for name in AUTOMATIC}
NOTHING = dict.fromkeys(AUTOMATIC, 0)


@dataclass(frozen=True)
class Student:
    """``handed_in`` is worth ``points``; ``says`` is part of what is told of it, ``flag`` part of a flag (no flag at
    all if empty).
    """

    handed_in: NotebookNode | bytes
    points: dict[str, int] = field(default_factory=lambda: dict(FULL))
    says: str = ""
    flag: str = ""
    file: str = f"{NAME}.ipynb"
    size: int = 0  # to which the file is made, if not 0


def without(*exercises: str) -> dict[str, int]:
    """Full points but for these exercises."""
    return FULL | {f"{name}-check": 0 for name in exercises}


def decorated(function: str, source: str) -> str:
    return f"@exercises.{function}\n{source.strip()}"


def wrong(function: str) -> tuple[str, str]:
    """A wrong answer that people really give, and its diagnosis."""
    case = next(case for case in CASES["regression", function] if case.message)
    return decorated(function, case.source), case.message


def right(function: str) -> str:
    """A right answer, written differently."""
    return decorated(function, [case for case in CASES["regression", function] if case.message is None][-1].source)


def _no_marks(notebook):
    notebook.nbformat_minor = 4
    for one in notebook.cells:
        one.metadata.pop("nbgrader", None)
        one.pop("id", None)


def _split(notebook):
    place = notebook.cells.index(cell(notebook, "newton-step"))
    notebook.cells[place].source = "def half(M, S):\n    return M @ S @ M"
    marks = dict(notebook.cells[place].metadata)
    notebook.cells.insert(place + 1, new_code_cell(newton_step("return 2 * M - half(M, S)"), metadata=marks))


def _helpers(notebook):
    cell(notebook, "newton-step").source = newton_step("return m.fsum([2]) * M - twice(M, S) / 2")
    before = new_code_cell("import math as m\nraise ValueError('a line that the answer does not need')")
    notebook.cells.insert(4, before)
    notebook.cells.append(new_code_cell("%matplotlib inline\ntwo = 2\ndef twice(M, S):\n    return two * M @ S @ M"))


def _own_import(notebook):
    notebook.cells[2].source += "\nimport numpy as np"
    cell(notebook, "newton-step").source = newton_step("return int(np.sqrt(4)) * M - M @ S @ M")


def _uses_another(notebook):
    """The answer calls another exercise's function, which stands in while it is a stub."""
    cell(notebook, "gd-closed-form").source = (
        "@exercises.gd_closed_form\ndef gd_closed_form(S, b, lr, steps):\n"
        "    newton_step(S, S)\n    w = 0 * b\n    for _ in range(steps):\n"
        "        w = w - lr * (S @ w - b)\n    return w"
    )


def _kernel(notebook):
    notebook.metadata.kernelspec = {"display_name": "R", "language": "R", "name": "ir"}


def _without_check(notebook):
    notebook.cells.remove(cell(notebook, "newton-step-check"))


def _written_only(notebook):
    cell(notebook, "open-question").source = "<script>alert(1)</script> [x](javascript:alert(1)) $a<b$"


def missing(body: str, says: str) -> Student:
    """Who has all but newton_step, whose body this is."""
    return Student(solved(newton_step=newton_step(body)), without("newton-step"), says=says)


FUNCTIONS = [name.replace("-", "_") for name in RIGHT]
FIRST = {"triplet-tokens": RIGHT["triplet-tokens"]}
CLASS = {
    "all right": Student(solved()),
    "all right, written differently": Student(solved(**{name: right(name) for name in FUNCTIONS})),
    "unsolved": Student(handed_in({}), NOTHING, says="not attempted"),
    "half solved": Student(handed_in(FIRST), without("newton-step", "gd-closed-form")),
    **{
        f"wrong {name}": Student(solved(**{name: wrong(name)[0]}), without(name.replace("_", "-")), wrong(name)[1])
        for name in FUNCTIONS
    },
    "no cell ids and no marks": Student(edited(_no_marks)),
    "a cell split in two": Student(edited(_split)),
    "helpers in cells of their own": Student(edited(_helpers)),
    "an import added to the lesson's": Student(edited(_own_import)),
    "calls another answer": Student(edited(_uses_another)),
    "calls another answer that is a stub": Student(edited(_uses_another, handed_in(FIRST)), without("newton-step")),
    "a decorator lost": Student(solved(newton_step=f"def newton_step(M, S):\n    {RETURNS}")),
    "wrong kernel name": Student(edited(_kernel)),
    "check cell deleted": Student(edited(_without_check), flag="newton-step-check: the check cell is missing"),
    "changes its input": missing(
        "old = M.clone()\nM *= 2\nreturn M - old @ S @ old", "changes its argument M in place"
    ),
    "makes a CPU tensor": Student(
        solved(newton_step=newton_step("return M @ (2 * torch.eye(len(S), dtype=S.dtype) - S @ M)"))
    ),
    "in float32": Student(solved(newton_step=newton_step(f"M, S = M.float(), S.float()\n{RETURNS}"))),
    "crashes": missing(
        "return M @ undefined",
        "raises NameError at `return M @ undefined`: name &#39;undefined&#39; is not defined",
    ),
    "does not compile": missing("return 2 * (M", "raises SyntaxError"),
    "returns a number": missing("return 3", "returns int, not a tensor"),
    "returns nothing": missing("2 * M", "returns nothing, where a tensor"),
    "written only": Student(edited(_written_only, handed_in({})), NOTHING),
    "Zoë Łukasz 王小明": Student(solved()),
    "..anna": Student(solved(), file=".. 05 small (копия).ipynb"),
    "-rf": Student(solved()),
    "=1+1": Student(solved()),
    "with a byte order mark": Student("\ufeff".encode() + json.dumps(solved()).encode()),
}


def unreadable() -> dict[str, Student]:
    """What cannot be graded, and what is said of it."""
    other = solution()
    other.cells = [one for one in other.cells if "nbgrader" not in one.metadata]
    no_notebooks = {
        "invalid JSON": b'{"cells": [',
        "not UTF-8": b"\xff\xfe\x00",
        "no cells": b'{"worksheets": []}',
        "cells of another kind": b'{"cells": [1, null, {"cell_type": {}, "source": 7}]}',
        "nested a million deep": b"[" * 1_000_000,
    }
    return {name: Student(data, NOTHING, says="it is no notebook") for name, data in no_notebooks.items()} | {
        "empty file": Student(b"", NOTHING, says="it is empty"),
        "another lesson": Student(other, NOTHING, says="another lesson"),
        "a 200 MB notebook": Student(b'{"cells": []}', NOTHING, says="has 190 MiB", size=200_000_000),
        "a megabyte of code": Student(solved(newton_step="x = 1\n" * 400_000), NOTHING, says="of code"),
    }
