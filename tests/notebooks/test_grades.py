"""The solved lesson, run once, by nbgrader: it gives what it stores, earns full points, makes its claims, and its
figures have alt text. And a lesson of which some answers are wrong or missing: each costs its own points alone.
"""

import os
import re
import sys
from itertools import cycle
from pathlib import Path

import nbformat
import pytest
from stored_outputs import faults

from companion.workshop.cli.lessons import all_lessons
from companion.workshop.cli.run import harvest

SCALE = os.environ.get("COURSE_TEST_SCALE", "course")  # of the solved lesson; `companion test --quick` says smoke
WRONG = 'return "no tensor"'


@pytest.fixture
def course(tmp_path, monkeypatch):
    """nbgrader's door to a course of its own, in this process: a new one for each command would load it anew."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # it starts alembic by name
    monkeypatch.setenv("PATH", path)
    config = Config()
    config.CourseDirectory.root, config.CourseDirectory.course_id = str(tmp_path), "test"
    config.CourseDirectory.source_directory = "solutions"
    config.ExecutePreprocessor.timeout = 1200  # a cell that hangs, however busy the machine
    return NbGraderAPI(config=config)


def hand_in(lesson, folder, student, *, edit, scale, seed, without=""):
    """What ``edit`` makes of the source of every code cell of the lesson as released, at this scale and with this
    seed, as the student's submission; cells with the tag ``without`` are gone.
    """
    notebook = nbformat.read(folder / "release" / lesson.name / lesson.source.name, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = edit(cell)
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = cell.source.replace('SCALE = "course"', f'SCALE = "{scale}"')
            cell.source = cell.source.replace("SEED = 0", f"SEED = {seed}")
    notebook.cells = [cell for cell in notebook.cells if without not in cell.metadata.get("tags", [])]
    target = folder / "submitted" / student / lesson.name
    target.mkdir(parents=True)
    nbformat.write(notebook, target / lesson.source.name)


def due(source, scale):
    """The source with what its cells must give at ``scale``: what they store, at smoke scale with no claim assessed."""
    for cell in source.cells if scale == "smoke" else ():
        for output in cell.get("outputs", []):
            output.text = re.sub(r": (holds|does not hold)$", ": not assessed", output.text, flags=re.M)
    return source


@pytest.mark.filterwarnings("default")  # nbgrader's own deprecations are not ours to mend
@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)
def test_a_lesson_gives_what_it_stores_and_points_go_to_right_answers_alone(lesson, course, tmp_path):
    from nbgrader.api import Gradebook

    source = nbformat.read(lesson.source, as_version=4)
    answers = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    fates = dict(zip(answers, cycle(("wrong", "solved", "left alone")), strict=False))

    def solve(cell):
        return answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)

    def mix(cell):
        match fates.get(cell.metadata.get("nbgrader", {}).get("grade_id")):
            case "wrong":
                return cell.source.replace("raise NotImplementedError", WRONG)
            case "solved":
                return solve(cell)
        return cell.source

    (tmp_path / "solutions" / lesson.name).mkdir(parents=True)
    nbformat.write(source, tmp_path / "solutions" / lesson.name / lesson.source.name)
    assert (made := course.generate_assignment(lesson.name))["success"], made["log"]
    hand_in(lesson, tmp_path, "solved", edit=solve, scale=SCALE, seed=0)
    # a picture earns nothing
    hand_in(lesson, tmp_path, "mixed", edit=mix, scale="smoke", seed=1, without="drawing")
    assert (marked := course.autograde(lesson.name, "solved"))["success"], marked["log"]
    executed = nbformat.read(tmp_path / "autograded" / "solved" / lesson.name / lesson.source.name, as_version=4)
    assert not faults(due(source, SCALE), executed)
    assert (marked := course.autograde(lesson.name, "mixed"))["success"], marked["log"]

    points = {}
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        for student in ("solved", "mixed"):
            [graded] = book.find_submission(lesson.name, student).notebooks
            points[student] = {
                grade.name: grade.auto_score for grade in graded.grades if grade.cell.cell_type == "code"
            }
            full = {grade.name: grade.max_score for grade in graded.grades if grade.cell.cell_type == "code"}
    assert points["solved"] == full
    lost = {f"{name}-check": 0 for name, fate in fates.items() if fate != "solved"}
    assert points["mixed"] == full | {name: 0 for name in lost if name in full}  # a person marks what is written
    identifiers = [claim["id"] for claim in harvest(executed)]
    assert identifiers, "a lesson makes claims"
    assert len(set(identifiers)) == len(identifiers)
    for number, cell in enumerate(executed.cells, 1):
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                assert output.metadata.get("image/png", {}).get("alt"), f"the figure of cell {number} has no alt text"
