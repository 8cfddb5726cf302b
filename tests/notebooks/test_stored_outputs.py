"""The comparison with stored outputs really compares: a stored output that was changed must fail."""

import pytest
from nbclient import NotebookClient
from sample_lesson import notebook
from stored_outputs import faults


def executed(**changes):
    """The sample lesson after a run of its own, which goes on behind a cell that raises."""
    return NotebookClient(notebook(**changes), timeout=300, allow_errors=True).execute()


@pytest.fixture(scope="module")
def sample():
    return executed()


def test_what_is_stored_passes(sample):
    assert faults(notebook(), sample) == []


def test_what_is_not_stored_is_named(sample):
    assert faults(notebook(kept="solved by somebody else"), sample) == [
        "cell 5 gives {'stdout': 'solved\\n'} and stores {'stdout': 'solved by somebody else\\n'}"
    ]


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"exercise": "    return x * x"}, ["cell 5 raises AssertionError: "]),
        (
            {"exercise": "    raise NotImplementedError"},
            [
                "cell 5 raises NotImplementedError: ",
                "cell 5 gives {'stdout': 'not attempted\\n', 'error': ''} and stores {'stdout': 'solved\\n'}",
            ],
        ),
        ({"closing": "1 / 0"}, ["cell 7 raises ZeroDivisionError: division by zero"]),
    ],
)
def test_what_raises_is_named(changes, messages):
    found = faults(notebook(**changes), executed(**changes))
    assert [message for message in messages if message not in found] == []


def test_a_cell_that_was_not_run_is_named(sample):
    assert faults(notebook(), notebook()) == []
    unrun = notebook()
    unrun.cells[6].execution_count = None
    assert faults(notebook(), unrun) == ["cell 7 was not run"]
    del unrun.cells[6]
    assert faults(notebook(), unrun) == ["cell 7 was not run"]


def test_cells_that_keep_no_output_may_print_anything(sample):
    assert faults(notebook(closing="import random; print(random.random())"), sample) == []
