"""From and to a learning management system, as Canvas and Moodle themselves read and write.

Canvas' *Download Submissions* is a zip of files ``bergannika_LATE_12345_67890_notebook-1.ipynb``: the student's
sortable name without what is no letter, LATE perhaps, the student's id, the file's id, and the file's name, with a
number if it was handed in again (``anon_a1B2c_67890_notebook.ipynb`` where marking is anonymous). Its gradebook takes
a CSV that begins with Student, ID and Section, and knows an assignment by ``Name (id)``: say so in ``settings.toml``.

Moodle's *Download all submissions* is a zip of folders ``Annika Berg_12345_assignsubmission_file`` (before 4.1 with
another ``_``; or, without folders, of files that begin so), and what is in them may lie in folders again. Its grading
worksheet needs Identifier (``Participant 12345``), Grade and ``Last modified (grade)``; where Moodle has a grade
already, tick there that newer records may be updated. Feedback files go back as a zip of the same folders.

A text that was typed in comes as ``bergannika_12345_text.html`` (a link as ``_link.html``), or in Moodle as a folder
``..._assignsubmission_onlinetext``.

Ids that the roster has name the student; without it, the names in the zip do. Neither zip says when something was
handed in, only when it was downloaded. So what is not marked LATE counts as in time, and what is, as handed in just
after the deadline; and what was downloaded later is later. Every file is answered for: a student of whom the zip holds
no notebook stands in the tables with the names of the files that it does hold.
"""

import io
import re
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import Any

from companion.core.files import atomic_write
from companion.workshop.grading.course.book import Book
from companion.workshop.grading.course.feedback import spreadsheet
from companion.workshop.grading.course.folders import SEVERAL, Answered, Notebook, choose, not_helpers
from companion.workshop.grading.course.handins import keep
from companion.workshop.grading.course.names import file_name, student
from companion.workshop.grading.course.settings import Settings, SettingsError, read_settings
from companion.workshop.grading.course.tables import read_roster
from companion.workshop.grading.notebook.files import (
    HELP,
    Unreadable,
    enumerated,
    helpers,
    is_notebook,
    no_notebook,
    too_large,
)
from companion.workshop.grading.sandbox.sandbox import Limits
from companion.workshop.notebooks import BESIDE

MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)(_(?P<file>.*))?")
OF_CANVAS = r"_(\d+_(?=.)|(?=(text|link)\.html$))(?P<file>.+)"
CANVAS = re.compile(r"(?P<name>.+?)(?P<late>_late)?_(?P<id>\d+)" + OF_CANVAS, re.IGNORECASE)
ANONYMOUS = re.compile(r"(?P<late>late_)?(?P<name>anon)_(?P<id>[a-z0-9]+)" + OF_CANVAS, re.IGNORECASE)
AGAIN = re.compile(r"([-_]\d+| ?\(\d+\))?\.ipynb", re.IGNORECASE)  # what a name has when it is handed in again
RENAMED = re.compile(r"(-\d+| ?\(\d+\))(?=\.py$)")  # the same of a file of Python, whose name may end in _1
LARGEST = Limits.notebook  # bytes of one notebook, unpacked
MANY = 10_000  # files in a zip
BROKEN = (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, LZMAError)
EPOCH = 1980  # the year of a date that was left out
DAMAGED = "it is damaged in the zip: download that again"
UTF8 = 0x800  # this flag says that a name is UTF-8


@dataclass
class Taken:
    """The students of whom a zip held a notebook, those whose notebook it marks as late, those whose notebook cannot be
    unpacked, those of whom it holds other files alone, with these, and the files that are nobody's.
    """

    students: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    without: dict[str, list[str]] = field(default_factory=dict)
    nobodys: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Say it in one line."""
        without = [f"{name} ({enumerated(files)})" for name, files in self.without.items()]
        parts = [
            f"notebooks of {len(self.students)} students",
            f"marked as late: {', '.join(self.late)}" if self.late else "",
            f"cannot be unpacked: {', '.join(self.broken)}" if self.broken else "",
            f"no notebook from {len(without)}: {', '.join(without)}" if without else "",
            f"named as no student's file: {enumerated(self.nobodys)}" if self.nobodys else "",
        ]
        return "; ".join(filter(None, parts))


@dataclass(frozen=True)
class Upload:
    """A student's file in a zip: its own name, and whether it is marked as late."""

    path: PurePosixPath
    own: str
    late: bool
    info: zipfile.ZipInfo

    @property
    def shown(self) -> str:
        """Its own name, as it is shown to people."""
        return student(self.own)


def take_in(archive: Path, grading: Path, lesson: str, answered: Answered = bool) -> Taken:
    """Keep in the folder ``grading`` what each student in the zip ``archive`` has handed in for a ``lesson``. Of
    several notebooks it is the one that alone holds answers, as far as ``answered`` can tell; else one named like the
    lesson before others, the last of several. Raises SettingsError for what is no such zip.
    """
    roster, settings = read_roster(grading / "roster.csv"), read_settings(grading / "settings.toml")
    taken, unread = Taken(), []
    try:
        file = zipfile.ZipFile(archive)
    except BROKEN as error:
        raise SettingsError(f"{archive.name} cannot be read as a zip archive: {error}") from None
    with file:
        theirs = _by_student(file, roster, taken)
        many = sum(is_notebook(member.own) for members in theirs.values() for member in members)
        if many > MANY:
            raise SettingsError(f"{archive.name} holds {many} notebooks; at most {MANY} are taken")
        for name, members in theirs.items():
            member, about = _handed_in(file, members, lesson, answered, taken, name)
            seen = _downloaded(member.info)
            when, is_sure = _when(seen, settings, name, lesson, late=member.late)
            about |= {"when": when, "seen": seen, "unsure": not is_sure, "source": archive.name}
            if "problem" in about:
                unread.append((name, about))
            else:
                keep(grading, name, lesson, **about)
    if not taken.students and not taken.without:
        what = "that is not damaged" if taken.broken else "with a name as Canvas or Moodle give it"
        raise SettingsError(f"{archive.name} holds no notebook {what}")
    for name, about in unread:
        keep(grading, name, lesson, **about)
    return taken


def _by_student(file: zipfile.ZipFile, roster: dict[str, dict[str, str]], taken: Taken) -> dict[str, list[Upload]]:
    """The files in a zip, by student, without those that systems add; ``taken`` is told of those that are nobody's."""
    theirs: dict[str, list[Upload]] = {}
    for info in file.infolist():
        path = PurePosixPath(_name_in(info).replace("\\", "/"))
        if info.is_dir() or any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts):
            continue
        if whose := _whose(path, roster):
            name, own, late = whose
            theirs.setdefault(name, []).append(Upload(path, own, late, info))
        else:
            taken.nobodys.append(student(str(path)))
    return theirs


def _handed_in(
    file: zipfile.ZipFile, members: list[Upload], lesson: str, answered: Answered, taken: Taken, name: str
) -> tuple[Upload, dict[str, Any]]:
    """What is kept of one student's files, and the one of them that says when they came; ``taken`` is told."""
    books = [member for member in members if is_notebook(member.own)]
    others = [member for member in members if not is_notebook(member.own)]
    if not books:
        taken.without[name] = [member.shown for member in others]
        return others[-1], {"data": b"", "problem": no_notebook(taken.without[name], lesson)}
    beside = tuple(f"{lesson}-{each}" for each in BESIDE)
    books = [member for member in books if not member.own.startswith(beside)] or books
    books = sorted(books, key=lambda member: _is_lessons(member, lesson))[::-1]  # the last first
    found = [_notebook(file, member, own=not at) for at, member in enumerate(books[:SEVERAL])]
    try:
        notebook, remarks = choose(found, lesson, answered)
    except Unreadable as error:
        is_broken = any(one.problem == DAMAGED for one in found)
        (taken.broken if is_broken else taken.students).append(name)
        return books[0], {"data": b"", "problem": str(error)}
    member = books[found.index(notebook)]
    taken.students.append(name)
    taken.late.extend([name] * member.late)
    python = {RENAMED.sub("", one.own): one for one in others if one.own.endswith(".py")}
    python = {own: one for own, one in python.items() if one.path.parent == member.path.parent}
    files, left = helpers(python, lambda own: _read(file, python[own], HELP))
    remarks += [not_helpers([*map(student, left)])] if left else []
    rest = [one.shown for one in others if one not in python.values()]
    rest += [one.shown for one in books[SEVERAL:]]
    remarks += [f"not read beside the notebook: {enumerated(rest)}"] if rest else []
    return member, {"data": notebook.data, "files": files, "remarks": remarks}


def _is_lessons(member: Upload, lesson: str) -> bool:
    return member.own.startswith(lesson) and bool(AGAIN.fullmatch(member.own[len(lesson) :]))


def _notebook(file: zipfile.ZipFile, member: Upload, *, own: bool) -> Notebook:
    """A notebook in a zip, which is the one that counts among equals if it is the student's ``own``."""
    about = {"shown": member.shown, "own": own, "place": own}
    if member.info.file_size > LARGEST:
        return Notebook(**about, problem=too_large(member.info.file_size, LARGEST))
    data = _read(file, member, LARGEST)
    return Notebook(**about, problem=DAMAGED) if data is None else Notebook(**about, data=data)


def _read(file: zipfile.ZipFile, member: Upload, largest: int) -> bytes | None:
    """A file in a zip; None if it is damaged, or has more bytes than the ``largest``."""
    try:
        with file.open(member.info) as unpacked:
            data = unpacked.read(largest + 1)
    except (*BROKEN, ValueError):
        return None
    return data if len(data) <= largest else None


def _name_in(member: zipfile.ZipInfo) -> str:
    """A member's name. Canvas writes UTF-8 without saying so, which Python takes for the letters of a PC of 1981."""
    try:
        return member.filename if member.flag_bits & UTF8 else member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename


def _whose(path: PurePosixPath, roster: dict[str, dict[str, str]]) -> tuple[str, str, bool] | None:
    """The student of a file in the zip, the file's own name, and whether it is marked as late."""
    for kind, pattern, words in (
        ("moodle_id", MOODLE, path.parts),
        ("", ANONYMOUS, path.parts[-1:]),
        ("canvas_id", CANVAS, path.parts[-1:]),
    ):
        for match in filter(None, map(pattern.fullmatch, words)):
            parts = match.groupdict()
            known = [name for name, row in roster.items() if kind and row.get(kind) == parts["id"]]
            own = path.name if match[0] != path.name else parts["file"] or path.name
            name = student(unicodedata.normalize("NFC", f"{parts['name']} {parts['id']}"))
            return (known or [name])[0], own, bool(parts.get("late"))
    return None


def _downloaded(member: zipfile.ZipInfo) -> datetime:
    """When a zip was made, as it says of a file; now, if it says no date at all, or none that can be."""
    now = datetime.now(UTC).replace(microsecond=0)
    try:
        when = datetime(*member.date_time, tzinfo=UTC)
    except ValueError:
        return now
    return when if when.year > EPOCH else now


def _when(downloaded: datetime, settings: Settings, name: str, lesson: str, *, late: bool) -> tuple[datetime, bool]:
    """When it counts as handed in, which is no later than it was downloaded; and whether that is sure to be in time, or
    late.
    """
    due = settings.deadline(name, lesson)
    if due is None:
        return downloaded, True
    grace = due + timedelta(minutes=settings.grace_minutes)
    return min(downloaded, grace + timedelta(seconds=1) if late else due), late or downloaded <= grace


def export(folder: Path, book: Book, pages: dict[str, str]) -> None:
    """``canvas.csv`` and ``moodle.csv`` for those whose ids the roster has, and ``feedback.zip`` for everybody."""
    canvas, moodle = _ids(book, "canvas_id"), _ids(book, "moodle_id")
    most = f"{book.handout.points:g}"
    if canvas:
        lesson = book.settings.assignments.get(book.handout.name, book.handout.name)
        rows = [["    Points Possible", "", "", most]]
        rows += [
            [_name(book, name), number, book.roster[name].get("section", ""), f"{book.total(name):g}"]
            for name, number in canvas.items()
        ]
        atomic_write(folder / "canvas.csv", spreadsheet(["Student", "ID", "Section", lesson], rows))
    if moodle:
        rows = [
            [f"Participant {number}", _name(book, name), f"{book.total(name):g}", most, "-"]
            for name, number in moodle.items()
        ]
        head = ["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)"]
        atomic_write(folder / "moodle.csv", spreadsheet(head, rows))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(pages.items()):
            target = book.folders.get(name, file_name(name))
            if name in moodle:  # which begins with all that stands before the first _
                target = file_name(f"{_name(book, name).replace('_', ' ')}_{moodle[name]}_assignsubmission_file")
            about = zipfile.ZipInfo(f"{target}/{book.handout.name}.html")  # of no date: the same every time
            archive.writestr(about, text, zipfile.ZIP_DEFLATED)
    atomic_write(folder / "feedback.zip", out.getvalue())


def _ids(book: Book, kind: str) -> dict[str, str]:
    return {name: row[kind] for name, row in sorted(book.roster.items()) if row.get(kind)}


def _name(book: Book, student: str) -> str:
    return book.roster[student].get("name") or student
