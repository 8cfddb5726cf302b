"""A lesson of three exercises and a written question, made for the tests of grading, and what students make of it."""

import copy
import csv
import functools
import json
from collections.abc import Callable, Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader import api
from sqlalchemy import Engine, event
from workshop.grading.answers import RIGHT

from companion.workshop.grading.course.names import file_name

NAME = "05-small"
POINTS = {"triplet-tokens-check": 1, "newton-step-check": 2, "gd-closed-form-check": 3, "open-question": 4}
AUTOMATIC = [name for name in POINTS if name != "open-question"]
# nbgrader asks alembic, in a new process, for the version of each new database: once is enough. And no test needs its
# database to outlast the machine: it waits for no disk
api.get_alembic_version = functools.cache(api.get_alembic_version)
event.listen(Engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
QUESTION = "## A question\n\nWhat is the largest number?"


def marks(name: str, **kind) -> dict:
    """A cell's metadata: what nbgrader calls it, and of what kind it is."""
    unmarked = dict.fromkeys(("task", "grade", "solution", "locked"), False)
    return {"nbgrader": {"grade_id": name, "schema_version": 3} | unmarked | kind}


def _hidden(source: str) -> str:
    head, line, body = source.partition("):\n")
    return f"{head}{line}    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"


def solution() -> NotebookNode:
    """The lesson's source."""
    cells = [
        new_markdown_cell("# A small lesson\n\nWhere $x^2 \\ge 0$."),
        new_code_cell('SCALE = "course"\nSEED = 0', metadata={"tags": ["parameters"]}),
        new_code_cell(
            "import torch\nfrom companion.topics.regression import exercises\n"
            "from companion.topics.regression import baselines"
        ),
    ]
    for name, source in RIGHT.items():
        function, check = name.replace("-", "_"), f"{name}-check"
        cells.append(new_code_cell(_hidden(source), metadata=marks(name, solution=True)))
        hidden = f"\n### BEGIN HIDDEN TESTS\nexercises.{function}.grade({function})\n### END HIDDEN TESTS"
        text = f"exercises.{function}.check({function}){hidden}"
        cells.append(new_code_cell(text, metadata=marks(check, grade=True, locked=True, points=POINTS[check])))
    cells.append(new_code_cell("raise RuntimeError('a cell that grading has no need of is not run')"))
    question = f"{QUESTION}\n\n### BEGIN SOLUTION\nThere is none.\n### END SOLUTION"
    cells.append(
        new_markdown_cell(
            question, metadata=marks("open-question", grade=True, solution=True, points=POINTS["open-question"])
        )
    )
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    facts = {"title": "Small", "question": "What is small?", "minutes": 60, "machine_seconds": 1, "needs": []}
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"companion": facts, "kernelspec": kernel})


def checkout(root: Path, lesson: NotebookNode | None = None) -> Path:
    """A checkout with the small lesson in it, or another ``lesson`` of its name."""
    folder = root / "solutions" / NAME
    folder.mkdir(parents=True)
    nbformat.write(lesson or solution(), folder / f"{NAME}.ipynb")
    (root / "grading" / "submitted").mkdir(parents=True)
    (root / "grading" / "secret").write_text("a secret, so that every run of the tests draws the same inputs\n")
    return root


def stub(name: str) -> str:
    head = RIGHT[name].partition("):\n")[0]
    return f"{head}):\n    # your code here\n    raise NotImplementedError"


def handed_in(answers: dict[str, str], written: str = "", lesson: NotebookNode | None = None) -> NotebookNode:
    """The released lesson with ``answers`` by the answer cell's name; what is not among them stays a stub."""
    notebook = copy.deepcopy(lesson or solution())
    for cell in notebook.cells:
        name = grade_id(cell)
        if name in RIGHT:
            cell.source = answers.get(name, stub(name))
        elif name in AUTOMATIC:
            cell.source = cell.source.partition("\n### BEGIN")[0]
        elif name == "open-question":
            cell.source = f"{QUESTION}\n\n{written or 'YOUR ANSWER HERE'}"
    return notebook


def solved(**changes: str) -> NotebookNode:
    """All right but for ``changes``, by the answer cell's name with _ for -."""
    return handed_in(RIGHT | {name.replace("_", "-"): source for name, source in changes.items()}, "There is none.")


def edited(edit: Callable[[NotebookNode], None], notebook: NotebookNode | None = None) -> NotebookNode:
    """A solved notebook (or another) after ``edit``."""
    notebook = notebook or solved()
    edit(notebook)
    return notebook


def grade_id(cell: dict[str, Any]) -> str:
    """What nbgrader calls a cell; empty if it has no name for it."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def cell(notebook: NotebookNode, name: str) -> NotebookNode:
    [found] = [cell for cell in notebook.cells if grade_id(cell) == name]
    return found


def around(above: Iterable[str], newton_step: str, below: Iterable[str] = ()) -> NotebookNode:
    """A solved notebook with this answer, and cells ``above`` it and ``below`` its check."""
    notebook = solved(newton_step=newton_step)
    place, check = (notebook.cells.index(cell(notebook, name)) for name in ("newton-step", "newton-step-check"))
    notebook.cells[check + 1 : check + 1] = map(new_code_cell, below)
    notebook.cells[place:place] = map(new_code_cell, above)
    return notebook


def hand_in(root: Path, student: str, notebook: NotebookNode | bytes, place: str = f"{NAME}/{NAME}.ipynb") -> Path:
    """Put a notebook, or raw bytes, where a student's submission belongs, or at another place in that folder."""
    path = root / "grading" / "submitted" / student / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode())  # not mended
    return path


def rows(root: Path, lesson: str = NAME) -> dict[str, dict[str, str]]:
    """What the class's table has of each student."""
    text = (root / "grading" / lesson / "grades.csv").read_text(encoding="utf-8")
    return {row["student"]: row for row in csv.DictReader(StringIO(text))}


def page(root: Path, student: str, lesson: str = NAME) -> str:
    """What a student reads."""
    return (root / "grading" / "feedback" / file_name(student) / f"{lesson}.html").read_text(encoding="utf-8")
