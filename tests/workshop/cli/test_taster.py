"""A taster is made, copied, run and shown like a lesson, as the first of all; it is not graded, and does not count."""

import json

import nbformat
import pytest
from commands import called
from sample_lesson import CLAIM, NAME, checkout

from companion.workshop.cli import evidence, run, scoreboard, site, work
from companion.workshop.cli.lessons import LessonError, all_lessons, everything, select_lessons

TASTER = "00-first-taste"


@pytest.fixture
def root(tmp_path):
    """A checkout with a taster and a lesson, both released."""
    checkout(checkout(tmp_path), name=TASTER)
    assert called("release", root=tmp_path) == 0
    return tmp_path


def test_it_is_no_lesson_and_yet_one_of_all(root):
    assert [lesson.name for lesson in all_lessons(root)] == [NAME]
    assert [(each.name, each.is_taster) for each in everything(root)] == [(TASTER, True), (NAME, False)]
    with pytest.raises(LessonError, match=f"there is no such lesson; there is {NAME}$"):
        select_lessons(["00"], root)


def test_it_is_released_and_stands_first(root):
    taster, lesson = (nbformat.read(root / f"lessons/{name}/{name}.ipynb", as_version=4) for name in (TASTER, NAME))
    assert "return 2 * x" not in str(taster)
    assert taster.cells[-1].source.startswith(f"Next: [07 Doubling](../{NAME}/{NAME}.ipynb)")
    assert lesson.cells[-1].source.startswith(f"Before: [00 Doubling](../{TASTER}/{TASTER}.ipynb)")
    for page in ("README.md", "lessons/README.md"):
        text = (root / page).read_text(encoding="utf-8")
        assert 0 < text.index("**[00 Doubling]") < text.index("**[07 Doubling]")
    assert called("release", "00", "--check", root=root) == 0


def test_one_begins_with_it_and_it_can_be_begun_anew(root, capsys):
    work.refresh(root)
    assert f"**[Begin here]({TASTER}/{TASTER}.ipynb)**" in (root / "work/README.md").read_text(encoding="utf-8")
    assert called("progress", "--reset", "00", "--yes", root=root) == 0
    assert f"A fresh copy is in work/{TASTER}" in capsys.readouterr().out


def test_it_runs_makes_no_claims_and_has_a_page(root, capsys):
    path = root / f"solutions/{TASTER}/{TASTER}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "claims+json" not in cell.source]
    nbformat.write(notebook, path)
    assert called("run", "00", "--out", root / "run", "--evidence", root=root) == 0
    assert f"{TASTER}: " in capsys.readouterr().out
    report = json.loads((root / "run/report.json").read_bytes())
    [entry] = report["lessons"]
    assert (entry["lesson"], entry["claims"], entry["errors"]) == (TASTER, [], [])
    assert evidence.table_of_runs(root) == []
    assert run.kept_entries(root / "run/report.json", {NAME}, root) == [entry], "another run keeps it"
    lacking = f"{root / 'run'} lacks {NAME}: `python3 -m companion run 07` makes it"
    assert site.unfit(root, root / "run") == [lacking]
    report["lessons"].append(entry | {"lesson": NAME, "claims": [CLAIM]})
    (root / "run/report.json").write_text(json.dumps(report))
    assert [chapter.name for chapter in site.course(root, root / "run", ()).chapters] == [TASTER, NAME]
    claims = scoreboard.table(report, all_lessons(root))
    assert "## 07" in claims and "## 00" not in claims and "Of 1 published claims" in claims
