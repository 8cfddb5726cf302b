"""Nobody's points depend on who else hands in: two at a time, honest ones beside hostile ones."""

import pytest
from nbformat.v4 import new_code_cell
from workshop.grading.answers import HEAD, RIGHT, asking_without_end
from workshop.grading.sharing import holding
from workshop.grading.small_lesson import AUTOMATIC, NAME, checkout, edited, hand_in, handed_in, rows, solved

from companion.workshop.cli import grade
from companion.workshop.cli.lessons import select_lessons
from companion.workshop.grading.course import classroom
from companion.workshop.grading.sandbox.sandbox import Limits

pytestmark = pytest.mark.needs("sandbox")
LATER = "    import time\n    if torch.get_default_dtype() == torch.float64:\n        time.sleep({})\n"
LETTERS = f"mine = '{chr(0x1D54F) * 980_000}'"  # in JSON twelve times as long
OF_ALL = {name.replace("-", "_"): source.replace("):\n", "):\n    mine\n", 1) for name, source in RIGHT.items()}
HONEST = {
    "anna": (solved(), [1, 2, 3]),
    "bert": (solved(newton_step=HEAD + "    return 2 * M @ torch.eye(len(S)) - M @ S @ M"), [1, 0, 3]),  # of float32
    "carl": (solved(newton_step=HEAD + "    return 3 * M - M @ S @ M"), [1, 0, 3]),
    "dora": (edited(lambda notebook: notebook.cells.insert(3, new_code_cell(LETTERS)), solved(**OF_ALL)), [1, 2, 3]),
}
HOSTILE = {  # their names sort first
    "a dtype 1": (solved(newton_step=HEAD + LATER.format(1.6) + "    return 1 + 2 * M - M @ S @ M"), [1, 0, 3]),
    "a dtype 2": (solved(newton_step=HEAD + LATER.format(1.1) + "    return 1 + 2 * M - M @ S @ M"), [1, 0, 3]),
    "a question without end": (
        handed_in({"newton-step": RIGHT["newton-step"], "gd-closed-form": asking_without_end(0.2)}),
        [0, 2, 0],
    ),
    "a type of a long name": (
        solved(newton_step=f'"""{"a " * 80_000}"""\n{HEAD}    raise type("a " * 40_000 + "b", (Exception,), {{}})'),
        [1, 0, 3],
    ),
}


def test_nobodys_points_depend_on_anybody_else(tmp_path):
    root = checkout(tmp_path)
    for name, (notebook, _) in (HOSTILE | HONEST).items():
        hand_in(root, name, notebook)
    assert grade.grade(select_lessons([NAME], root)[0], root, jobs=2) == []
    found = {student: [int(row[name]) for name in AUTOMATIC] for student, row in rows(root).items()}
    assert found == {name: points for name, (_, points) in (HOSTILE | HONEST).items()}


def test_what_holds_the_process_that_marks_has_a_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr(classroom, "mark", holding)
    root = checkout(tmp_path)
    for name, source in (("a", f"# hold\n{RIGHT['newton-step']}"), ("b", RIGHT["newton-step"])):
        hand_in(root, name, handed_in({"newton-step": source}))
    limits = Limits(wall=1.5)  # dozens of times what it takes to give points without a sandbox
    assert grade.grade(select_lessons([NAME], root)[0], root, jobs=1, limits=limits) == []
    assert {name: row["newton-step-check"] for name, row in rows(root).items()} == {"a": "0", "b": "2"}
    assert "took more than 1.5 seconds" in rows(root)["a"]["needs_a_person"]
