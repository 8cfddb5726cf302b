"""What a lesson asks for comes back: every prediction is held beside a measurement."""

import ast
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.workshop.cli.lessons import released

NOTEBOOKS = [path for lesson in released() for path in lesson.notebooks]
ASK = {"number", "choice", "words"}


def not_compared(notebook: nbformat.NotebookNode) -> set[str]:
    """The ids that are asked for and that no ``compare`` names: as a text, as one that is put together when it runs,
    or, where a variable has the name, as a text that stands elsewhere in the notebook.
    """
    source = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    nodes = list(ast.walk(ast.parse(source)))
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
    ours = [call for call in calls if ast.unparse(call.func).startswith("predictions.")]
    asked = [call.args[0] for call in ours if call.func.attr in ASK]
    compared, ids = [call.args[0] for call in ours if call.func.attr == "compare"], {node.value for node in asked}
    others = {node.value for node in nodes if isinstance(node, ast.Constant) and node not in asked}
    for name in compared:
        parts = name.values if isinstance(name, ast.JoinedStr) else [name]
        if isinstance(name, ast.Constant | ast.JoinedStr):
            pattern = "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in parts)
            ids = {id for id in ids if not re.fullmatch(pattern, id)}
        else:
            ids -= others
    return ids


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_asked_is_compared(path):
    assert not_compared(nbformat.read(path, as_version=4)) == set()


@pytest.mark.parametrize(
    ("compares", "left"),
    [
        ('predictions.compare("mod-2", 3)\npredictions.compare("why", "so")', set()),
        ('predictions.compare("mod-2", 3)\npredictions.mark(ax, "why", x=1)', {"why"}),
        ('predictions.compare(f"mod-{m}", 3)', {"why"}),
        ('for name in ("why", "when"):\n    predictions.compare(name, 3)', {"mod-2"}),
        ("", {"mod-2", "why"}),
    ],
)
def test_what_is_forgotten_is_seen(compares, left):
    asked = 'predictions.number("mod-2", "How many?")\npredictions.words("why", "Why?")'
    assert not_compared(new_notebook(cells=[new_code_cell(asked), new_code_cell(compares)])) == left
