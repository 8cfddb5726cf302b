"""A lesson with a language model in it runs and is graded on a machine that has none: a small random one is in its
place, and an exercise whose check has no grade is marked nowhere.
"""

import copy
import json

import pytest
from nbformat.v4 import new_code_cell
from workshop.grading import small_lesson
from workshop.grading.answers import RIGHT
from workshop.grading.sharing import PATIENT
from workshop.grading.small_lesson import NAME, cell, checkout, hand_in, handed_in, page, rows

from companion.lesson.attempts import Mistake
from companion.workshop.cli import grade
from companion.workshop.cli.lessons import select_lessons
from companion.workshop.grading.course.marking import mark
from companion.workshop.grading.notebook.handout import HandoutError
from companion.workshop.grading.notebook.submissions import assemble, cells
from companion.workshop.grading.sandbox.worker import Kernel

sandboxed = pytest.mark.needs("sandbox")
MARKED = {"triplet-tokens-check": 1, "newton-step-check": 2}
TURNED = "the sign of the answer is turned"
SET_UP = """from companion import Claims
from companion.pretrained.lesson import language_model

model = language_model("smollm2", SCALE)
claims = Claims("06-induction-heads", SCALE)"""
USES_THE_MODEL = """tokens = model.batch(["The capital of France is", "The capital of Norway is"])
logits, cache = model.run_with_cache(tokens, names="blocks.18.attn.hook_pattern", only_last=True)
heads = []
list(map(heads.append, [model.heads]))  # a change that only running all cells makes"""
USES_AN_ANSWER = """W_K = model.model.blocks[18].attention.keys.weight[:8]
half = newton_step(torch.eye(8), W_K @ W_K.mT)
claims.saw("global-first", "what is stored, wherever this runs")
claims.verdicts()"""
BY_THE_MODEL = "@exercises.newton_step\ndef newton_step(M, S):\n    return (heads[0] - 7) * M - M @ S @ M"
STUDENTS = {
    "solved": RIGHT,
    "by the model": RIGHT | {"newton-step": BY_THE_MODEL},
    "unsolved": {},
    "wrong": RIGHT | {"newton-step": RIGHT["newton-step"].replace("2 * M - M @ S @ M", "M @ S @ M - 2 * M")},
}


def lesson():
    """The small lesson with a cell that gets the model, one that uses it, and a last exercise whose check has no grade,
    whatever it may take.
    """
    notebook = copy.deepcopy(small_lesson.solution())
    notebook.cells = [each for each in notebook.cells if "RuntimeError" not in each.source]
    check = cell(notebook, "gd-closed-form-check")
    check.source, check.metadata = check.source.partition("\n### BEGIN")[0], {}
    notebook.cells[3:3] = [new_code_cell(SET_UP), new_code_cell(USES_THE_MODEL)]
    notebook.cells.append(new_code_cell(USES_AN_ANSWER))
    for number, each in enumerate(notebook.cells):
        each.id = f"cell-{number}"
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A checkout with the lesson, in which everybody has handed in."""
    root = checkout(tmp_path_factory.mktemp("course"), lesson())
    for student, answers in STUDENTS.items():
        hand_in(root, student, handed_in(answers, lesson=lesson()))
    return root, select_lessons([NAME], root)[0]


@sandboxed
def test_it_is_graded_within_the_limits_where_there_is_no_model(course, monkeypatch, tmp_path):
    """Reference, answers and whole notebooks: all in sandboxes of their own, which have what everybody's have."""
    root, small = course
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    assert grade.grade(small, root, jobs=1) == []
    table = rows(root)
    got = {student: {name: float(row[name]) for name in MARKED} for student, row in table.items()}
    half = MARKED | {"newton-step-check": 0}
    assert got == {"solved": MARKED, "by the model": MARKED, "unsolved": dict.fromkeys(MARKED, 0), "wrong": half}
    assert "gd-closed-form-check" not in table["solved"], "its check has no grade"
    assert "decided by the whole notebook: newton-step-check" in table["by the model"]["needs_a_person"]
    assert TURNED in page(root, "wrong")
    assert not any("suspicious" in row["needs_a_person"] for row in table.values())


@sandboxed
def test_a_model_that_the_sandbox_cannot_see_changes_no_mark(course, shared, monkeypatch, tmp_path):
    (tmp_path / "smollm2").mkdir()
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    handout = grade.questions(course[1], course[0])
    for student, points in (("by the model", 2), ("wrong", 0)):
        notebook = handed_in(STUDENTS[student], lesson=lesson())
        submission = assemble(handout, cells(json.dumps(notebook).encode()))
        result = mark(submission, handout, [11, 12], PATIENT, unsafe=False)
        assert result["exercises"]["newton-step-check"]["points"] == points, result


def run_all(notebook, scale="course"):
    """Run all cells, as a kernel does."""
    kernel = Kernel()
    for each in notebook.cells:
        if each.cell_type == "code":
            kernel.run(each.source.replace('SCALE = "course"', f'SCALE = "{scale}"'))


@pytest.mark.parametrize("scale", ["smoke", "course"])
@pytest.mark.parametrize("student, said", [("solved", "correct"), ("unsolved", "not attempted")])
def test_run_all_ends_without_the_model(student, said, scale, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    run_all(handed_in(STUDENTS[student], lesson=lesson()), scale)
    shown = capsys.readouterr().out
    assert ("python3 -m companion fetch smollm2" in shown) == (scale == "course")
    assert f"gd_closed_form: {said}" in shown, "the check without a grade"
    assert shown.endswith("global-first: " + ("not assessed\n" if scale == "smoke" else "reproduced\n"))


def test_a_wrong_answer_is_told_without_the_model(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    with pytest.raises(Mistake, match=TURNED):
        run_all(handed_in(STUDENTS["wrong"], lesson=lesson()))


def test_with_the_model_it_shows_the_same_but_for_the_sentence(smollm2, monkeypatch, tmp_path, capsys):
    run_all(handed_in(RIGHT, lesson=lesson()))
    there = capsys.readouterr().out
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    run_all(handed_in(RIGHT, lesson=lesson()))
    assert capsys.readouterr().out.partition("\n")[2] == there


def test_an_answer_that_is_marked_rests_on_none_that_is_not(tmp_path):
    """Where that is not attempted, nothing could stand in for it."""
    notebook = lesson()
    answer = cell(notebook, "newton-step")
    answer.source = answer.source.replace("return 2 * M", "return gd_closed_form(M, M, 0, 0) * 0 + 2 * M")
    place = notebook.cells.index(cell(notebook, "gd-closed-form"))
    notebook.cells.insert(3, notebook.cells.pop(place))
    root = checkout(tmp_path, notebook)
    message = "the answer to newton-step-check uses gd_closed_form, whose check must have a grade"
    with pytest.raises(HandoutError, match=message):
        grade.questions(select_lessons([NAME], root)[0], root)
