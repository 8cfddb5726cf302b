"""The comparison with stored outputs really compares: a stored output that was changed must fail."""

import nbformat
import pytest
from nbval_lesson import compare_outputs
from sample_lesson import notebook


def stored(path, **changes):
    nbformat.write(notebook(**changes), path / "sample.ipynb")
    return path / "sample.ipynb"


def test_what_is_stored_passes(tmp_path):
    compare_outputs(stored(tmp_path))


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
        compare_outputs(stored(tmp_path, **changes))


def test_cells_that_keep_no_output_may_print_anything(tmp_path):
    compare_outputs(stored(tmp_path, closing="import random; print(random.random())"))
