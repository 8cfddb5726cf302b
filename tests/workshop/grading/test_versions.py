"""Whether an answer to an older version of an exercise is one to this, by its text alone."""

import pytest

from companion.workshop.grading.notebook.versions import series, unfit, unwritten


@pytest.mark.parametrize(
    "answer, stub, fits",
    [
        ("def f(a, b):\n    1", "def f(x, y): 1", True),
        ("def f(a, b=1): 1", "def f(x, y): 1", True),
        ("def f(*a): 1", "def f(x, y): 1", True),
        ("def f(a): 1", "def f(x, y): 1", False),
        ("def f(a, b): 1", "def f(x, y=1): 1", False),
        ("def f(a: 1", "def f(x, y): 1", True),  # it cannot be told
        ("f = len", "def f(x, y): 1", True),
    ],
)
def test_a_function_that_cannot_be_called_as_it_is_now_does_not_fit(answer, stub, fits):
    assert unfit(answer, stub, "f", since="", version="0.3.0") == ("" if fits else "has other parameters now")


def test_an_exercise_that_asks_for_something_else_is_told_by_its_version():
    same = "def f(x): 1"
    assert unfit(same, same, "f", since="0.10", version="0.9.1") == "asks for something else since version 0.10"
    assert unfit(same, same, "f", since="0.10", version="0.10.0") == ""
    assert unfit(same, same, "f", since="0.10", version="") == "", "an editor has lost it"
    assert series("0.10.3") == (0, 10)


@pytest.mark.parametrize(
    "source, stub",
    [
        ('@e.f\ndef f(x):\n    """Text."""\n    # here\n    raise NotImplementedError', True),
        ("def f(x):\n    x += 1\n    raise NotImplementedError", False),
        ("half = 0.5\ndef f(x):\n    raise NotImplementedError", False),
        ("def f(x):\n    raise ValueError", False),
        ("def f(x:", False),
        ("", False),
    ],
)
def test_a_stub_of_any_version(source, stub):
    assert unwritten(source) is stub
