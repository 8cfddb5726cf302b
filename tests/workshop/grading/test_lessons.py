"""The lessons themselves: solved, solved differently, unsolved and with every exercise wrong, each with exactly its
points.
"""

import html
import json

import pytest
from workshop.grading.honest import right, wrong
from workshop.grading.sharing import PATIENT, all_in, one_process
from workshop.grading.small_lesson import grade_id, hand_in, page, rows

from companion.workshop.cli import grade
from companion.workshop.cli.lessons import select_lessons

pytestmark = pytest.mark.needs("sandbox")
NAME = "02-in-context-regression"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A checkout with lesson 02, and the students' notebooks by what they answer."""
    root = tmp_path_factory.mktemp("course")
    [lesson] = select_lessons([NAME])
    folder = root / "solutions" / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_bytes(lesson.source.read_bytes())
    released = json.loads((lesson.source.parents[2] / "lessons" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    return root, lesson, released


def answered(released, answers):
    """The released notebook with ``answers`` by function, as bytes."""
    notebook = json.loads(json.dumps(released))
    for cell in notebook["cells"]:
        cell["source"] = answers.get(grade_id(cell).replace("-", "_"), cell["source"])
    return json.dumps(notebook).encode()


def test_each_gets_its_points_and_its_diagnosis(course):
    root, lesson, released = course
    handout = grade.questions(lesson, root)
    functions = [question.function for question in handout.automatic]
    solution = json.loads(lesson.source.read_text(encoding="utf-8"))
    marks = {grade_id(cell).replace("-", "_"): "".join(cell["source"]) for cell in solution["cells"]}
    classmates = {
        "solved": {name: marks[name] for name in functions},
        "solved differently": {name: right(name) for name in functions},
        "unsolved": {},
        "wrong": {name: wrong(name)[0] for name in functions},
        "half": {name: marks[name] for name in functions[::2]},
    }
    for student, answers in classmates.items():
        hand_in(root, student, answered(released, answers), f"{NAME}/{NAME}.ipynb")
    with one_process(PATIENT) as process, all_in(process):
        assert grade.grade(select_lessons([NAME], root)[0], root, jobs=1, limits=PATIENT) == []
    table = rows(root, NAME)
    full = {question.id: question.points for question in handout.automatic}
    got = {student: {name: float(row[name]) for name in full} for student, row in table.items()}
    assert got["solved"] == got["solved differently"] == full
    assert got["unsolved"] == got["wrong"] == dict.fromkeys(full, 0)
    assert got["half"] == {name: points * (number % 2 == 0) for number, (name, points) in enumerate(full.items())}
    for name in functions:
        assert html.escape(wrong(name)[1]) in page(root, "wrong", NAME)
    assert not any("suspicious" in row["needs_a_person"] for row in table.values())
