"""Answers come from the exercises, to the letter, or not at all."""

import sys
import textwrap
from importlib.util import module_from_spec, spec_from_file_location

import nbformat
import pytest
from commands import called
from sample_lesson import NAME, checkout

from companion.workshop.cli import answers

SOURCE = f"solutions/{NAME}/{NAME}.ipynb"
CHECKS = '''
import math

import torch
from torch import Tensor

from companion.lesson.exercise import Exercise, exercise


@exercise(draw=dict)
def double(
    x: Tensor, times: int = 1
) -> Tensor:
    """Twice x,

    again and again.
    """
    # a power of two, so that nothing is rounded

    for _ in range(times):
        x = 2 * x  # and not x + x
    return x


@exercise(draw=dict)
def fourfold(x):
    return double.answer(double.answer(x))


@exercise(draw=dict)
def helped(x):
    return 4 * _half(x)


def _half(x):
    return x / 2


@exercise(draw=dict)
def shifted(x):
    return x + math.pi


quick = Exercise("quick", lambda x: 2 * x, dict)
'''
DOUBLE = """# a power of two, so that nothing is rounded

for _ in range(times):
    x = 2 * x  # and not x + x
return x"""
STUB = """@exercises.{name}
def {name}({parameters}):
    ### BEGIN SOLUTION
    old
    ### END SOLUTION"""


@pytest.fixture
def checks(tmp_path, monkeypatch):
    """The module of a topic's exercises, as a lesson imports it."""
    path = tmp_path / "doubling.py"
    path.write_text(CHECKS)
    specification = spec_from_file_location("companion.topics.doubling", path)
    module = module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "companion.topics.doubling", module)
    specification.loader.exec_module(module)
    return module


def stub(name="double", parameters="x, times=1"):
    return STUB.format(name=name, parameters=parameters)


def lesson(root, *sources):
    """A checkout whose lesson has these exercises."""
    path = checkout(root / "course") / SOURCE
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].source += "\nimport torch\nfrom companion.topics import doubling as exercises"
    notebook.cells[3].source = sources[0]
    for number, source in enumerate(sources[1:]):
        cell = nbformat.v4.new_code_cell(source, id=f"more-{number}", metadata=notebook.cells[3].metadata)
        cell.metadata = cell.metadata | {"nbgrader": cell.metadata.nbgrader | {"grade_id": f"more-{number}"}}
        notebook.cells.insert(4 + number, cell)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return path


def run(path, *, check=False):
    return called("release", *["--check"] * check, root=path.parents[2])


def test_the_text_of_an_answer_is_its_body_with_comments(checks):
    assert answers.answer_text(checks.double) == DOUBLE


def test_an_answer_that_calls_anothers_calls_the_learners(checks):
    assert answers.answer_text(checks.fourfold) == "return double(double(x))"


@pytest.mark.parametrize("indent", ["", "    ", "        "])
def test_an_answer_is_indented_as_its_markers_are(indent):
    source = f"above\n{indent}### BEGIN SOLUTION\n{indent}### END SOLUTION\nbelow"
    lines = answers.put_answer(source, DOUBLE).split("\n")
    assert lines[2:-2] == [indent + line if line else "" for line in DOUBLE.split("\n")]
    assert (lines[0], lines[-1]) == ("above", "below")
    assert answers.put_answer("\n".join(lines), DOUBLE) == "\n".join(lines)


def test_release_writes_the_answers_and_nothing_else(tmp_path, checks, capsys):
    path = lesson(tmp_path, stub(), stub("fourfold", "x"))
    before = path.read_text(encoding="utf-8")
    assert run(path) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"{SOURCE}: cell 4, the answer of double is not that of companion.topics.doubling.double;")
    new, old = (nbformat.reads(text, as_version=4) for text in (path.read_text(encoding="utf-8"), before))
    assert new.cells[3].source == stub().replace("    old", textwrap.indent(DOUBLE, "    "))
    assert new.cells[4].source == stub("fourfold", "x").replace("    old", "    return double(double(x))")
    for cell in (3, 4):
        new.cells[cell].source = old.cells[cell].source
    assert nbformat.writes(new) + "\n" == before, "ids, counts, outputs and the cell without an exercise are kept"
    assert "2 * x" not in (path.parents[2] / f"lessons/{NAME}/{NAME}.ipynb").read_text(encoding="utf-8")

    written, at = path.read_bytes(), path.stat().st_mtime_ns
    assert run(path) == 0
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (written, at), "what agrees is not written again"


def test_check_names_an_answer_with_another_letter(tmp_path, checks, capsys):
    path = lesson(tmp_path, stub())
    run(path)
    edited = path.read_text(encoding="utf-8").replace("2 * x  #", "3 * x  #")
    path.write_text(edited, encoding="utf-8")
    capsys.readouterr()
    assert run(path, check=True) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{SOURCE}: cell 4, the answer of double is not that of companion.topics.doubling.double; "
        "change it there, and `release` writes it here",
        "1 differences; run `release`",
    ]
    assert path.read_text(encoding="utf-8") == edited


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            [stub("helped", "x")],
            "helped: companion.topics.doubling.helped uses _half, which the lesson does not import",
        ),
        ([stub("shifted", "x")], "companion.topics.doubling.shifted uses math, which the lesson does not import"),
        ([stub("fourfold", "x")], "fourfold uses double, which the lesson does not import"),
        ([stub(parameters="x, n")], "parameters are x, n; those of companion.topics.doubling.double are x, times"),
        ([stub("quick", "x")], "quick: the course's answer is `lambda x: 2 * x`; must be a plain `def`"),
        (
            [stub().replace("\n    ### END SOLUTION", "")],
            "double: there are 0 lines `### END SOLUTION`; must be exactly one",
        ),
        (
            [stub().replace("    old", "    ### BEGIN SOLUTION")],
            "there are 2 lines `### BEGIN SOLUTION`; must be exactly one",
        ),
        (["@exercises.double\ndef double(x, times):\n    return x"], "there are 0 lines `### BEGIN SOLUTION`"),
        (
            [stub().replace("BEGIN", "?").replace("END", "BEGIN").replace("?", "END")],
            "stands before `### BEGIN SOLUTION`",
        ),
        ([stub() + "\n\n" + stub("helped", "x")], "another exercise stands in the same cell"),
        ([stub("dubble")], "cell 4: companion.topics.doubling has no exercise dubble"),
        ([stub().replace("(x", "(x:")], "double: invalid syntax"),
    ],
)
def test_what_cannot_be_written_is_named_and_nothing_is(tmp_path, checks, capsys, sources, message):
    path = lesson(tmp_path, *sources)
    before = path.read_bytes()
    for check in (False, True):
        assert run(path, check=check) == 1
        out = capsys.readouterr().out
        assert out.startswith(f"release: {NAME}: cell 4") and message in out
    assert path.read_bytes() == before
    assert not (path.parents[2] / "lessons").exists()
