"""``run`` executes every lesson, names the cell that fails, and reports."""

import json
import subprocess
import sys

import nbformat
import pytest
from commands import called
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image
from sample_lesson import CLAIM, NAME, checkout

from companion.lesson.claims import statements
from companion.workshop.cli import run
from companion.workshop.cli.lessons import LessonError

PICTURED = """import torch
from PIL import Image
S = torch.eye(2)
Image.new("RGB", (480, 240), (0, 0, int(255 * newton_step(S / 2, S)[0, 0])))
"""


SMOKE = ("--scale", "smoke", "--seed", 3, "--out")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(exit status, folder, report) of a lesson that fails, one whose kernel dies, and one that is well."""
    root = tmp_path_factory.mktemp("checkout")
    checkout(root, name="05-dying", closing="import os; os._exit(3)")
    checkout(root, name="06-failing", closing="[SCALE, SEED][2]")
    checkout(
        root,
        name=NAME,
        two=True,
        closing="assert (SCALE, SEED) == ('smoke', 3)\nbig = bytearray(200 * 2**20)\nimport time; time.sleep(0.3)",
    )
    large = "big = bytearray(900 * 2**20); input()"  # that of another process, which a run did not start
    with subprocess.Popen([sys.executable, "-c", large], stdin=subprocess.PIPE) as other:
        status = called("run", *SMOKE, root / "out", root=root)
        other.communicate(b"\n")
    return status, root / "out", json.loads((root / "out/report.json").read_text())


def test_the_report_says_everything(ran):
    _, _, report = ran
    assert list(report) == ["lessons"]
    dying, failing, well = report["lessons"]
    assert list(well) == ["lesson", "scale", "seed", "seconds", "peak_rss_mib", "errors", "claims", "evidence"]
    assert (well["lesson"], well["scale"], well["seed"], well["errors"]) == (NAME, "smoke", 3, [])
    assert well["claims"] == [CLAIM, CLAIM | {"id": "halves"}], "of both notebooks"
    assert list(well["seconds"]) == [NAME, f"{NAME}-further"]
    assert all(0 < seconds < 60 for seconds in well["seconds"].values())
    assert 200 < well["peak_rss_mib"] < 600, "the kernel's memory, not that of others"
    assert failing["errors"] == [
        '06-failing, cell 7 ("A claim about two"), `[SCALE, SEED][2]`: IndexError: list index out of range'
    ]
    assert dying["errors"] == [
        '05-dying, cell 7 ("A claim about two"), `import os; os._exit(3)`: DeadKernelError: Kernel died'
    ]
    assert failing["claims"] == [CLAIM], "what was claimed before the failure"


def test_a_failing_cell_does_not_stop_the_others(ran):
    status, out, _ = ran
    assert status == 1
    names = ("05-dying", "06-failing", NAME, f"{NAME}-further")
    assert {path.name for path in out.iterdir()} == {"report.json", *(f"{name}.ipynb" for name in names)}
    assert "big = bytearray" in (out / f"{NAME}.ipynb").read_text()


def test_the_report_keeps_what_it_says_of_lessons_that_did_not_run_again(tmp_path):
    checkout(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    kept = [{"lesson": "03-gone", "claims": [1]}, {"lesson": NAME, "claims": [2]}]
    (out / "report.json").write_text(json.dumps({"lessons": kept}))
    assert run.kept_entries(out / "report.json", set(), tmp_path) == kept[1:]
    assert run.kept_entries(out / "report.json", {NAME}, tmp_path) == []
    (out / "report.json").write_text("{")
    assert run.kept_entries(out / "report.json", set(), tmp_path) == []
    assert run.kept_entries(tmp_path / "none.json", set(), tmp_path) == []


def test_claims_of_both_notebooks_stand_in_the_order_of_the_lesson_s_file():
    first, second, *_ = statements("01-attention-basics")
    claims = [{"id": second}, {"id": first}]
    assert run.in_order(claims, "01-attention-basics") == claims[::-1]
    assert run.in_order(claims, NAME) == claims, "a lesson without a file"


def test_the_question_and_its_answer_are_drawn(tmp_path):
    pictures = [
        new_output("display_data", {"image/png": "cXVlc3Rpb24="}),
        new_output("display_data", {"image/png": "YQ=="}),
    ]
    tagged = [
        new_code_cell("", metadata={"tags": ["drawing", name]}, outputs=[output])
        for name, output in zip(("figure", "answer"), pictures, strict=True)
    ]
    run.draw_pictures(new_notebook(cells=tagged), tmp_path)
    assert (tmp_path / "figure.png").read_bytes() == b"question"
    assert (tmp_path / "answer.png").read_bytes() == b"a"
    assert len(list(tmp_path.iterdir())) == 2
    tagged[1].outputs = []
    with pytest.raises(LessonError, match="the cell tagged answer shows 0 pictures; must show exactly one"):
        run.draw_pictures(new_notebook(cells=tagged), tmp_path)


def test_a_new_lesson_has_its_pictures_before_it_is_released(tmp_path, capsys):
    folder = checkout(tmp_path) / f"solutions/{NAME}"
    (folder / "figure.png").unlink()
    lesson = nbformat.read(folder / f"{NAME}.ipynb", as_version=4)
    lesson.cells[2] = new_code_cell("from companion.topics.regression import exercises", id="import")
    lesson.cells[3].source = (
        '@exercises.newton_step\ndef newton_step(M, S):\n    """A step."""\n'
        "    ### BEGIN SOLUTION\n    ### END SOLUTION"
    )
    lesson.cells[4].source = "exercises.newton_step.check(newton_step)"
    lesson.cells[6] = new_code_cell(PICTURED, id="figure", metadata={"tags": ["figure", "drawing"]})
    nbformat.write(lesson, folder / f"{NAME}.ipynb")
    assert called("run", "--pictures", *SMOKE, tmp_path / "out", root=tmp_path) == 0, capsys.readouterr().out
    with Image.open(folder / "figure.png") as drawn:
        assert drawn.getpixel((0, 0)) == (0, 0, 191), "by the answer that the exercise has: 2 M - M S M = 3/4"
    assert called("release", root=tmp_path) == 0
    assert (tmp_path / f"lessons/{NAME}/figure.png").read_bytes() == (folder / "figure.png").read_bytes()
    assert "raise NotImplementedError" in (tmp_path / f"lessons/{NAME}/{NAME}.ipynb").read_text()
