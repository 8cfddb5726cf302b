"""Every answer in the solutions is the one that its exercise holds."""

import nbformat
import pytest
from wrong_answers.cases import EXERCISES

from companion.workshop.cli.answers import BEGIN, places, put_answers
from companion.workshop.cli.lessons import all_lessons, everything

SOLUTIONS = all_lessons()
NOTEBOOKS = [path for each in everything() for path in each.notebooks]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_answers_are_the_exercises_own(path):
    _, differences = put_answers(path)
    assert not differences


def test_every_exercise_stands_in_one_notebook_once():
    names = [place.exercise.name for path in NOTEBOOKS for place in places(path, nbformat.read(path, as_version=4))]
    due = {exercise.name for exercise in EXERCISES.values()}
    assert sorted(names) == sorted(due), f"not both an exercise and in a notebook: {due ^ {*names}}"


@pytest.mark.parametrize("lesson", SOLUTIONS, ids=lambda lesson: lesson.name)
def test_beside_them_only_the_written_question_has_a_solution(lesson):
    """A cell of code with a solution is an exercise's; the one answer in words is the open problem's."""
    notebook = nbformat.read(lesson.source, as_version=4)
    written = {place.cell.id for place in places(lesson.source, notebook)}
    others = [cell for cell in notebook.cells if BEGIN in cell.source and cell.id not in written]
    assert [cell.cell_type for cell in others] == ["markdown"]
    assert others[0].source.startswith("## Open problem, and a question to answer in writing")
