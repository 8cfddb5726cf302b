"""From and to a learning management system, as Canvas and Moodle themselves read and write.

Canvas' *Download Submissions* is a zip of files ``bergannika_LATE_12345_67890_notebook-1.ipynb``: the student's
sortable name without what is no letter, LATE perhaps, the student's id, the file's id, and the file's name, with a
number if it was handed in again (``anon_a1B2c_67890_notebook.ipynb`` where marking is anonymous). Its gradebook takes
a CSV that begins with Student, ID and Section, and knows an assignment by ``Name (id)``: say so in ``settings.toml``.

Moodle's *Download all submissions* is a zip of folders ``Annika Berg_12345_assignsubmission_file`` (before 4.1 with
another ``_``; or, without folders, of files that begin so), and what is in them may lie in folders again. Its grading
worksheet needs Identifier (``Participant 12345``), Grade and ``Last modified (grade)``; where Moodle has a grade
already, tick there that newer records may be updated. Feedback files go back as a zip of the same folders.

Ids that the roster has name the student; without it, the names in the zip do. Neither zip says when something was
handed in, only when it was downloaded. So what is not marked LATE counts as in time, and what is, as handed in just
after the deadline.
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

from companion.core.files import atomic_write
from companion.workshop.grading.course.book import Book
from companion.workshop.grading.course.feedback import spreadsheet
from companion.workshop.grading.course.handins import keep
from companion.workshop.grading.course.names import file_name, student
from companion.workshop.grading.course.settings import Settings, SettingsError, read_settings
from companion.workshop.grading.course.tables import read_roster

MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_file(_.*)?")
CANVAS = re.compile(r"(?P<name>.+?)(?P<late>_late)?_(?P<id>\d+)_\d+_(?P<file>.+)", re.IGNORECASE)
ANONYMOUS = re.compile(r"(?P<late>late_)?(?P<name>anon)_(?P<id>[a-z0-9]+)_\d+_(?P<file>.+)", re.IGNORECASE)
AGAIN = re.compile(r"([-_]\d+| ?\(\d+\))?\.ipynb", re.IGNORECASE)  # what a name has when it is handed in again
LARGEST = 20 << 20  # bytes of one notebook, unpacked
MANY = 10_000  # files in a zip
BROKEN = (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, LZMAError)
UTF8 = 0x800  # this flag says that a name is UTF-8


@dataclass
class Taken:
    """The students of whom a zip held a notebook, those whose notebook it marks as late, and those whose notebook
    cannot be unpacked.
    """

    students: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def take_in(archive: Path, grading: Path, lesson: str) -> Taken:
    """Keep a notebook of each student in a zip as handed in: one named like the lesson before others, the last of
    several. Raises SettingsError for what is no such zip.
    """
    roster, settings = read_roster(grading / "roster.csv"), read_settings(grading / "settings.toml")
    chosen: dict[str, tuple[bool, int, zipfile.ZipInfo, bool]] = {}
    try:
        with zipfile.ZipFile(archive) as file:
            members = [member for member in file.infolist() if _name_in(member).lower().endswith(".ipynb")]
            if len(members) > MANY:
                raise SettingsError(f"{archive.name} holds {len(members)} notebooks; at most {MANY} are taken")
            for number, member in enumerate(members):
                path = PurePosixPath(_name_in(member).replace("\\", "/"))
                if whose := _whose(path, roster):
                    name, own, late = whose
                    is_lesson = own.startswith(lesson) and bool(AGAIN.fullmatch(own[len(lesson) :]))
                    chosen[name] = max(chosen.get(name, (False, -1)), (is_lesson, number, member, late))
            taken = Taken()
            for name, (_, _, member, late) in chosen.items():
                try:
                    with file.open(member) as notebook:
                        data = notebook.read(LARGEST + 1)[:LARGEST]
                except (*BROKEN, ValueError):
                    taken.broken.append(name)
                    continue
                keep(grading, name, lesson, data, _when(member, settings, name, lesson, late=late))
                taken.students.append(name)
                taken.late.extend([name] * late)
    except BROKEN as error:
        raise SettingsError(f"{archive.name} is no zip that can be read: {error}") from None
    if not taken.students:
        what = "whose data are as they should be" if taken.broken else "as Canvas or Moodle name them"
        raise SettingsError(f"{archive.name} holds no notebook {what}")
    return taken


def _name_in(member: zipfile.ZipInfo) -> str:
    """A member's name. Canvas writes UTF-8 without saying so, which Python takes for the letters of a PC of 1981."""
    try:
        return member.filename if member.flag_bits & UTF8 else member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename


def _whose(path: PurePosixPath, roster: dict[str, dict[str, str]]) -> tuple[str, str, bool] | None:
    """The student of a file in the zip, the file's own name, and whether it is marked as late."""
    if any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts):  # Jupyter's copies and macOS's
        return None
    for kind, pattern, words in (
        ("moodle_id", MOODLE, path.parts),
        ("", ANONYMOUS, path.parts[-1:]),
        ("canvas_id", CANVAS, path.parts[-1:]),
    ):
        for match in filter(None, map(pattern.fullmatch, words)):
            parts = match.groupdict()
            known = [name for name, row in roster.items() if kind and row.get(kind) == parts["id"]]
            own = parts.get("file") or (path.name if match[0] != path.name else match[3].removeprefix("_"))
            name = student(unicodedata.normalize("NFC", f"{parts['name']} {parts['id']}"))
            return (known or [name])[0], own, bool(parts.get("late"))
    return None


def _when(member: zipfile.ZipInfo, settings: Settings, name: str, lesson: str, *, late: bool) -> datetime:
    """When it counts as handed in: no later than it was downloaded."""
    try:
        downloaded = datetime(*member.date_time, tzinfo=UTC)
    except ValueError:  # a zip may say no date at all
        downloaded = datetime.now(UTC).replace(microsecond=0)
    due = settings.deadline(name, lesson)
    if due is None:
        return downloaded
    return min(downloaded, due + timedelta(minutes=settings.grace_minutes, seconds=1) if late else due)


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
            target = name
            if name in moodle:  # which begins with all that stands before the first _
                target = f"{_name(book, name).replace('_', ' ')}_{moodle[name]}_assignsubmission_file"
            about = zipfile.ZipInfo(f"{file_name(target)}/{book.handout.name}.html")  # of no date: the same every time
            archive.writestr(about, text, zipfile.ZIP_DEFLATED)
    atomic_write(folder / "feedback.zip", out.getvalue())


def _ids(book: Book, kind: str) -> dict[str, str]:
    return {name: row[kind] for name, row in sorted(book.roster.items()) if row.get(kind)}


def _name(book: Book, student: str) -> str:
    return book.roster[student].get("name") or student
