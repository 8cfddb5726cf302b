"""A tiny lesson in a tiny checkout, for the tests of the machinery."""

from base64 import b64decode
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NAME = "07-doubling"
PICTURE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
FACTS = {
    "title": "Doubling",
    "question": "What is twice a number?",
    "minutes": 5,
    "machine_seconds": 2,
    "needs": ["a number"],
}
AIM = "| You will be able to | *double* a number; *halve* it again |"
TIME = "| Time | about 5 minutes for you; 2 s of one core for the machine |"
CLAIM = {
    "id": "doubles",
    "kind": "experiment",
    "statement": "Doubles",
    "source": "Euclid, book VII",
    "where": "book VII",
    "published": "2",
    "threshold": "exactly 2",
    "control": "halving: 0.5",
    "interval": "",
    "reference": "",
    "checkpoint": "-",
    "run": "2",
    "expected": {"run": "as expected"},
    "verdict": "reproduced",
    "why": "twice a number: 2 for 2",
}


def graded(name: str, *, solution: bool) -> dict:
    """The metadata of an answer, or of the check that earns its point."""
    kind = {"solution": solution, "grade": not solution, "locked": not solution} | ({} if solution else {"points": 1})
    return {"nbgrader": {"grade_id": name, "schema_version": 3, "task": False, **kind}}


def notebook(
    exercise: str = "    return 2 * x", closing: str = "print('the end')", kept: str = "solved"
) -> nbformat.NotebookNode:
    """A solved lesson: parameters, an exercise with a stand-in, its check (whose output is kept), a claim and a closing
    cell.
    """
    keep = {"tags": ["keep_output", "nbval-check-output"]}
    check = (
        "try:\n    print('solved' if double(2) == 4 else 'wrong')\n"
        "except NotImplementedError:\n    print('not attempted')"
    )
    hidden = "\n### BEGIN HIDDEN TESTS\nassert double(3) == 6\n### END HIDDEN TESTS"
    cells = [
        new_markdown_cell(f"# Doubling\n\nWhat is twice a number?\n\n| | |\n|---|---|\n{AIM}\n{TIME}"),
        new_code_cell('SCALE = "course"\nSEED = 0', metadata={"tags": ["parameters"]}),
        new_markdown_cell("## A claim about two"),
        new_code_cell(
            "def double(x):\n    ### BEGIN SOLUTION\n" + exercise + "\n    ### END SOLUTION",
            metadata=graded("double", solution=True),
        ),
        new_code_cell(check + hidden, metadata=graded("double-check", solution=False) | keep),
        new_code_cell(
            "from IPython.display import display\n"
            f"display({{'application/vnd.companion.claims+json': [{CLAIM!r}], 'text/plain': 'one claim'}}, raw=True)"
        ),
        new_code_cell(closing),
    ]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    count = 0
    for cell in cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
    cells[4].outputs = [nbformat.v4.new_output("stream", name="stdout", text=kept + "\n")]
    return new_notebook(
        cells=cells,
        metadata={
            "companion": FACTS,
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": "3.99"},
        },
    )


def further(closing: str = "print('further')") -> nbformat.NotebookNode:
    """The second notebook: parameters, an exercise whose answer earns nothing, its check, a claim, a closing cell."""
    lesson = notebook(closing=closing)
    lesson.cells[0].source = lesson.cells[0].source.replace("# Doubling", "# Doubling, further")
    lesson.cells[3].metadata.nbgrader.grade_id = "double-further"
    check, claims = lesson.cells[4], lesson.cells[5]
    check.source, check.metadata = check.source.partition("\n### BEGIN")[0], {"tags": check.metadata.tags}
    claims.source = claims.source.replace(repr(CLAIM), repr(CLAIM | {"id": "halves"}))
    lesson.metadata.companion = {name: FACTS[name] for name in ("minutes", "machine_seconds")}
    return lesson


def checkout(root: Path, *, name: str = NAME, repository: str = "", two: bool = False, **changes) -> Path:
    """A folder with one solved lesson in ``solutions/``, of ``two`` notebooks if asked for; published at
    ``repository``; ``changes`` as for `notebook`.
    """
    folder = root / "solutions" / name
    folder.mkdir(parents=True)
    nbformat.write(notebook(**changes), folder / f"{name}.ipynb")
    if two:
        nbformat.write(further(), folder / f"{name}-further.ipynb")
    (folder / "figure.png").write_bytes(PICTURE)
    (root / "README.md").write_text("before\n<!-- lessons -->\n<!-- /lessons -->\nafter\n")
    (root / "pyproject.toml").write_text(f'[tool.companion]\nrepository = "{repository}"\n')
    return root
