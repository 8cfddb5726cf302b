"""A lesson of three exercises and a written question, made for the tests of grading, and what students make of it."""

import copy
import functools
import json
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader import api
from sqlalchemy import Engine, event

NAME = "05-small"
POINTS = {"triplet-tokens-check": 1, "newton-step-check": 2, "gd-closed-form-check": 3, "open-question": 4}
AUTOMATIC = [name for name in POINTS if name != "open-question"]
# nbgrader asks alembic, in a new process, for the version of each new database: once is enough. And no test needs its
# database to outlast the machine: it waits for no disk
api.get_alembic_version = functools.cache(api.get_alembic_version)
event.listen(Engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
QUESTION = "## A question\n\nWhat is the largest number?"
RIGHT = {
    "triplet-tokens": """@exercises.triplet_tokens
def triplet_tokens(xs, ys):
    examples = torch.cat([xs, ys[..., None]], dim=-1)
    before = torch.cat([torch.zeros_like(examples[:, :1]), examples[:, :-1]], dim=1)
    return torch.cat([before, xs], dim=-1)""",
    "newton-step": """@exercises.newton_step
def newton_step(M, S):
    return 2 * M - M @ S @ M""",
    "gd-closed-form": """@exercises.gd_closed_form
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - lr * (S @ w - b)
    return w""",
}


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
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
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


def cell(notebook: NotebookNode, name: str) -> NotebookNode:
    [found] = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name]
    return found


def hand_in(root: Path, student: str, notebook: NotebookNode | bytes, file: str = f"{NAME}.ipynb") -> Path:
    """Put a notebook, or raw bytes, where a student's submission belongs."""
    folder = root / "grading" / "submitted" / student / NAME
    folder.mkdir(parents=True)
    data = (
        notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    )  # as it is: nbformat would mend it
    (folder / file).write_bytes(data)
    return folder / file


def asking_without_end(pause):
    """Return an answer that asks for a stand-in again and again, with a pause in seconds between."""
    return f"""
@exercises.gd_closed_form
def gd_closed_form(S, b, lr, steps):
    import time
    from companion.workshop.grading.sandbox import worker
    while True:
        worker.say(worker.PIPES[1], {{"stand_in": ["a", "b"], "named": [], "places": []}})
        worker.hear(worker.PIPES[0])
        time.sleep({pause})
"""
