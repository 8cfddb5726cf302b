"""What a learner has written in an older lesson comes along into a newer one: nothing is lost, nothing is doubled."""

import copy
import itertools
import json
from pathlib import Path

import nbformat
import pytest
from commands import called
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from sample_lesson import NAME, graded, notebook

from companion.core import files
from companion.workshop.cli import lab, work
from companion.workshop.cli.carry import carry, fingerprint, of_version_0_3

STUB = "    # your code here\n    raise NotImplementedError"
MINE = "def double(x):\n    return x + x  # mine"
WRITTEN = "## A question\n\nWhy two?\n\n"


def lesson(version: str) -> nbformat.NotebookNode:
    """The sample lesson as learners get it, with a second exercise, a written question, and its checks."""
    made = notebook()
    made.cells[3].source = f"def double(x):\n{STUB}"
    made.cells[4].source, made.cells[4].outputs = "exercises.double.check(double)", []
    for name, parameters in {"treble": "x", "halve": "x, steps=3"}.items():
        made.cells += [
            new_code_cell(f"def {name}({parameters}):\n{STUB}", id=name, metadata=graded(name, solution=True)),
            new_code_cell(
                f"exercises.{name}.check({name})", id=f"{name}-check", metadata=graded(f"{name}-check", solution=False)
            ),
        ]
    marks = {"nbgrader": {"grade_id": "why", "solution": True, "grade": True, "points": 1}}
    made.cells.append(new_markdown_cell(f"{WRITTEN}YOUR ANSWER HERE", id="why", metadata=marks))
    made.metadata.companion = {**made.metadata.companion, "notebook": NAME, "version": version}
    return made


def at(cells: list, name: str) -> dict:
    [found] = [cell for cell in cells if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == name]
    return found


def half_solved() -> nbformat.NotebookNode:
    """A copy of version 0.3 in which somebody has worked."""
    made = lesson("0.3.0")
    at(made.cells, "double").source = MINE
    check = at(made.cells, "double-check")
    check.outputs, check.execution_count = [new_output("stream", name="stdout", text="double: correct\n")], 7
    at(made.cells, "treble").source = "def treble(x):\n    return 3 * x"
    at(made.cells, "why").source = f"{WRITTEN}Because of one and one."
    made.cells[2].source += "\n\nMy note."
    made.cells.insert(5, new_code_cell("my_table = [double(n) for n in range(3)]", id="mine"))
    made.cells.insert(0, new_markdown_cell("My head.", id="head"))
    return made


def carried(new: nbformat.NotebookNode, old: nbformat.NotebookNode | None = None, version: str = "0.3.0"):
    known = {fingerprint(cell) for cell in lesson("0.3.0").cells}
    return carry(old or half_solved(), new, known, version)


def sources(cells: list) -> list[str]:
    return ["".join(cell["source"]) for cell in cells]


def test_everything_finds_its_place_where_the_lesson_has_hardly_changed():
    new = lesson("0.4.0")
    new.cells[0].source += "\n\nAnother sentence."
    at(new.cells, "double").source = f'def double(x: float):\n    """Another sentence."""\n{STUB}'
    found = carried(new)
    cells = found.notebook["cells"]
    assert str(found) == "3 answers, 3 other cells"
    assert at(cells, "double")["source"] == MINE
    assert at(cells, "why")["source"].endswith("Because of one and one.")
    assert sources(cells)[:2] == ["My head.", new.cells[0].source]
    assert "## A claim about two\n\nMy note." in sources(cells)
    mine = sources(cells).index("my_table = [double(n) for n in range(3)]")
    assert cells[mine - 1] == at(cells, "double-check"), "below what it stood below"
    assert at(cells, "double-check")["outputs"][0]["text"] == "double: correct\n", "progress goes on"
    assert at(cells, "halve")["source"] == at(new.cells, "halve").source, "a stub is the new lesson's"
    assert len(cells) == len(new.cells) + 2
    nbformat.validate(nbformat.from_dict(found.notebook))


def gone(new):
    new.cells.remove(at(new.cells, "double"))
    return "*double is not in this lesson any more. As you had it:*"


def other_parameters(new):
    at(new.cells, "double").source = f"def double(x, scale):\n{STUB}"
    return "*double has other parameters now. As you had it:*"


def another_function(new):
    at(new.cells, "double").source = f"def twice(x):\n{STUB}"
    at(new.cells, "double-check").source = "exercises.twice.check(twice)"
    return "*double asks for a function twice now. As you had it:*"


def another_task(new):
    at(new.cells, "double").metadata["companion"] = {"since": "0.4"}
    return "*double asks for something else since version 0.4. As you had it:*"


@pytest.mark.parametrize("change", [gone, other_parameters, another_function, another_task])
def test_an_answer_without_a_place_is_kept_at_the_end(change):
    new = lesson("0.4.0")
    sentence = change(new)
    found = carried(new)
    last = found.notebook["cells"][-1]
    assert str(found) == "2 answers, 3 other cells, 1 without a place, at its end"
    assert (last["cell_type"], last["source"]) == ("markdown", f"{sentence}\n\n```python\n{MINE}\n```")
    assert at(found.notebook["cells"], "double-check")["outputs"] == [] or change is gone, "it is of another answer"
    nbformat.validate(nbformat.from_dict(found.notebook))


def test_an_exercise_of_another_name_in_the_metadata_is_found_by_its_function():
    new = lesson("0.4.0")
    at(new.cells, "double").id, at(new.cells, "double").metadata.nbgrader.grade_id = "other", "doubled"
    assert at(carried(new).notebook["cells"], "doubled")["source"] == MINE


def test_a_changed_cell_that_the_lesson_has_changed_too_is_kept_at_the_end():
    new = lesson("0.4.0")
    new.cells[2].source = "## Another claim"
    found = carried(new)
    assert "## Another claim" in sources(found.notebook["cells"])
    assert "which has changed it, too" in found.notebook["cells"][-1]["source"]
    assert found.notebook["cells"][-1]["source"].endswith("My note.")


def test_a_copy_from_an_editor_that_loses_all_metadata_and_ids():
    old = half_solved()
    for cell in old.cells:
        cell.metadata = {}
        del cell["id"]
    new = lesson("0.4.0")
    cells = carried(new, old, "").notebook["cells"]
    assert at(cells, "double")["source"] == MINE and at(cells, "why")["source"].endswith("Because of one and one.")
    assert sources(cells).count("my_table = [double(n) for n in range(3)]") == 1
    assert [cell["id"] for cell in new.cells] == [c["id"] for c in cells if c["id"] in {x.id for x in new.cells}]


def test_carried_once_more_it_stays_as_it_is():
    new = lesson("0.4.0")
    gone(new)
    once = carried(new).notebook
    known = {fingerprint(cell) for cell in new.cells}
    assert sources(carry(once, new, known, "0.4.0").notebook["cells"]) == sources(once["cells"])


def publish(root: Path, made: nbformat.NotebookNode) -> Path:
    path = root / "lessons" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout of the lessons of 0.4, whose learner was in the middle of 0.3."""
    publish(tmp_path, lesson("0.3.0"))
    assert work.refresh(tmp_path) == []
    record = tmp_path / "work" / NAME / work.RECORD
    kept = json.loads(record.read_text())
    for entry in kept.values():  # which 0.3 did not write
        del entry["cells"]
    record.write_text(json.dumps(kept))
    nbformat.write(half_solved(), own(tmp_path))
    (tmp_path / "work" / NAME / "predictions.json").write_text('{"lessons": {}}')
    known = frozenset(fingerprint(cell) for cell in lesson("0.3.0").cells)
    monkeypatch.setattr(work, "of_version_0_3", lambda: known)
    new = lesson("0.4.0")
    other_parameters(new)
    publish(tmp_path, new)
    return tmp_path


def own(root: Path) -> Path:
    return root / "work" / NAME / f"{NAME}.ipynb"


def aside(root: Path, number: int = 1) -> Path:
    return root / "work/aside" / f"{NAME} {number}" / f"{NAME}.ipynb"


def test_lab_carries_answers_over_once_and_progress_does_not(root, capsys, monkeypatch):
    mine = own(root).read_bytes()
    assert called("progress", root=root) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith(f"{NAME}  1 of 3 solved, 2 not attempted")
    assert told[2:] == [
        f"{NAME}.ipynb in work/{NAME} is of version 0.3.0 of the course, and this is 0.4.0: "
        "`python3 -m companion lab` carries your answers over into the new one."
    ]
    assert own(root).read_bytes() == mine and len(list(own(root).parent.glob("*.ipynb"))) == 1

    def started(command):
        raise SystemExit

    monkeypatch.setattr(lab, "go_on_as", started)
    monkeypatch.setattr(lab.fetch, "once", lambda: None)
    monkeypatch.chdir(root)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    with pytest.raises(SystemExit):
        called("lab", root=root)
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith(
        f"{NAME}: yours is of version 0.3.0, and this is 0.4.0; carried over: 2 answers, 3 other cells, "
        f"1 without a place, at its end. As it was it lies in work/aside/{NAME} 1/{NAME}.ipynb."
    )
    assert aside(root).read_bytes() == mine and aside(root).with_name("predictions.json").exists()
    after = {path: path.read_bytes() for path in (root / "work").rglob("*") if path.is_file()}
    assert work.refresh(root, answers=True) == [] == work.outdated(root)
    assert {path: path.read_bytes() for path in (root / "work").rglob("*") if path.is_file()} == after
    assert f"[your copy as it was](aside/{NAME}%201/{NAME}.ipynb)" in (root / "work/README.md").read_text()


def test_a_later_change_of_the_same_version_finds_what_is_the_learner_s_by_the_record(root):
    work.refresh(root, answers=True)
    new = lesson("0.4.0")
    other_parameters(new)
    new.cells[2].source = "## Another claim"
    del new.cells[6]
    publish(root, new)
    [line] = work.refresh(root, answers=True)
    assert f"{NAME}: the lesson has changed; carried over: 2 answers" in line
    cells = json.loads(own(root).read_text())["cells"]
    assert sum("return x + x  # mine" in text for text in sources(cells)) == 1
    assert sum("the end" in text for text in sources(cells)) == 0, "a cell that the lesson had is not the learner's"
    assert aside(root, 2).exists()


@pytest.mark.parametrize("stop", range(8))
def test_interrupted_anywhere_nothing_is_lost_and_the_next_run_ends_it(root, monkeypatch, stop):
    mine, calls, rename = own(root).read_bytes(), itertools.count(), files.rename_over

    def stops(beside, path):
        if next(calls) == stop:
            raise KeyboardInterrupt
        rename(beside, path)

    monkeypatch.setattr(files, "rename_over", stops)
    try:
        work.refresh(root, answers=True)
    except KeyboardInterrupt:
        assert mine in [path.read_bytes() for path in (root / "work").rglob("*.ipynb")]
    monkeypatch.setattr(files, "rename_over", rename)
    work.refresh(root, answers=True)
    assert aside(root).read_bytes() == mine
    cells = json.loads(own(root).read_text())["cells"]
    assert "".join(at(cells, "treble")["source"]) == "def treble(x):\n    return 3 * x"
    assert sum("return x + x  # mine" in text for text in sources(cells)) == 1
    assert work.refresh(root, answers=True) == []


def test_of_two_copies_the_one_with_more_solved_comes_along_and_both_lie_aside(root):
    spare = copy.deepcopy(half_solved())
    at(spare.cells, "treble-check").outputs = [new_output("stream", name="stdout", text="treble: correct\n")]
    at(spare.cells, "treble").source = "def treble(x):\n    return x + x + x"
    nbformat.write(spare, own(root).with_name(f"{NAME} (new version).ipynb"))
    work.refresh(root, answers=True)
    assert [path.name for path in own(root).parent.glob("*.ipynb")] == [f"{NAME}.ipynb"]
    assert "x + x + x" in own(root).read_text()
    assert len(list(aside(root).parent.glob("*.ipynb"))) == 2


@pytest.mark.parametrize("answers", [False, True])
def test_a_damaged_copy_costs_itself_alone_and_is_named(root, answers):
    other = root / "lessons/08-other/08-other.ipynb"
    other.parent.mkdir()
    other.write_text((root / f"lessons/{NAME}/{NAME}.ipynb").read_text())
    mine = own(root).read_bytes()
    text = own(root).read_text().replace("{", "<<<<<<< HEAD\n{", 1)
    own(root).write_text(text)
    [line] = work.refresh(root, answers=answers)
    assert "it lies beside yours as" in line
    assert own(root).read_text() == text and (root / "work/08-other/08-other.ipynb").exists()
    [line] = work.outdated(root)
    assert line.startswith(
        f"work/{NAME}/{NAME}.ipynb cannot be read as a notebook: git has left a merge conflict in it (line 1): "
        "`python3 -m companion progress --reset 07` puts it aside"
    )
    own(root).write_bytes(b"")
    assert "cannot be read as a notebook: it is empty" in work.outdated(root)[0]
    own(root).write_bytes(b"\xef\xbb\xbf" + mine)
    assert work.best(own(root).parent, NAME).solved == 1, "a mark of byte order is no damage"
    other.write_text("<<<<<<< HEAD")
    said = "lessons/08-other/08-other.ipynb cannot be read as a notebook: git has left a merge conflict in it (line 1)."
    assert work.refresh(root)[0] == f"{said} The other lessons open."


def test_lost_metadata_are_no_older_version(root):
    damaged = json.loads(own(root).read_text())
    damaged["metadata"] = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    own(root).write_text(json.dumps(damaged))
    assert work.outdated(root) == []
    [line] = work.refresh(root, answers=True)
    assert line.startswith(f"{NAME}: the lesson has changed; carried over: 2 answers")


def test_the_cells_of_0_3_are_known():
    known = of_version_0_3()
    assert len(known) > 1600 and {len(each) for each in known} == {8}
    assert fingerprint({"cell_type": "markdown", "source": ["## Recap\n"]}) == fingerprint(
        {"cell_type": "markdown", "source": "## Recap"}
    )
