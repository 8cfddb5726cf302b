"""A learner's own folder: lessons are copied there, and no update goes over what somebody has written."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from commands import called
from nbformat.v4 import new_code_cell, new_notebook, new_output
from sample_lesson import FACTS

from companion.workshop.cli import work
from companion.workshop.cli.lessons import released

NAME = "07-doubling"
OTHER = "08-tripling"
CHECK = {"nbgrader": {"grade": True, "solution": False, "grade_id": "x", "schema_version": 3, "locked": True}}


def publish(root: Path, name: str = NAME, *, version: str = "one", exercises: int = 3) -> Path:
    """A lesson with exercises and two questions, as it is released."""
    ask = 'predictions.number("steps", "How many?")\n', "predictions.choice(\n    'rate', 'Which?', ['a', 'b'])"
    cells = [new_code_cell(f"# version {version}"), *map(new_code_cell, ask)]
    cells += [new_code_cell(f"exercises.e{number}.check(e{number})", metadata=CHECK) for number in range(exercises)]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    folder = root / "lessons" / name
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata={"companion": FACTS}), folder / f"{name}.ipynb")
    (folder / "figure.png").write_text(f"picture {version}")
    return folder / f"{name}.ipynb"


def own(root: Path, name: str = NAME, suffix: str = "") -> Path:
    return root / "work" / name / f"{name}{suffix}.ipynb"


def edit(path: Path, *texts: str, answer: str = "my answer") -> None:
    """Work in a notebook as a learner would: write into its first cell, and run checks that say ``texts``."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source += f"\n# {answer}" if answer else ""
    for cell, text in zip(notebook.cells[3:], texts, strict=False):
        wrong = new_output("error", ename="Mistake", evalue="no", traceback=[])
        cell.outputs = [wrong if text == "raises" else new_output("stream", name="stdout", text=text)]
    nbformat.write(notebook, path)


def publish_further(root: Path, *, version: str = "one") -> Path:
    """A second notebook of the lesson, with one question and one check, which is not graded."""
    sources = [f"# version {version}", 'predictions.number("more", "How many more?")', "exercises.more.check(more)"]
    cells = [new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(sources)]
    path = root / "lessons" / NAME / f"{NAME}-further.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"companion": {"minutes": 30, "machine_seconds": 9}}), path)
    return path


@pytest.fixture
def root(tmp_path):
    publish(tmp_path)
    publish(tmp_path, OTHER)
    assert work.refresh(tmp_path) == []
    return tmp_path


def test_lessons_are_copied_with_all_that_belongs_to_them(root):
    assert own(root).read_bytes() == (root / "lessons" / NAME / f"{NAME}.ipynb").read_bytes()
    assert (root / "work" / OTHER / "figure.png").read_text() == "picture one"
    page = (root / "work/README.md").read_text()
    assert page.index(f"[07 Doubling]({NAME}/{NAME}.ipynb)") < page.index("own copies") < page.index("## Notation")


def test_nothing_happens_as_long_as_nothing_is_new(root):
    edit(own(root))
    before = {path: path.read_bytes() for path in (root / "work").rglob("*") if path.is_file()}
    assert work.refresh(root) == []
    assert {path: path.read_bytes() for path in (root / "work").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("was_run", [False, True])
def test_an_untouched_copy_is_updated(root, was_run):
    if was_run:
        edit(own(root), "e0: not attempted\n", answer="")
    new = publish(root, version="two")
    assert work.refresh(root) == []
    assert own(root).read_bytes() == new.read_bytes()
    assert (root / "work" / NAME / "figure.png").read_text() == "picture two"
    assert len(list((root / "work" / NAME).glob("*.ipynb"))) == 1


def test_a_newer_version_is_laid_beside_answers_and_never_over_them(root):
    edit(own(root))
    mine = own(root).read_bytes()
    new = publish(root, version="two")
    assert work.refresh(root) == [
        f"{NAME}: there is a newer version; it lies beside yours as {NAME} (new version).ipynb"
    ]
    assert own(root).read_bytes() == mine
    assert own(root, suffix=" (new version)").read_bytes() == new.read_bytes()
    page = (root / "work/README.md").read_text()
    assert f"newer version of lesson 07:** [{NAME} (new version)]({NAME}/{NAME}%20%28new%20version%29.ipynb)" in page
    assert work.refresh(root) == [], "said once"

    newer = publish(root, version="three")
    assert work.refresh(root) == []
    assert own(root, suffix=" (new version)").read_bytes() == newer.read_bytes(), "nobody has worked in that one"

    edit(own(root, suffix=" (new version)"))
    newest = publish(root, version="four")
    assert len(work.refresh(root)) == 1
    assert own(root, suffix=" (new version 2)").read_bytes() == newest.read_bytes()
    assert own(root).read_bytes() == mine


def test_both_notebooks_of_a_lesson_are_kept_apart(root, capsys):
    new = publish_further(root)
    assert work.refresh(root) == []
    copy = own(root, suffix="-further")
    assert copy.read_bytes() == new.read_bytes()
    edit(own(root), "e0: correct\n")
    notebook = nbformat.read(copy, as_version=4)
    notebook.cells[2].outputs = [new_output("stream", name="stdout", text="more: correct\n")]
    nbformat.write(notebook, copy)
    kept = {"lessons": {NAME: {}, f"{NAME}-further": {"more": {"prediction": 3.0, "verdict": "right"}}}}
    (root / "work" / NAME / "predictions.json").write_text(json.dumps(kept))
    assert called("progress", "07", root=root) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "07-doubling          1 of 3 solved, 2 not attempted  0 of 2 made",
        "07-doubling-further  1 of 1 solved                   1 of 1 made, 1 of 1 right",
    ]
    work.write_start_page(root)
    row = (
        "<br>**Done**: 1 of 3 solved, 2 not attempted; predictions: 0 of 2 made"
        "<br>**Done of Further**: 1 of 1 solved; predictions: 1 of 1 made, 1 of 1 right |"
    )
    assert row in (root / "work/README.md").read_text()

    newer = publish_further(root, version="two")
    assert work.refresh(root) == [], "only run, not worked in"
    assert copy.read_bytes() == newer.read_bytes()
    edit(copy)
    mine, newest = copy.read_bytes(), publish_further(root, version="three")
    [line] = work.refresh(root)
    assert (
        line == f"{NAME}-further: there is a newer version; it lies beside yours as {NAME}-further (new version).ipynb"
    )
    assert copy.read_bytes() == mine
    assert own(root, suffix="-further (new version)").read_bytes() == newest.read_bytes()
    assert not own(root, suffix=" (new version)").exists(), "the lesson itself is as it was"
    of_version(newest, "0.9.0")
    work.refresh(root)
    assert [line.partition(" in ")[0] for line in work.outdated(root)] == [f"{NAME}-further.ipynb"]


def test_a_lost_record_makes_no_copy_look_untouched(root):
    edit(own(root))
    mine = own(root).read_bytes()
    for name in (NAME, OTHER):
        (root / "work" / name / work.RECORD).write_text("not a record")
    assert len(work.refresh(root)) == 1
    assert own(root).read_bytes() == mine
    assert not own(root, OTHER, " (new version)").exists(), "which is the lesson as it is"


def test_a_file_of_ones_own_stays(root):
    (root / "work" / NAME / "figure.png").write_text("mine")
    (root / "work" / NAME / "notes.txt").write_text("mine, too")
    publish(root, version="two")
    work.refresh(root)
    assert (root / "work" / NAME / "figure.png").read_text() == "mine"
    assert (root / "work" / NAME / "notes.txt").exists()


def solve(root: Path) -> None:
    edit(own(root), "e0: correct\n", "raises", "e2: correct\nand more: not attempted\n")
    kept = {
        "steps": {"prediction": 512.0, "verdict": "right"},
        "rate": {"prediction": None, "verdict": ""},
        "gone": {"prediction": 3.0, "verdict": "right"},
    }
    (root / "work" / NAME / "predictions.json").write_text(json.dumps({"lessons": {NAME: kept}}))


def test_progress_says_what_is_solved_and_predicted(root, capsys):
    solve(root)
    assert called("progress", root=root) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Lesson       Exercises                                Predictions",
        "07-doubling  1 of 3 solved, 1 wrong, 1 not attempted  1 of 2 made, 1 of 1 right",
        "08-tripling  0 of 3 solved, 3 not attempted           0 of 2 made",
    ]
    assert (
        "**Done**: 1 of 3 solved, 1 wrong, 1 not attempted; predictions: 1 of 2 made, 1 of 1 right |"
        in (root / "work/README.md").read_text()
    )
    assert called("progress", "08", root=root) == 0
    assert "07-doubling" not in capsys.readouterr().out


def test_the_start_page_leads_on_from_where_one_left_off(root):
    first = lambda: (root / "work/README.md").read_text().splitlines()[4]  # noqa: E731
    assert first() == f"**[Begin here]({NAME}/{NAME}.ipynb)**"
    assert "Done" not in (root / "work/README.md").read_text()
    edit(own(root, OTHER), "e0: not attempted\n")
    work.write_start_page(root)
    assert first().startswith("**[Begin here]"), "nothing was tried yet"
    edit(own(root), "e0: correct\n")
    edit(own(root, OTHER), "raises")
    os.utime(own(root, OTHER), (1, 1))
    work.write_start_page(root)
    assert first() == f"**[Go on where you left off]({NAME}/{NAME}.ipynb)**: {NAME}"
    os.utime(own(root), (0, 0))
    work.write_start_page(root)
    assert first() == f"**[Go on where you left off]({OTHER}/{OTHER}.ipynb)**: {OTHER}"


def test_of_two_versions_the_one_with_more_solved_counts(root):
    solve(root)
    publish(root, version="two")
    work.refresh(root)
    assert work.best(root / "work" / NAME, NAME).solved == 1
    edit(own(root, suffix=" (new version)"), "e0: correct\n", "e1: correct\n")
    assert work.best(root / "work" / NAME, NAME).solved == 2


@pytest.mark.parametrize("broken", ["[]", '{"lessons": []}', "{"])
def test_broken_predictions_count_as_none(root, broken):
    (root / "work" / NAME / "predictions.json").write_text(broken)
    assert work.best(root / "work" / NAME, NAME).predictions == "0 of 2 made"


def test_the_start_page_follows_a_saved_notebook(root):
    solve(root)
    manager = SimpleNamespace(root_dir=str(root / "work"))
    work.after_saving(os_path="", model={"type": "file"}, contents_manager=manager)
    assert "1 wrong" not in (root / "work/README.md").read_text()
    work.after_saving(os_path="", model={"type": "notebook"}, contents_manager=manager)
    assert "1 wrong" in (root / "work/README.md").read_text()


def test_reset_asks_and_puts_the_old_copy_aside(root, capsys, monkeypatch):
    solve(root)
    mine = own(root).read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False))
    assert called("progress", "--reset", "07", root=root) == 1
    assert "nobody is there to answer it" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", lambda question: "n" if "07-doubling anew?" in question else "y")
    assert called("progress", "--reset", "07", root=root) == 1
    assert own(root).read_bytes() == mine
    monkeypatch.setattr("builtins.input", lambda question: "y")
    assert called("progress", "--reset", "07", root=root) == 0
    assert "yours is now work/aside/07-doubling 1" in capsys.readouterr().out
    assert (root / f"work/aside/{NAME} 1/{NAME}.ipynb").read_bytes() == mine
    assert (root / f"work/aside/{NAME} 1/predictions.json").exists()
    assert own(root).read_bytes() == (root / "lessons" / NAME / f"{NAME}.ipynb").read_bytes()
    assert not (root / "work" / NAME / "predictions.json").exists()
    assert called("progress", "--reset", "07", "--yes", root=root) == 0
    assert (root / f"work/aside/{NAME} 2").is_dir()


def test_reset_where_a_kernel_keeps_the_folder(root, capsys, monkeypatch):
    solve(root)

    def refuses(path, target):
        raise PermissionError(13, "Access is denied", str(path))

    monkeypatch.setattr(Path, "rename", refuses)  # as Windows does
    assert called("progress", "--reset", "07", "--yes", root=root) == 1
    assert "Access is denied: close 07-doubling in JupyterLab, shut its kernel down" in capsys.readouterr().out
    assert own(root).exists()


def test_reset_of_a_lesson_that_was_never_opened(tmp_path, capsys):
    publish(tmp_path)
    assert called("progress", "--reset", "07", root=tmp_path) == 0
    assert "has not been opened yet" in capsys.readouterr().out


def of_version(path: Path, version: str) -> None:
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["companion"] = {**notebook.metadata.get("companion", {}), "version": version}
    nbformat.write(notebook, path)


def test_a_copy_of_another_version_is_told_so(root):
    assert work.outdated(root) == []
    edit(own(root))
    of_version(publish(root, version="two"), "0.3.0")
    work.refresh(root)
    [line] = work.outdated(root)
    assert line.startswith(f"{NAME}.ipynb in work/{NAME} is of version 0.2 or older of the course, and this is 0.3.0:")
    assert "progress --reset 07` puts it aside, with all answers" in line
    assert line in (root / "work/README.md").read_text()
    [lesson] = [lesson for lesson in released(root) if lesson.name == NAME]
    work.reset(lesson, root)
    assert work.outdated(root) == []
