"""From and to a learning management system.

Canvas' *Download Submissions* is a zip of files ``bergannika_LATE_12345_67890_notebook.ipynb`` (the student's sortable
name, perhaps LATE, the student's id, the hand-in's id); its gradebook takes a CSV with the columns Student, ID and the
assignment. Moodle's *Download all submissions* is a zip of folders ``Annika Berg_12345_assignsubmission_file_``; its
grading worksheet has the columns Identifier (``Participant 12345``), Full name and Grade, and feedback goes back as a
zip of the same folders. Ids that the roster has name the student; without it, the names in the zip do.
"""

import csv
import io
import re
import unicodedata
import zipfile
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from companion.files import write
from companion.grading.book import Book
from companion.grading.handins import keep
from companion.grading.names import file_name, student
from companion.grading.roster import read_roster
from companion.grading.settings import SettingsError

MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_file_?")
CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<id>\d+)_\d+_.+\.ipynb")
LARGEST = 20 << 20  # bytes of one notebook, unpacked
MANY = 10_000  # files in a zip


def take_in(archive: Path, grading: Path, lesson: str) -> list[str]:
    """Keep every notebook of a zip as handed in; the students' names. Raises SettingsError for what is no such zip."""
    roster = read_roster(grading / "roster.csv")
    taken = []
    try:
        with zipfile.ZipFile(archive) as file:
            members = [member for member in file.infolist() if member.filename.endswith(".ipynb")]
            if len(members) > MANY:
                raise SettingsError(f"{archive.name} holds {len(members)} notebooks; at most {MANY} are taken")
            for member in members:
                name = _whose(PurePosixPath(member.filename), roster)
                if name is None or PurePosixPath(member.filename).name.startswith("._"):
                    continue
                with file.open(member) as notebook:
                    data = notebook.read(LARGEST + 1)[:LARGEST]
                keep(grading, name, lesson, data, _time(member))
                taken.append(name)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise SettingsError(f"{archive.name} is no zip that can be read: {error}") from None
    if not taken:
        raise SettingsError(f"{archive.name} holds no notebook as Canvas or Moodle name them")
    return taken


def _whose(path: PurePosixPath, roster: dict[str, dict[str, str]]) -> str | None:
    """The student of a file in the zip."""
    for kind, pattern, word in (
        ("moodle_id", MOODLE, path.parent.name),
        ("canvas_id", CANVAS, path.name),
    ):
        if found := pattern.fullmatch(word):
            known = [name for name, row in roster.items() if row.get(kind) == found["id"]]
            return known[0] if known else student(unicodedata.normalize("NFC", f"{found['name']} {found['id']}"))
    return None


def _time(member: zipfile.ZipInfo) -> datetime:
    return datetime(*member.date_time, tzinfo=UTC)


def export(place: Path, book: Book, pages: dict[str, str]) -> None:
    """``canvas.csv`` and ``moodle.csv`` for those whose ids the roster has, and ``feedback.zip`` for everybody."""
    canvas, moodle = _ids(book, "canvas_id"), _ids(book, "moodle_id")
    if canvas:
        rows = [[_name(book, name), number, f"{book.total(name):g}"] for name, number in canvas.items()]
        write(place / "canvas.csv", _csv(["Student", "ID", book.given.name], rows))
    if moodle:
        most = f"{book.given.points:g}"
        rows = [
            [f"Participant {number}", _name(book, name), f"{book.total(name):g}", most]
            for name, number in moodle.items()
        ]
        write(place / "moodle.csv", _csv(["Identifier", "Full name", "Grade", "Maximum Grade"], rows))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(pages.items()):
            folder = f"{_name(book, name)}_{moodle[name]}_assignsubmission_file_" if name in moodle else name
            about = zipfile.ZipInfo(f"{file_name(folder)}/{book.given.name}.html")  # of no date: the same every time
            archive.writestr(about, text, zipfile.ZIP_DEFLATED)
    write(place / "feedback.zip", out.getvalue())


def _ids(book: Book, kind: str) -> dict[str, str]:
    return {name: row[kind] for name, row in sorted(book.roster.items()) if row.get(kind)}


def _name(book: Book, student: str) -> str:
    return book.roster[student].get("name") or student


def _csv(head: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(
        [["'" + word if word.startswith(("=", "+", "-", "@", "\t")) else word for word in row] for row in rows]
    )
    return out.getvalue()
