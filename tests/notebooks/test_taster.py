"""The taster is short, leads to every lesson, runs to its end with the model and without, and leaves no model."""

import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbval_lesson import execute, set_scale, validate

from companion.workshop.cli.lessons import all_lessons, everything
from companion.workshop.cli.minutes import count_words, prose
from companion.workshop.cli.setup import ROOT

[TASTER] = [each for each in everything() if each.is_taster]
RELEASED = ROOT / "lessons" / TASTER.path


def faults(notebook: nbformat.NotebookNode) -> list[str]:
    """What makes a released taster too long, or keeps it from leading on, each with its limit."""
    words, text = count_words(prose(notebook)), "\n".join(cell.source for cell in notebook.cells)
    wrong = {
        f"{len(notebook.cells)} cells; at most 20": len(notebook.cells) > 20,
        f"{words} words of prose; at most 600": words > 600,
        f"{notebook.metadata.companion.machine_seconds} s of the machine; at most 15": (
            notebook.metadata.companion.machine_seconds > 15
        ),
        f"{notebook.metadata.companion.minutes} minutes; at most 15": notebook.metadata.companion.minutes > 15,
        "a cell is graded": any(cell.metadata.get("nbgrader", {}).get("grade") for cell in notebook.cells),
        "it makes claims": "Claims(" in text,
    }
    wrong |= {f"no link to {each.name}": f"(../{each.path})" not in text for each in all_lessons()}
    return [fault for fault, is_wrong in wrong.items() if is_wrong]


def test_it_is_short_and_leads_to_every_lesson():
    notebook = nbformat.read(RELEASED, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "colab" not in cell.metadata.get("tags", [])]
    assert not faults(notebook)


@pytest.mark.parametrize(
    ("cells", "facts", "fault"),
    [
        ([], {}, None),
        ([new_code_cell("1", id=f"cell-{n}") for n in range(20)], {}, "21 cells; at most 20"),
        ([new_markdown_cell("word " * 600)], {}, "601 words of prose; at most 600"),
        ([], {"machine_seconds": 16}, "16 s of the machine"),
        ([], {"minutes": 20}, "20 minutes; at most 15"),
        ([new_code_cell("1", metadata={"nbgrader": {"grade": True}})], {}, "a cell is graded"),
        ([new_code_cell('claims = Claims("00-first")')], {}, "it makes claims"),
    ],
)
def test_a_fault_is_named(cells, facts, fault):
    links = new_markdown_cell("".join(f"[](../{each.path})" for each in all_lessons()))  # one word
    metadata = {"companion": {"machine_seconds": 10, "minutes": 15} | facts}
    found = faults(new_notebook(cells=[links, *cells], metadata=metadata))
    assert (not found) if fault is None else [each.startswith(fault) for each in found] == [True]


def test_a_lesson_that_it_forgets_is_named():
    found = faults(new_notebook(metadata={"companion": {"machine_seconds": 1, "minutes": 1}}))
    assert found == [f"no link to {each.name}" for each in all_lessons()]


def told(executed: nbformat.NotebookNode) -> str:
    """What its cells print, one after another; every figure has alt text."""
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    assert all(each.metadata["image/png"]["alt"] for each in outputs if "image/png" in each.get("data", {}))
    assert sum("image/png" in each.get("data", {}) for each in outputs) == 3
    assert any("attention-map" in each.get("data", {}).get("text/html", "") for each in outputs)
    return "\n".join(each.text for each in outputs if each.output_type == "stream")


LEFT = """import gc
print(sum(type(each).__name__ in ('LanguageModel', 'RandomModel') for each in gc.get_objects()), 'models left')"""
SAYS = ("not a planet.", "stone: 0.91; with the wire cut 0.88", "look_back: correct")


@pytest.mark.parametrize("scale", ["smoke", "course"])
def test_solved_it_gives_what_it_stores_with_the_model_and_what_is_stored_is_the_same(scale, tmp_path, request):
    if scale == "course":
        request.getfixturevalue("smollm2")
    folder = shutil.copytree(TASTER.source.parent, tmp_path / TASTER.name)
    path = folder / TASTER.source.name
    set_scale(path, scale)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(new_code_cell(LEFT, execution_count=99))
    nbformat.write(notebook, path)
    said = told(validate(path))
    assert [each for each in SAYS if each not in said] == []
    assert ("(stored)" in said) == (scale == "smoke")
    assert "\n0 models left" in said


def test_unsolved_it_runs_to_its_end():
    assert re.search(r"^look_back: not attempted$", told(execute(RELEASED)), re.MULTILINE)
