"""The comparison with stored outputs really compares: a stored output that was changed must fail."""

import nbformat
import pytest
from nbval_lesson import validate
from sample_lesson import notebook

from companion.workshop.cli.run import harvest


def stored(path, **changes):
    nbformat.write(notebook(**changes), path / "sample.ipynb")
    return path / "sample.ipynb"


ANYTHING = """import random
import matplotlib.pyplot as plt
assert open('figure.png').read() == 'a picture'
print('the end', random.random())
plt.plot([1, 2])
plt.show()"""


def test_what_is_stored_passes_and_what_ran_is_given_back(tmp_path):
    """A cell that keeps no output may print anything; it finds files beside the notebook."""
    (tmp_path / "figure.png").write_bytes(b"a picture")
    executed = validate(stored(tmp_path, closing=ANYTHING))
    assert executed.cells[4].outputs == notebook().cells[4].outputs
    printed, drawn = executed.cells[6].outputs
    assert printed.text.startswith("the end "), "what is not stored is there as well"
    assert "image/png" in drawn.data
    assert [claim["id"] for claim in harvest(executed)] == ["doubles"]
    assert [cell.execution_count for cell in executed.cells if cell.cell_type == "code"] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        (
            {"kept": "solved by somebody else", "closing": "1 / 0"},
            ["mismatch 'stdout'", "ZeroDivisionError", "2 failed"],
        ),
        ({"exercise": "    return x * x"}, ["caused an exception"]),
        ({"exercise": "    raise NotImplementedError"}, ["caused an exception"]),
    ],
)
def test_what_is_not_stored_or_raises_fails(tmp_path, changes, messages):
    with pytest.raises(AssertionError) as failed:
        validate(stored(tmp_path, **changes))
    assert [message for message in messages if message not in str(failed.value)] == []


def test_a_stored_output_of_a_cell_that_was_not_run_fails(tmp_path):
    unrun = notebook()
    unrun.cells[4].execution_count = None
    nbformat.write(unrun, tmp_path / "sample.ipynb")
    with pytest.raises(AssertionError, match="Unrun reference cell has outputs"):
        validate(tmp_path / "sample.ipynb")
