"""What a learner sees is what a learner should read: cells compute or draw, and those that draw are folded."""

import ast
import io
import re
import tokenize

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.workshop.cli.lessons import released
from companion.workshop.cli.minutes import folded, tags

LESSONS = released()
NOTEBOOKS = [path for lesson in LESSONS for path in lesson.notebooks]
DRAWS = re.compile(r"plt\.|\bsns\.|\baxe?s?\.|\bfigure\b|Picture\(|\bprint\(|claims\.")
LONGEST, SHARE = 25, 2 / 3  # lines of a visible cell; of the visible lines, how much computes


def visible(notebook: nbformat.NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code" and not folded(cell)]


def computes_and_draws(source: str) -> tuple[int, int]:
    """Lines of statements that compute, and of those that draw, print or claim."""
    lines = [0, 0]
    for node in ast.parse(source).body:
        statement = ast.get_source_segment(source, node)
        lines[bool(DRAWS.search(statement))] += statement.count("\n") + 1
    return lines[0], lines[1]


def broken_by_a_comment(source: str) -> list[str]:
    """Short statements that stand on several lines since a comment behind them made them too long for one."""
    found = []
    comments = {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return) and node.end_lineno > node.lineno:
            text = ast.get_source_segment(source, node)
            one_line = re.sub(r",? ([)\]}])", r"\1", re.sub(r"([(\[{]) ", r"\1", " ".join(text.split())))
            behind = node.end_lineno in comments and lines[node.end_lineno - 1][: comments[node.end_lineno]].strip()
            if behind and '"""' not in text and len(one_line) + node.col_offset <= 88:
                found.append(one_line)
    return found


def faults(notebook: nbformat.NotebookNode) -> list[str]:
    """What keeps a lesson's visible cells from being read."""
    cells = visible(notebook)
    found = [
        f"a visible cell of {len(source.splitlines())} lines: {source.splitlines()[0]}"
        for source in cells
        if len(source.splitlines()) > LONGEST
    ]
    computing, drawing = map(sum, zip(*map(computes_and_draws, cells), strict=True))
    if computing < SHARE * (computing + drawing):
        found.append(f"of {computing + drawing} visible lines only {computing} compute")
    found += [f"broken by a comment: {line}" for source in cells for line in broken_by_a_comment(source)]
    for cell in notebook.cells:
        imports = re.match(r"(import|from) ", cell.source)  # and set-up, which may be folded, too
        if cell.cell_type == "code" and not imports and folded(cell) != ("drawing" in tags(cell)):
            found.append(f"folded without the tag drawing, or the other way round: {cell.source.splitlines()[0]}")
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_stays_visible_computes(path):
    assert not faults(nbformat.read(path, as_version=4))


HIDDEN = {"jupyter": {"source_hidden": True}, "tags": ["drawing"]}


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ([("x = 1\ny = 2", {}), ("print(x)", {})], None),
        ([("x = 1", {}), ("print(x)", {})], "of 2 visible lines only 1 compute"),
        ([("x = 1", {}), ("print(x)", HIDDEN)], None),
        ([("x = 1\n" * 25, {})], None),
        ([("x = 1\n" * 26, {})], "a visible cell of 26 lines: x = 1"),
        ([("x = 1", {}), ("ax.plot(x)\n" * 60, HIDDEN)], None),
        ([("x = 1", {}), ("print(x)", {"jupyter": {"source_hidden": True}})], "folded without the tag drawing"),
        ([("x = 1", {"tags": ["drawing"]})], "folded without the tag drawing"),
        ([("f(\n    1\n)  # why it is one", {})], "broken by a comment: f(1)"),
        ([("# why it is one\nf(1)\ng(2)  # two", {})], None),
        ([("x = [\n    1,  # one\n    2,\n]", {})], None),
    ],
)
def test_a_fault_is_named(cells, fault):
    notebook = new_notebook(cells=[new_code_cell(source, metadata=metadata) for source, metadata in cells])
    found = faults(notebook)
    assert (not found) if fault is None else found[0].startswith(fault)
