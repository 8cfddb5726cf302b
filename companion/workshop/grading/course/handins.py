"""What was handed in: every notebook is kept, and one of each student's counts.

grading/submitted/STUDENT/NN-topic/*.ipynb             as it is handed in; may be written over by the next
grading/kept/STUDENT/NN-topic/TIME-HASH.ipynb          every notebook that was ever seen there, or imported

The time is the file's own, or what nbgrader's ``timestamp.txt`` beside it says. What counts is the last hand-in before
the deadline; if there is none, the last one, late.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from companion.core.files import atomic_write
from companion.workshop.grading.course.names import file_name, student
from companion.workshop.grading.course.settings import Settings, parse_stamp, stamp
from companion.workshop.grading.notebook.files import Unreadable, read_notebook, refused

OLDEST, NEWEST = datetime(1971, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class HandIn:
    """A notebook that was handed in, or the ``problem`` that kept it from being read."""

    student: str
    path: Path | None
    when: datetime
    problem: str = ""
    days_late: int = 0

    @property
    def key(self) -> str:
        """By which one hand-in is told from another."""
        return self.path.name if self.path else f"problem: {self.problem}"

    @property
    def dated(self) -> dict[str, Any]:
        """Return what a result says of when it was handed in."""
        return {"when": self.when, "days_late": self.days_late}


def collect(grading: Path, lesson: str, settings: Settings, largest: int) -> dict[str, HandIn]:
    """Keep what is new in the folder ``grading`` of a ``lesson`` (NN-topic), if it has at most ``largest`` bytes, and
    choose, since ``settings`` say what is late: the hand-in that counts, by student, in the order of their names.
    """
    by_student: dict[str, list[HandIn]] = {}
    for place in _inside(grading / "submitted"):
        name = student(place.name)
        if problem := _keep_folder(grading, name, lesson, place / lesson, largest):
            by_student.setdefault(name, []).append(HandIn(name, None, datetime.fromtimestamp(0, UTC), problem))
    for place in _inside(grading / "kept"):
        name = _name(place)
        for path in sorted((place / lesson).glob("*.ipynb")):
            if when := _kept_at(path):
                late, problem = settings.late_days(name, lesson, when), refused(path.read_bytes(), lesson)
                by_student.setdefault(name, []).append(HandIn(name, None if problem else path, when, problem, late))
    return {name: hand_in_that_counts(hand_ins) for name, hand_ins in sorted(by_student.items())}


def hand_in_that_counts(hand_ins: list[HandIn]) -> HandIn:
    """Return the hand-in that counts: the last in time, else the last late, else one that cannot be read."""
    readable = [hand_in for hand_in in hand_ins if hand_in.path]
    in_time = [hand_in for hand_in in readable if hand_in.days_late == 0]
    return max(in_time or readable or hand_ins, key=lambda hand_in: (hand_in.when, hand_in.key))


def _keep_folder(grading: Path, name: str, lesson: str, folder: Path, largest: int) -> str:
    """Keep the notebook in a folder, if there is one; why it cannot be read, if so."""
    try:
        if not (folder.is_symlink() or folder.is_dir()):
            return ""
        data, changed = read_notebook(folder, lesson, largest)
        keep(grading, name, lesson, data, _timestamp(folder) or _moment(changed))
    except Unreadable as error:
        return str(error)
    except OSError as error:
        return f"it cannot be opened or kept ({error.strerror})"
    return ""


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _name(place: Path) -> str:
    """Whose hand-ins are kept there. A run that was ended may have left a folder alone, which is named alike."""
    try:
        return (place / "student.txt").read_text(encoding="utf-8")
    except OSError:
        return student(place.name)


def _kept_at(path: Path) -> datetime | None:
    """The time in the name of a kept notebook; None for what is none of ours: a copy, what a system adds, a folder."""
    try:
        return parse_stamp(path.name.partition("Z-")[0] + "Z") if path.is_file() else None
    except ValueError:
        return None


def _timestamp(folder: Path) -> datetime | None:
    """The time in nbgrader's ``timestamp.txt``, if it says one of our days."""
    path = folder / "timestamp.txt"
    if path.is_symlink() or not path.is_file():  # to open a pipe is to wait for somebody who writes
        return None
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(40).strip()
        when = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return when if OLDEST <= when <= NEWEST else None
    except (OSError, ValueError):
        return None


def _moment(seconds: float) -> datetime:
    """A file's time, which may be said to be any, as one of our days."""
    return datetime.fromtimestamp(min(max(seconds, OLDEST.timestamp()), NEWEST.timestamp()), UTC)


def keep(grading: Path, name: str, lesson: str, data: bytes, when: datetime) -> None:
    """Keep in the folder ``grading`` the notebook, as ``data``, that the student ``name`` has handed in for ``lesson``
    at the time ``when``, unless it is the very one that was kept last.
    """
    folder = grading / "kept" / file_name(name) / lesson
    digest = hashlib.sha256(data).hexdigest()[:16]
    last = sorted(folder.glob("*Z-*.ipynb"))[-1:]
    if last and last[0].name.endswith(f"Z-{digest}.ipynb"):
        return
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder.parent / "student.txt", name)
    atomic_write(folder / f"{stamp(when)}-{digest}.ipynb", data)
