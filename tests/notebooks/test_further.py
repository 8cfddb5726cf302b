"""The notebooks beside a lesson: solved (weekly) and unsolved it gives what it stores, solved it sees of its claims
what is written of them, and nothing in it earns points.
"""

import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbval_lesson import set_scale, validate
from sample_lesson import NAME, further, graded
from sources import differences_of_run
from written_claims import differences

from companion.workshop.cli.lessons import all_lessons
from companion.workshop.cli.run import harvest, measured_in
from companion.workshop.cli.setup import ROOT

FURTHER = {path: lesson for lesson in all_lessons() for path in lesson.beside.values()}
each = pytest.mark.parametrize("path", FURTHER, ids=lambda path: path.stem)


def faults(notebook: nbformat.NotebookNode, name: str) -> list[str]:
    """What one beside a lesson, called ``name``, has that only the lesson may have."""
    found = []
    for number, cell in enumerate(notebook.cells, 1):
        if cell.metadata.get("nbgrader", {}).get("grade"):
            found.append(f"cell {number} is graded")
        if "HIDDEN TESTS" in cell.source:
            found.append(f"cell {number} has a hidden part")
        for key in re.findall(r"\bPredictions\(\"([^\"]*)\"", cell.source) if cell.cell_type == "code" else ():
            if key != name:
                found.append(f'cell {number} keeps predictions as {key}: make them by Predictions("{name}")')
    return found


@each
def test_nothing_in_it_earns_points_and_its_predictions_are_its_own(path):
    assert not faults(nbformat.read(path, as_version=4), path.stem)


def gives_what_it_stores(path):
    executed = validate(path)
    for number, cell in enumerate(executed.cells, 1):
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                assert output.metadata.get("image/png", {}).get("alt"), f"the figure of cell {number} has no alt text"
    return executed


@pytest.mark.weekly
@each
def test_solved_it_gives_what_it_stores(path, tmp_path):
    folder = shutil.copytree(path.parent, tmp_path / path.parent.name)
    executed = gives_what_it_stores(folder / path.name)
    assert not (found := differences(FURTHER[path], harvest(executed))), "\n".join(found)
    assert not (found := differences_of_run(FURTHER[path].name, measured_in(executed))), "\n".join(found)


@each
def test_unsolved_it_runs_to_its_end_and_gives_what_it_stores(path, tmp_path):
    """As released, but with what the solved one stores, and no exercise attempted: the few answers are run by the tests
    of wrong answers.
    """
    folder = shutil.copytree(ROOT / "lessons" / path.parent.name, tmp_path / path.parent.name)
    unsolved = nbformat.read(folder / path.name, as_version=4)
    stored = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    for cell in unsolved.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = stored[cell.id].outputs, stored[cell.id].execution_count
            if check := re.match(r"exercises\.(\w+)\.check\(", cell.source):
                cell.outputs[0].text = f"{check[1]}: not attempted\n"
    nbformat.write(unsolved, folder / path.name)
    set_scale(folder / path.name, "smoke", seed=1)
    gives_what_it_stores(folder / path.name)


@pytest.mark.parametrize(
    ("source", "metadata", "fault"),
    [
        ("exercises.double.check(double)", {}, None),
        ("exercises.double.check(double)", graded("x", solution=False), "cell 1 is graded"),
        ("x = 1\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS", {}, "cell 1 has a hidden part"),
        (f'predictions = Predictions("{NAME}-further")', {}, None),
        (f'predictions = Predictions("{NAME}")', {}, f"cell 1 keeps predictions as {NAME}: make them by"),
    ],
)
def test_a_fault_is_named(source, metadata, fault):
    found = faults(new_notebook(cells=[new_code_cell(source, metadata=metadata)]), f"{NAME}-further")
    assert (not found) if fault is None else found[0].startswith(fault)


def test_the_sample_has_none():
    assert not faults(further(), f"{NAME}-further")
