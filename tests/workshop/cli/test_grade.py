"""``grade`` goes on where it stopped, marks again only what changed, and says when it cannot work safely."""

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from argparse import Namespace

import psutil
import pytest
import torch
from workshop.grading.sharing import here
from workshop.grading.small_lesson import AUTOMATIC, NAME, POINTS, checkout, hand_in, handed_in, solved

from companion.workshop.cli import grade
from companion.workshop.cli.lessons import select_lessons
from companion.workshop.grading.course import classroom, formgrader
from companion.workshop.grading.sandbox import bubblewrap, sandbox

safe = pytest.mark.needs("sandbox")


SAID = {"jobs": 1, "formgrader": False, "unsafe": False, "student": "", "force": False, "take_in": [], "self_test": 0.0}


@pytest.fixture
def root(tmp_path):
    """A checkout of one lesson."""
    return checkout(tmp_path)


def run(root, *lessons: str, **options) -> int:
    return grade.main(Namespace(lessons=list(lessons), **SAID | options), root)


@pytest.fixture
def marked(monkeypatch):
    """The students whose submissions are marked, in order."""
    names, attempt = [], classroom._attempt

    def noting(one, *rest):
        names.append(one.student)
        return attempt(one, *rest)

    monkeypatch.setattr(classroom, "_attempt", noting)
    return names


def table(root):
    return (root / "grading" / NAME / "grades.csv").read_bytes()


def rows(root):
    return list(csv.DictReader(table(root).decode().splitlines()))


@safe
def test_again_is_the_same_and_a_second_hand_in_is_marked_alone(root, marked, capsys):
    assert run(root, NAME) == 0
    assert f"Nobody has handed in: there is no grading/submitted/STUDENT/{NAME}/*.ipynb" in capsys.readouterr().out
    hand_in(root, "anna", handed_in({}))
    bert = hand_in(root, "bert", handed_in({}))
    assert run(root, NAME) == 0
    assert sorted(marked) == ["anna", "bert"]
    before = table(root)
    marked.clear()
    assert run(root, NAME) == 0
    assert not marked and table(root) == before

    bert.write_text(json.dumps(solved()))
    assert run(root, NAME) == 0
    assert marked == ["bert"]
    assert [row["points"] for row in rows(root)] == ["0", "6"]
    assert "0 marked, 2 as before" in capsys.readouterr().out


@safe
def test_what_an_lms_has_downloaded_is_taken_in_and_each_file_is_named(root, tmp_path, marked, capsys):
    members = {
        f"anna_11_901_{NAME}.ipynb": json.dumps(handed_in({})),
        f"anna_11_902_{NAME}-Copy1.ipynb": json.dumps(solved()),
        "bert_12_903_all.zip": "",
        "readme.txt": "",
    }
    with zipfile.ZipFile(tmp_path / "canvas.zip", "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    assert run(root, NAME, take_in=[str(tmp_path / "canvas.zip")]) == 0
    line = "notebooks of 1 students; no notebook from 1: bert 12 (all.zip); named as no student's file: readme.txt"
    assert line in capsys.readouterr().out
    said = {row["student"]: row for row in rows(root)}
    assert said["anna 11"]["points"] == "6" and f"{NAME}-Copy1.ipynb is marked" in said["anna 11"]["needs_a_person"]
    assert "cannot be read: there is all.zip, no notebook" in said["bert 12"]["needs_a_person"]


@safe
def test_a_crash_loses_nothing(root, marked, monkeypatch, capsys):
    for name in ("anna", "bert", "carl"):
        hand_in(root, name, handed_in({}))
    write, written = classroom.atomic_write, []

    def dies(path, text):
        if "results" in path.parts:
            written.append(path)
            if len(written) == 2:
                raise KeyboardInterrupt
        write(path, text)

    monkeypatch.setattr(classroom, "atomic_write", dies)
    assert run(root, NAME) == 130
    assert "grade: stopped; what was marked is kept, and the same command goes on" in capsys.readouterr().out
    monkeypatch.setattr(classroom, "atomic_write", write)
    first = set(marked[:1])
    marked.clear()
    assert run(root, NAME) == 0
    assert first.isdisjoint(marked) and len(marked) == 2
    assert len(table(root).splitlines()) == 4


@pytest.mark.parametrize("full", ["results", "grades.csv", "feedback", "autograded"])
def test_a_full_disk_ends_in_a_sentence_and_loses_nothing(root, monkeypatch, capsys, full):
    for name in ("anna", "bert"):
        hand_in(root, name, solved())
    monkeypatch.setattr(bubblewrap, "missing", lambda: "bubblewrap is not installed")
    monkeypatch.setattr(classroom, "_result", right)
    monkeypatch.setattr(classroom.reference, "require", lambda *_, **__: None)
    write = classroom.atomic_write

    def no_room(path, content):
        if full in path.parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    with monkeypatch.context() as patch:
        for module in (classroom, formgrader):
            patch.setattr(module, "atomic_write", no_room)
        assert run(root, NAME, unsafe=True) == 2
        said = capsys.readouterr().out.splitlines()[-1]
        assert "No space left on device; what was marked is kept, and the same command goes on" in said
    assert run(root, NAME, unsafe=True) == 0
    marked = {"results": 2, "grades.csv": 1}.get(full, 0)
    assert f"{marked} marked, {2 - marked} as before" in capsys.readouterr().out
    assert [row["points"] for row in rows(root)] == ["6", "6"]
    assert len(list((root / "grading" / "autograded").iterdir())) == 2


def right(path, handout, *_):
    """A result in which all is right."""
    entries = {name: {"outcome": "right", "diagnosis": "correct", "points": POINTS[name]} for name in AUTOMATIC}
    return classroom.nothing("", handout) | {"exercises": entries, "written": {"open-question": ""}}


def test_a_gradebook_that_is_none_ends_in_a_sentence(root, monkeypatch, capsys):
    monkeypatch.setattr(bubblewrap, "missing", lambda: "bubblewrap is not installed")
    (root / "grading" / "gradebook.db").write_bytes(b"no database, but of some length" * 100)
    assert run(root, NAME, unsafe=True) == 2
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("grade: gradebook.db cannot be read or written: file is not a database; what was marked is")


PROGRAM = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts tests in the background has it ignored
from argparse import Namespace
from pathlib import Path
from companion.__main__ import go_on_in_utf8
from companion.workshop.cli import grade
if __name__ == "__main__":
    go_on_in_utf8()
    sys.exit(grade.main(Namespace(lessons=[{NAME!r}], **{SAID!r}), Path(sys.argv[1])))
"""


def program(root, **environment):
    """``grade`` as a program of its own."""
    ours = {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(root)],
        env=os.environ | ours | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


@safe
def test_names_in_any_script_are_kept_where_the_locale_is_ascii(tmp_path):
    root, names = checkout(tmp_path), ["Jörg Müller", "王小明"]
    for name in names:
        hand_in(root, name, handed_in({}))
    process = program(root, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    assert [row["student"] for row in rows(root)] == names
    for folder in ("kept", "feedback", "autograded"):
        assert sorted(path.name for path in (root / "grading" / folder).iterdir()) == names


@safe
def test_ctrl_c_ends_in_a_sentence_leaves_no_process_and_loses_nothing(root, marked):
    for name in ("anna", "bert", "carl", "dora", "emil"):  # the last does not end by itself: that takes a while
        body = "return M" if name < "e" else "while True:\n        pass"
        hand_in(root, name, solved(newton_step=f"@exercises.newton_step\ndef newton_step(M, S):\n    {body}"))
    process, results = program(root), root / "grading" / NAME / "results"
    while process.poll() is None and not list(results.glob("*.json")):
        time.sleep(0.05)
    ours = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 130, said.decode()
    assert b"grade: stopped; what was marked is kept" in said and b"Traceback" not in said
    assert not psutil.wait_procs(ours, 10)[1]
    assert [path for path in (root / "grading").rglob(".*") if path.name != ".lock"] == []
    kept = len(list(results.iterdir()))
    assert 0 < kept < 5
    assert run(root, NAME) == 0
    assert len(marked) == 5 - kept and len(table(root).splitlines()) == 6


@safe
def test_a_changed_lesson_is_graded_again(root, marked):
    hand_in(root, "anna", handed_in({}))
    run(root, NAME)
    source = root / "solutions" / NAME / f"{NAME}.ipynb"
    source.write_text(
        source.read_text()
        .replace("return 2 * M - M @ S @ M", "return M + M - M @ S @ M")
        .replace("# A small", "# The small")
    )
    run(root, NAME)
    assert marked == ["anna"], "an edit of text or solution alone changes no grade"
    source.write_text(source.read_text().replace('"points": 2', '"points": 5'))
    run(root, NAME)
    assert marked == ["anna", "anna"]


@safe
def test_points_given_by_a_person_count_and_stay(root):
    from nbgrader.api import Gradebook

    hand_in(root, "anna", solved())
    run(root, NAME)
    with Gradebook(f"sqlite:///{root / 'grading' / 'gradebook.db'}") as book:
        given = book.find_grade("open-question", NAME, NAME, "anna")
        assert given.needs_manual_grade and given.max_score == 4
        given.manual_score, given.needs_manual_grade = 3, False
        assert book.find_grade("newton-step-check", NAME, NAME, "anna").auto_score == 2
        book.db.commit()
    run(root, NAME)
    [row] = rows(root)
    assert (row["points"], row["open-question"], row["needs_a_person"]) == ("9", "3", "")


def let_the_sandbox_fail(monkeypatch):
    def fails(*_, **__):
        raise sandbox.SandboxError("no more user namespaces")

    monkeypatch.setattr("companion.workshop.grading.sandbox.workers.Process", fails)
    monkeypatch.setattr(classroom, "alone", here)


@safe
def test_a_sandbox_that_fails_is_nobodys_wrong_answer(root, monkeypatch, capsys):
    hand_in(root, "carl", handed_in({}))
    assert run(root, NAME) == 0  # the course's own answers pass
    hand_in(root, "anna", solved())
    hand_in(root, "bert", handed_in({}))

    let_the_sandbox_fail(monkeypatch)
    assert run(root, NAME) == 1
    said = capsys.readouterr().out
    assert "NOT MARKED" in said and "1 marked, 1 as before, 1 NOT marked; see" in said
    assert [row["student"] for row in rows(root)] == ["bert", "carl"]
    monkeypatch.undo()
    assert run(root, NAME) == 0
    assert len(table(root).splitlines()) == 4


OTHER = NAME.replace("05", "06")


def two_lessons(root, *, newton: str):
    """A checkout of two lessons, each with a right hand-in; in the first the course's own ``newton`` is this."""
    source = checkout(root) / "solutions" / NAME / f"{NAME}.ipynb"
    other, place = root / "solutions" / OTHER, root / "grading" / "submitted" / "anna" / OTHER
    other.mkdir()
    (other / f"{OTHER}.ipynb").write_bytes(source.read_bytes())
    source.write_text(source.read_text().replace("return 2 * M - M @ S @ M", newton))
    hand_in(root, "anna", solved())
    place.mkdir()
    (place / f"{OTHER}.ipynb").write_text(json.dumps(solved()))
    return root


@pytest.mark.parametrize("unsafe", [pytest.param(False, marks=safe), True])
def test_where_the_courses_own_answer_fails_nothing_is_marked_and_other_lessons_are(
    tmp_path, monkeypatch, marked, capsys, unsafe
):
    root = two_lessons(tmp_path, newton="return 3 * M - M @ S @ M")
    if unsafe:
        monkeypatch.setattr(bubblewrap, "missing", lambda: "bubblewrap is not installed")
    assert run(root, NAME, OTHER, unsafe=unsafe) == 1
    said = capsys.readouterr().out
    assert f"grade: {NAME}: nothing was marked: the course's own answers do not pass here" in said
    assert "lose points: newton_step: wrong (" in said and "triplet_tokens: " not in said
    assert f"torch {torch.__version__}" in said
    assert marked == ["anna"] and not (root / "grading" / NAME / "grades.csv").exists()
    assert '"points"' in next((root / "grading" / OTHER / "results").iterdir()).read_text()


@safe
def test_where_the_sandbox_fails_from_the_start_nothing_is_marked(root, monkeypatch, marked, capsys):
    hand_in(root, "anna", handed_in({}))

    let_the_sandbox_fail(monkeypatch)
    assert run(root, NAME) == 1
    assert "they could not be tried (SandboxError: no more user namespaces (tried 3 times))" in capsys.readouterr().out
    assert not marked


def test_without_a_sandbox_nothing_is_run(root, monkeypatch, marked, capsys):
    hand_in(root, "anna", solved())
    monkeypatch.setattr(bubblewrap, "missing", lambda: "bubblewrap is not installed")
    assert run(root, NAME) == 2
    said = capsys.readouterr().out
    assert "NO SANDBOX" in said and "--unsafe" in said
    assert not marked and not (root / "grading" / NAME).exists()
    assert run(root, NAME, unsafe=True) == 0
    assert marked == ["anna"]
    [row] = rows(root)
    assert row["points"] == "6"


def test_on_windows_nothing_is_run_even_unsafely(root, monkeypatch, marked, capsys):
    hand_in(root, "anna", solved())
    monkeypatch.setattr(grade.os, "name", "nt")
    assert run(root, NAME, unsafe=True) == 2
    assert "run it in WSL, Windows' own Linux.\nNothing was run." in capsys.readouterr().out
    assert not marked


@safe
@pytest.mark.filterwarnings("default")  # Dask's own are not ours to mend
def test_a_cluster_of_dask_gives_the_same(root):
    distributed = pytest.importorskip("distributed")
    from joblib import parallel_config

    for name in ("anna", "bert"):
        hand_in(root, name, solved())
    [lesson] = select_lessons([NAME], root)
    with distributed.Client(n_workers=1, threads_per_worker=2, dashboard_address=None), parallel_config(backend="dask"):
        assert grade.grade(lesson, root) == []
    assert [row["points"] for row in rows(root)] == ["6", "6"]


def test_the_form_grader_is_started_on_the_gradebook(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(formgrader.subprocess, "call", lambda command, cwd, env: calls.append((command, cwd)))
    assert run(tmp_path, formgrader=True) == 0
    [(command, folder)] = calls
    assert folder == tmp_path / "grading" and any("formgrader" in word for word in command)
    assert repr(str(tmp_path)) in (folder / "nbgrader_config.py").read_text()


def test_the_self_test_is_the_search_of_the_tests(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(grade, "_can_run", lambda *, unsafe: True)
    monkeypatch.setattr(grade.subprocess, "run", lambda command, **_: called.append(command) or Namespace(returncode=1))
    assert run(tmp_path, self_test=0.5) == 1
    assert called[0][1:] == ["-m", "workshop.grading.self_test", "0.5"]
