"""Every unsolved lesson runs, and every lesson stands in the form that the course keeps its notebooks in; solved
lessons run in `test_grades`.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
from commands import called
from nbval_lesson import execute

from companion.workshop.cli.lessons import Lesson, everything, released
from companion.workshop.cli.minutes import tags

SOLUTIONS, UNSOLVED = everything(), released()
REMOTE = re.compile(
    r"""!\[[^\]]*\]\(\s*https?:|<(?:img|script|iframe|video|link)\b[^>]*(?:src|href)\s*=\s*["']?https?:|@import|url\(\s*["']?https?:"""
)
FETCHES = re.compile(
    r"^\s*[%!]|\bsys\.path\b|\bpip\b|\burlopen\b|\burlretrieve\b|\brequests\.|\bload_state_dict_from_url\b|from_pretrained",
    re.M,
)
IMAGE = re.compile(r"!\[(?P<markdown>[^\]]*)\]\([^)]*\)|<img\b(?P<html>[^>]*)>")


def notebooks(*lessons: Lesson) -> pytest.MarkDecorator:
    """Each notebook of these lessons in turn."""
    paths = [path for lesson in lessons for path in lesson.notebooks]
    return pytest.mark.parametrize("path", paths, ids=lambda path: f"{path.parts[-3]}/{path.stem}")


solved, unsolved, both = notebooks(*SOLUTIONS), notebooks(*UNSOLVED), notebooks(*SOLUTIONS, *UNSOLVED)


@cache
def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", [lesson.source for lesson in UNSOLVED], ids=lambda path: path.stem)
def test_the_unsolved_lesson_runs_to_its_end(path):
    """Its second notebook does in `test_further`."""
    execute(path)


def test_the_lessons_are_what_the_solutions_give(capsys):
    assert called("release", "--check") == 0, capsys.readouterr().out


@pytest.mark.parametrize("lesson", SOLUTIONS, ids=lambda lesson: lesson.name)
def test_the_lesson_says_what_the_start_page_needs(lesson):
    facts = lesson.facts()
    assert facts["question"].endswith("?")
    assert 0 < facts["machine_seconds"] <= 120
    assert all(isinstance(need, str) for need in facts["needs"])


@solved
def test_the_solution_is_stored_after_a_run_from_top_to_bottom(path):
    counts = [cell.execution_count for cell in code(read(path))]
    assert counts == list(range(1, len(counts) + 1)), (
        "the cells are not counted 1, 2, 3, ...: run the notebook from top to bottom and strip it (CONTRIBUTING.md, 2)"
    )


def test_the_solutions_are_stripped():
    paths = [str(path) for lesson in SOLUTIONS for path in lesson.notebooks]
    verify = [sys.executable, "-m", "nbstripout", "--verify", "--keep-id", "--keep-count", *paths]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run nbstripout --keep-id --keep-count: {done.stdout}{done.stderr}"


@solved
def test_what_is_compared_is_what_is_kept(path):
    kept = [cell for cell in code(read(path)) if "keep_output" in tags(cell)]
    assert kept
    for cell in code(read(path)):
        assert ("keep_output" in tags(cell)) == ("nbval-check-output" in tags(cell)), cell.source
    for cell in kept:
        assert [output.output_type for output in cell.outputs] == ["stream"], (
            f"must keep one printed text, and nothing else; run it (CONTRIBUTING.md, 2) if it was not:\n{cell.source}"
        )


@both
def test_it_has_one_parameters_cell_with_the_courses_defaults(path):
    parameters = [cell.source for cell in code(read(path)) if "parameters" in tags(cell)]
    assert len(parameters) == 1
    names: dict = {}
    exec(parameters[0], names)
    assert (names["SCALE"], names["SEED"]) == ("course", 0)


@both
def test_cells_are_identified_and_none_hides_a_failure(path):
    notebook = read(path)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert not [cell.source for cell in notebook.cells if "raises-exception" in tags(cell)]


@both
def test_it_takes_nothing_from_elsewhere(path):
    for number, cell in enumerate(read(path).cells, 1):
        found = (FETCHES if cell.cell_type == "code" else REMOTE).search(cell.source)
        assert not found, f"cell {number}: {found[0]!r}"


@both
def test_every_picture_in_the_text_is_there_and_has_alt_text(path):
    for number, cell in enumerate(read(path).cells, 1):
        for image in IMAGE.finditer(cell.source) if cell.cell_type == "markdown" else ():
            alt = image["markdown"] if image["html"] is None else "".join(re.findall(r'alt="([^"]*)"', image["html"]))
            assert len(alt) >= 8, f"cell {number}: {image[0]}"
            target = re.search(r'\]\(([^)\s]+)|src="([^"]+)"', image[0])
            assert (path.parent / (target[1] or target[2])).is_file(), f"cell {number}: {image[0]}"


@unsolved
def test_the_lesson_gives_nothing_away(path):
    for cell in code(read(path)):
        assert not cell.outputs
        assert cell.execution_count is None
        assert "HIDDEN TESTS" not in cell.source
        assert "BEGIN SOLUTION" not in cell.source
