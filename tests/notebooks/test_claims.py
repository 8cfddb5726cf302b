"""Each lesson records the claims of its file in ``companion/published``, each in one of its notebooks: all of them, no
others, in its order.
"""

import ast

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from companion.lesson.claims import PUBLISHED, statements
from companion.lesson.verdicts import NONE_PUBLISHED
from companion.workshop.cli.lessons import Lesson, all_lessons


def recorded(notebook: nbformat.NotebookNode) -> list[str]:
    """The ids in the notebook's calls of ``claims.record`` and ``saw``, in order. Each must stand there as a text."""
    ids = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        calls = [
            node
            for node in ast.walk(ast.parse(cell.source))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("claims.record", "claims.saw")
        ]
        for call in sorted(calls, key=lambda call: call.lineno):
            assert isinstance(call.args[0], ast.Constant), f"write the id out: {ast.unparse(call)}"
            ids.append(call.args[0].value)
    return ids


def believed(notebook: nbformat.NotebookNode) -> list[str]:
    """The ids for which a call of ``claims.believe`` has words."""
    calls = [
        node
        for cell in notebook.cells
        if cell.cell_type == "code" and "claims.believe(" in cell.source
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "claims.believe"
    ]
    return [ast.literal_eval(key) for call in calls for key in call.args[0].keys]


def faults(notebooks: list[nbformat.NotebookNode], name: str, file: list[str]) -> list[str]:
    """What is wrong between a lesson's notebooks and the ids of its file."""
    recordings = [recorded(notebook) for notebook in notebooks]
    ids = [id for own in recordings for id in own]
    found = [f"{id}: is not in the file" for id in ids if id not in file]
    found += [f"{id}: is never recorded" for id in file if id not in ids]
    for own in recordings if not found else ():
        due = [id for id in file if id in own]
        found += [f"the order is {', '.join(own)}; in the file it is {', '.join(due)}"] if own != due else []
    found += [f"{id}: is recorded twice" for id in file if ids.count(id) > 1]
    for notebook, own in zip(notebooks, recordings, strict=True):
        if (words := believed(notebook)) and words != own:
            found.append(f"the words of what to believe are for {', '.join(words)}; recorded is {', '.join(own)}")
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        if f'Claims("{name}", SCALE)' not in code:
            found.append(f'make them by Claims("{name}", SCALE)')
        if "claims.add(" in code:
            found.append("claims.add: what it says belongs into the file")
        if 'or SCALE == "smoke"' in code:
            found.append("true by decree at smoke scale; there it is not assessed")
    return found


def read(lesson: Lesson) -> list[nbformat.NotebookNode]:
    return [nbformat.read(path, as_version=4) for path in lesson.notebooks]


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)
def test_the_lesson_records_the_claims_of_its_file(lesson):
    assert not faults(read(lesson), lesson.name, list(statements(lesson.name)))


def kept_verdicts(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """The verdicts, by id, that the one cell ``claims.verdicts()`` of a notebook keeps."""
    cells = [cell for cell in notebook.cells if cell.source.strip() == "claims.verdicts()"]
    assert len(cells) == 1, f"{len(cells)} cells `claims.verdicts()`; there must be one"
    assert cells[0].outputs, "`claims.verdicts()` keeps no output; run the notebook and strip it (CONTRIBUTING.md, 2)"
    lines = cells[0].outputs[0].text.splitlines()
    return dict(line.split(": ") for line in lines if line != NONE_PUBLISHED)


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)
def test_the_stored_verdicts_are_the_files(lesson):
    judged = {each.id: each.verdict() for each in statements(lesson.name).values() if each.verdict()}
    assert {id: each for notebook in read(lesson) for id, each in kept_verdicts(notebook).items()} == judged


def test_a_notebook_may_keep_that_it_has_no_published_claims():
    cell = new_code_cell("claims.verdicts()", outputs=[new_output("stream", text=f"{NONE_PUBLISHED}\n")])
    assert kept_verdicts(new_notebook(cells=[cell])) == {}
    cell.outputs = []
    with pytest.raises(AssertionError, match="keeps no output; run the notebook"):
        kept_verdicts(new_notebook(cells=[cell]))


def test_every_lesson_has_its_file_and_every_file_its_lesson():
    files = [file.stem for file in sorted(PUBLISHED.glob("*.toml"))]
    assert files == [lesson.name for lesson in all_lessons()], "write companion/published/NN-topic.toml"


MAKE = 'claims = Claims("99-sample", SCALE)'
FIRST = 'claims.record("first", run="1", holds=True)'
SEEN = 'claims.saw("first", "1")'
SECOND = 'claims.record(\n    "second", run="1", holds=True\n)'


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ([MAKE, FIRST, SECOND], None),
        ([MAKE, f"{FIRST}\n{SECOND}"], None),
        ([MAKE, FIRST], "second: is never recorded"),
        ([MAKE, FIRST, SECOND, FIRST.replace("first", "third")], "third: is not in the file"),
        ([MAKE, FIRST, FIRST, SECOND], "the order is first, first, second; in the file it is first, second"),
        ([MAKE, SECOND, FIRST], "the order is second, first; in the file it is first, second"),
        (["claims = Claims()", FIRST, SECOND], 'make them by Claims("99-sample", SCALE)'),
        ([MAKE, FIRST, SECOND.replace("True", 'x > 1 or SCALE == "smoke"')], "true by decree"),
        ([MAKE, FIRST, SECOND, 'claims.believe({"first": "Yes."})'], "the words of what to believe are for first;"),
        ([MAKE, FIRST, SECOND, 'claims.add("third", "s", run="1", holds=True)'], "claims.add: "),
    ],
)
def test_a_disagreement_is_named(cells, fault):
    notebook = new_notebook(cells=[new_markdown_cell("# A lesson"), *map(new_code_cell, cells)])
    found = faults([notebook], "99-sample", ["first", "second"])
    assert (not found) if fault is None else found[0].startswith(fault)


@pytest.mark.parametrize(
    ("lesson", "further", "fault"),
    [
        ([SEEN], [SECOND], None),
        ([SECOND], [SEEN], None),
        ([SEEN, SECOND], [], None),
        ([SEEN], [], "second: is never recorded"),
        ([SEEN, SECOND], [FIRST], "first: is recorded twice"),
        ([SEEN], [SECOND, FIRST], "the order is second, first"),
    ],
)
def test_two_notebooks_share_the_claims(lesson, further, fault):
    notebooks = [new_notebook(cells=[*map(new_code_cell, [MAKE, *cells])]) for cells in (lesson, further)]
    found = faults(notebooks, "99-sample", ["first", "second"])
    assert (not found) if fault is None else found[0].startswith(fault)


def test_an_id_that_is_put_together_is_refused():
    with pytest.raises(AssertionError, match="write the id out"):
        recorded(new_notebook(cells=[new_code_cell('claims.record(f"{name}", run="1", holds=True)')]))
