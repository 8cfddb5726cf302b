"""The comparison with stored outputs really compares: a stored output that was changed must fail."""

import nbformat
import pytest
from nbval_lesson import validate
from sample_lesson import notebook

from companion.workshop.cli.run import harvest


def stored(path, **changes):
    nbformat.write(notebook(**changes), path / "sample.ipynb")
    return path / "sample.ipynb"


def test_what_is_stored_passes_and_what_ran_is_given_back(tmp_path):
    executed = validate(stored(tmp_path))
    assert executed.cells[4].outputs == notebook().cells[4].outputs
    assert executed.cells[6].outputs[0].text == "the end\n", "what is not stored is there as well"
    assert [claim["id"] for claim in harvest(executed)] == ["doubles"]
    assert [cell.execution_count for cell in executed.cells if cell.cell_type == "code"] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kept": "solved by somebody else"}, "mismatch 'stdout'"),
        ({"exercise": "    return x * x"}, "caused an exception"),
        ({"exercise": "    raise NotImplementedError"}, "caused an exception"),
        ({"closing": "1 / 0"}, "ZeroDivisionError"),
    ],
)
def test_what_is_not_stored_or_raises_fails(tmp_path, changes, message):
    with pytest.raises(AssertionError, match=message):
        validate(stored(tmp_path, **changes))


def test_a_stored_output_of_a_cell_that_was_not_run_fails(tmp_path):
    unrun = notebook()
    unrun.cells[4].execution_count = None
    nbformat.write(unrun, tmp_path / "sample.ipynb")
    with pytest.raises(AssertionError, match="Unrun reference cell has outputs"):
        validate(tmp_path / "sample.ipynb")


def test_cells_that_keep_no_output_may_print_anything(tmp_path):
    validate(stored(tmp_path, closing="import random; print(random.random())"))


def test_files_beside_the_notebook_are_found(tmp_path):
    (tmp_path / "figure.png").write_bytes(b"a picture")
    validate(stored(tmp_path, closing="assert open('figure.png').read() == 'a picture'"))


def test_what_is_drawn_is_in_the_notebook(tmp_path):
    executed = validate(stored(tmp_path, closing="import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"))
    assert "image/png" in executed.cells[6].outputs[0].data
