"""The solved lesson, run once, by nbval: it gives what it stores, earns nbgrader's full points, sees of its claims what
is written of them, and its figures have alt text. And a lesson of which some answers are wrong or missing, run by
nbgrader: each costs its own points alone.
"""

import os
import re
import shutil
import sys
from itertools import cycle
from pathlib import Path

import nbformat
import pytest
from nbval_lesson import set_parameters, set_scale, validate
from sources import differences_of_run
from written_claims import differences

from companion.workshop.cli.lessons import all_lessons
from companion.workshop.cli.run import harvest, measured_in
from companion.workshop.grading.notebook.syntax import defined, used

SCALE = os.environ.get("COURSE_TEST_SCALE", "course")  # of the solved lesson; `companion test --quick` says smoke
WRONG = 'return "no tensor"'


@pytest.fixture
def course(tmp_path, monkeypatch):
    """nbgrader's door to a course of its own, in this process: a new one for each command would load it anew. It
    executes what it marks, or marks what is handed in by the outputs that it has.
    """
    import workshop.grading.small_lesson  # noqa: F401 - from there on, a new database waits for neither disk nor alembic
    from nbgrader.apps import NbGraderAPI
    from nbgrader.converters import Autograde
    from nbgrader.preprocessors import ClearOutput, Execute
    from traitlets.config import Config

    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # it starts alembic by name
    monkeypatch.setenv("PATH", path)

    def door(*, executes):
        config = Config()
        config.CourseDirectory.root, config.CourseDirectory.course_id = str(tmp_path), "test"
        config.CourseDirectory.source_directory = "solutions"
        config.ExecutePreprocessor.timeout = 1200  # a cell that hangs, however busy the machine
        for steps in () if executes else (Autograde.sanitize_preprocessors, Autograde.autograde_preprocessors):
            config.Autograde[steps.name] = [step for step in steps.default() if step not in (ClearOutput, Execute)]
        return NbGraderAPI(config=config)

    return door


def hand_in_solved(lesson, folder):
    """Hand in the solved lesson as nbval ran it, beside its files; AssertionError if it does not give what it stores,
    at smoke scale with no claim assessed.
    """
    target = folder / "submitted" / "solved" / lesson.name / lesson.source.name
    shutil.copytree(lesson.source.parent, target.parent)
    set_scale(target, SCALE)
    executed = validate(target)
    nbformat.write(executed, target)
    return executed


def hand_in_mixed(lesson, folder, edit):
    """Hand in what ``edit`` makes of the source of every code cell of the lesson as released, at smoke scale and with
    another seed, without what no answer and no check needs: it earns nothing.
    """
    notebook = nbformat.read(folder / "release" / lesson.name / lesson.source.name, as_version=4)
    kept, wanted = [], set()
    for cell in reversed(notebook.cells):
        cell.source = edit(cell)
        if "nbgrader" in cell.metadata or (cell.cell_type == "code" and wanted & defined(cell.source)):
            kept.insert(0, cell)
            wanted |= used(cell.source) if cell.cell_type == "code" else set()
    notebook.cells = kept
    set_parameters(notebook, "smoke", seed=1)
    target = folder / "submitted" / "mixed" / lesson.name
    target.mkdir(parents=True)
    nbformat.write(notebook, target / lesson.source.name)


def outputs_of_checks(notebook):
    """Return what the cells gave from whose outputs points follow, by nbgrader's name."""
    checks = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    return {cell.metadata.nbgrader.grade_id: cell.outputs for cell in checks if cell.cell_type == "code"}


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

    def mix(cell):
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        match fates.get(name):
            case "wrong":
                return cell.source.replace("raise NotImplementedError", WRONG)
            case "solved":
                return answers[name]
        return cell.source

    (tmp_path / "solutions" / lesson.name).mkdir(parents=True)
    nbformat.write(source, tmp_path / "solutions" / lesson.name / lesson.source.name)
    nbgrader, marker = course(executes=True), course(executes=False)
    assert (made := nbgrader.generate_assignment(lesson.name))["success"], made["log"]
    executed = hand_in_solved(lesson, tmp_path)
    hand_in_mixed(lesson, tmp_path, mix)
    assert (marked := marker.autograde(lesson.name, "solved"))["success"], marked["log"]
    assert (marked := nbgrader.autograde(lesson.name, "mixed"))["success"], marked["log"]
    autograded = nbformat.read(tmp_path / "autograded" / "solved" / lesson.name / lesson.source.name, as_version=4)
    assert outputs_of_checks(autograded) == outputs_of_checks(executed), "a check without outputs would earn its points"

    points = {}
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        for student in ("solved", "mixed"):
            [graded] = book.find_submission(lesson.name, student).notebooks
            points[student] = {
                grade.name: grade.auto_score for grade in graded.grades if grade.cell.cell_type == "code"
            }
            full = {grade.name: grade.max_score for grade in graded.grades if grade.cell.cell_type == "code"}
    assert points["solved"] == full
    spoiled = [re.search(r"def (\w+\()", answers[name]) for name, fate in fates.items() if fate == "wrong"]
    rests = [name for name in fates if any(called and called[1] in answers[name] for called in spoiled)]
    lost = {f"{name}-check": 0 for name, fate in fates.items() if fate != "solved" or name in rests}
    assert points["mixed"] == full | {name: 0 for name in lost if name in full}  # a person marks what is written
    claims = harvest(executed)
    assert claims, "a lesson makes claims"
    assert len({claim["id"] for claim in claims}) == len(claims)
    if SCALE == "course":
        assert not (found := differences(lesson, claims)), "\n".join(found)
        assert not (found := differences_of_run(lesson.name, measured_in(executed))), "\n".join(found)
    for number, cell in enumerate(executed.cells, 1):
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                assert output.metadata.get("image/png", {}).get("alt"), f"the figure of cell {number} has no alt text"
