"""What a learner has done is never lost: a file that is held for a moment, a disk that is full or read-only, a home
that is none. Each case is one from somebody's machine.
"""

import errno
import json
import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import called
from sample_lesson import NAME, checkout

from companion import __main__
from companion.core import files
from companion.lesson.widgets.predictions import Predictions
from companion.pretrained import fetching
from companion.workshop.cli import lab, run, work

HELD = {"a scanner": PermissionError(13, "in use"), "a network home": OSError(errno.ESTALE, "Stale file handle")}
HELD |= {"a drive": OSError(errno.EIO, "Input/output error"), "a share": OSError(errno.EBUSY, "Device busy")}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that the notebook runs in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    return tmp_path


@contextmanager
def refusing(monkeypatch, error: OSError, *, reads: int = 0, renames: int = 0, name: str = "predictions"):
    """Let the first so many reads and renames of a file fail with ``error``."""
    left = {"read_bytes": reads, "replace": renames}

    def held(what, action):
        def call(path, *others):
            if left[what] > 0 and name in "".join(map(str, (path, *others))):
                left[what] -= 1
                raise error
            return action(path, *others)

        return call

    with monkeypatch.context() as now:
        now.setattr(Path, "read_bytes", held("read_bytes", Path.read_bytes))
        now.setattr(os, "replace", held("replace", os.replace))
        yield


def kept() -> dict[str, dict[str, float]]:
    lessons = json.loads(Path("predictions.json").read_bytes())["lessons"]
    return {name: {id: entry["prediction"] for id, entry in entries.items()} for name, entries in lessons.items()}


@pytest.fixture
def asked():
    """Two questions of a lesson, in a file in which another lesson has an answer, and the first one, too."""
    Predictions("02-other").number("steps", "How many?").field.value = "12"
    predictions = Predictions(NAME)
    first, second = predictions.number("a", "How many?"), predictions.number("b", "How many more?")
    first.field.value = "3"
    return first, second


ALL = {"02-other": {"steps": 12}, NAME: {"a": 3, "b": 5}}


@pytest.mark.parametrize("error", HELD.values(), ids=HELD)
@pytest.mark.parametrize(("reads", "renames"), [(1, 1), (3, 0), (0, 3)])
def test_predictions_that_are_held_for_a_moment_are_waited_for(asked, monkeypatch, error, reads, renames):
    with refusing(monkeypatch, error, reads=reads, renames=renames):
        asked[1].field.value = "5"
    assert kept() == ALL and os.listdir() == ["predictions.json"]


REFUSED = {"held": PermissionError(13, "in use"), "full": OSError(28, "No space left on device")}
REFUSED |= {"read-only": OSError(30, "Read-only file system")}


@pytest.mark.parametrize("error", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize(("reads", "renames"), [(99, 0), (0, 99)])
def test_what_cannot_be_written_is_said_and_written_with_the_next(asked, monkeypatch, error, reads, renames):
    before = kept()
    with refusing(monkeypatch, error, reads=reads, renames=renames):
        asked[1].field.value = "5"
    assert kept() == before and f"could not be written: {error.strerror}" in asked[1].said.value
    asked[0].field.value = "4"
    assert kept() == ALL | {NAME: {"a": 4, "b": 5}}


def test_what_cannot_be_read_at_the_start_is_written_over_by_nobody(asked, monkeypatch, capsys):
    with refusing(monkeypatch, PermissionError(13, "in use"), reads=99):
        again = Predictions(NAME)
    assert "cannot be read now (in use); nothing is written over it" in capsys.readouterr().out
    again.number("b", "How many more?").field.value = "5"
    assert kept() == ALL


BROKEN = {
    "empty": b"",
    "a list": b"[]",
    "half": b'{"format": "pred',
    "zeros": bytes(99),
    "a conflict": b"<<<<<<< HEAD\n{",
}
BROKEN |= {
    "a lesson that is a list": b'{"format": "predictions of Transformers as Algorithms, 1", "lessons": {"a": []}}'
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_kept_aside_and_this_lesson_is_in_the_new_one(asked, capsys, broken):
    Path("predictions.json").write_bytes(broken)
    asked[1].field.value = "5"
    assert Path("predictions (set aside 1).json").read_bytes() == broken
    assert "it is now predictions (set aside 1).json" in capsys.readouterr().out
    assert kept() == {NAME: ALL[NAME]}


def test_an_editor_s_mark_of_byte_order_breaks_nothing(asked):
    Path("predictions.json").write_bytes(b"\xef\xbb\xbf" + Path("predictions.json").read_bytes())
    asked[1].field.value = "5"
    assert kept() == ALL


@pytest.fixture
def lessons(tmp_path):
    """A checkout with a lesson that a learner has opened."""
    checkout(tmp_path)
    assert called("release", root=tmp_path) == 0
    assert work.refresh(tmp_path) == []
    return tmp_path


def test_a_record_that_is_held_is_not_made_anew(lessons, monkeypatch):
    record = lessons / "work" / NAME / work.RECORD
    before = record.read_bytes()
    with refusing(monkeypatch, PermissionError(13, "in use"), reads=99, name=work.RECORD):
        [line] = work.refresh(lessons)
    assert line == f"{NAME} is left as it is: [Errno 13] in use"
    assert record.read_bytes() == before


def test_a_report_that_is_damaged_is_kept_aside_and_one_that_is_held_stays(lessons, monkeypatch, capsys):
    report = lessons / "report.json"
    report.write_text('{"lessons": [{')
    assert run.kept_entries(report, set(), lessons) == []
    assert "it is now report (set aside 1).json" in capsys.readouterr().out
    report.write_text(json.dumps({"lessons": [{"lesson": NAME}]}))
    held = refusing(monkeypatch, PermissionError(13, "in use"), reads=99, name="report")
    with held, pytest.raises(PermissionError):
        run.kept_entries(report, set(), lessons)
    assert run.kept_entries(report, set(), lessons) == [{"lesson": NAME}]


def nowhere(monkeypatch, *parts: str) -> None:
    """Let nothing be written in a folder one of whose ``parts`` this is."""
    may = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: (mode != os.W_OK or not {*parts} & {*Path(path).parts}) and may(path, mode)
    )


def test_progress_in_a_checkout_that_cannot_be_written_says_what_is_there(lessons, monkeypatch, capsys):
    nowhere(monkeypatch, "work")
    assert called("progress", root=lessons) == 0
    said = capsys.readouterr().out
    assert said.startswith("Lesson") and "work/ cannot be brought up to date (it cannot be written)" in said


@pytest.mark.parametrize(
    "error", [PermissionError(13, "no"), OSError(30, "Read-only file system"), FileNotFoundError(2, "no")]
)
def test_what_a_disk_refuses_is_a_sentence_and_a_bug_is_none(error):
    error.filename = "work"
    said = files.told(error, "lab")
    assert bool(said) == (error.errno != 2)
    assert not said or said.startswith(
        f"lab: work: {error.strerror}. If that is in the course's folder, copy the course"
    )


def test_a_command_ends_with_that_sentence(monkeypatch, capsys, tmp_path):
    full = OSError(28, "No space left on device", str(tmp_path))
    monkeypatch.setattr(__main__, "main", lambda words: (_ for _ in ()).throw(full))
    monkeypatch.setattr("sys.argv", ["companion", "run"])
    assert __main__.command() == 1
    assert capsys.readouterr().err == f"run: {tmp_path}: No space left on device. Make room, then start it again.\n"


@pytest.mark.parametrize("home", ["read-only", "none", "file"])
def test_lab_finds_room_where_home_has_none(monkeypatch, tmp_path, capsys, home):
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / home))
    if home == "read-only":
        (tmp_path / home).mkdir()
        nowhere(monkeypatch, home)
    elif home == "file":
        (tmp_path / home).touch()
    for name in (*lab.HOMES, "JUPYTER_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    lab._find_room()
    assert "Your home cannot be written" in capsys.readouterr().out
    assert all(Path(os.environ[name]).parent.is_dir() for name in lab.HOMES)
    assert os.environ["JUPYTER_CONFIG_PATH"] == str(tmp_path / home / ".jupyter"), "one's own settings are read"
    monkeypatch.delenv("COURSE_MODELS", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if home == "file":
        with pytest.raises(fetching.FetchError, match=r"models is not writable .*; COURSE_MODELS can name"):
            fetching.fetch(fetching.MODELS["smollm2"])
