"""``release``: answers, minutes and small pictures into ``solutions/``, a table of the lessons into the README, then
``lessons/`` from ``solutions/`` with nbgrader, byte for byte the same on every machine.
"""

import json
import shutil
import tempfile
from argparse import Namespace
from fnmatch import fnmatch
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from traitlets.config import Config

from companion import __version__
from companion.core.files import FileError, atomic_write, make_room
from companion.workshop.cli import launch
from companion.workshop.cli.answers import put_answers
from companion.workshop.cli.lessons import (
    Lesson,
    LessonError,
    cards,
    everything,
    notation,
    put_part,
    select_lessons,
    start_page,
)
from companion.workshop.cli.minutes import put_minutes
from companion.workshop.cli.setup import ROOT
from companion.workshop.cli.thumbnails import put_thumbnail
from companion.workshop.notebooks import node

STUB = "# your code here\nraise NotImplementedError"
LEFT_BEHIND = (".*", "__*", "predictions*.json")  # by editors and runs
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def main(arguments: Namespace, root: Path = ROOT) -> int:
    """Write the answers and make the lessons, or with ``--check`` tell what differs."""
    try:
        course, unread = whole_course(root)
        print(*unread, sep="\n", end="\n" * bool(unread))
        try:
            named = select_lessons(arguments.lessons, among=course)
        except LessonError as error:
            print(f"release: {error}")
            return 2
        lessons = [lesson for lesson in named if lesson.source.is_relative_to(root / "solutions")]
        whole = not arguments.lessons and not unread
        sources = [path for lesson in lessons for path in lesson.notebooks]
        write = not arguments.check
        others = [f"solutions/{line}" for path in sources for line in put(path, write=write)]
        print(*others, sep="\n", end="\n" * bool(others))  # the answers are written, even if a picture is missing
        more = [f"solutions/{line}" for lesson in lessons for line in put_thumbnail(lesson, write=write)]
        table = readme_table(course, launch.repository(root))
        if put_part(root / "README.md", "lessons", table, write=write):
            more.append("README.md: its table of lessons is out of date; `release` writes it")
        print(*more, sep="\n", end="\n" * bool(more))
        if write:
            make_room(root / "build")
        # on lessons/'s own disk, so that a rename will do
        with tempfile.TemporaryDirectory(dir=root / "build" if write else None) as folder:
            made = generate(lessons, Path(folder), course, launch.repository(root))
            (made / "README.md").write_bytes(f"{start_page(course)}\n{notation()}".encode())
            differences = compare(made, root / "lessons", whole=whole)
            for difference in differences:
                print(f"lessons/{difference}")
            if arguments.check:
                many = len(others) + len(more) + len(differences)
                print(f"{many} differences; run `release`" if many else "The lessons are up to date")
                return int(bool(many or unread))
            replace(made, root / "lessons", whole=whole)
            changed = "; what is named above is written now" * bool(others or more or differences)
            print("Released " + ", ".join(lesson.name for lesson in lessons) + changed)
            for other in led_astray(lessons, course, root):
                print(
                    f"lessons/{other.path}: the lesson before or after it has changed; run `release {other.name[:2]}`"
                )
    except FileError as error:
        print(f"release: {error}")
        return 1
    return int(bool(unread))


def whole_course(root: Path) -> tuple[list[Lesson], list[str]]:
    """Return `everything` in order, what cannot be read as learners have it; and a line for each of these."""
    course, unread = [], []
    for lesson in everything(root):
        if why := lesson.unread():
            unread.append(f"{why}; lessons/{lesson.name} stays as it is")
        there = Lesson(lesson.name, root / "lessons" / lesson.path) if why else lesson
        course += [there] * there.source.is_file()
    return course, unread


def readme_table(lessons: list[Lesson], repository: str) -> str:
    """Return ``lessons`` as `cards`; above them, if the course has a ``repository``, badges that open the first."""
    opens = launch.places(repository, f"lessons/{lessons[0].path}")
    badges = " ".join(f"[![Open in {name}]({launch.BADGES[name]})]({address})" for name, address in opens.items())
    first = f"{lessons[0].facts()['title']}, without installing anything: {badges}\n\n" if badges else ""
    return first + cards(lessons, "lessons/")


def put(path: Path, *, write: bool) -> list[str]:
    """Put the exercises' answers and the minutes into the notebook at ``path``, on the disk only if ``write``; a line
    for each that was another.
    """
    notebook, lines = put_answers(path)
    lines += put_minutes(path, notebook)
    if lines and write:
        atomic_write(path, nbformat.writes(notebook) + "\n")
    return lines


def generate(lessons: list[Lesson], folder: Path, course: list[Lesson], repository: str = "") -> Path:
    """Make lessons and return where they lie. Raises LessonError with nbgrader's reason.

    ``lessons``: which ones.
    ``folder``: where they are made.
    ``course``: all there are.
    ``repository``: ``owner/name``, from where a lesson on Colab installs the companion; empty if there is none.
    """
    made = folder / "lessons"
    made.mkdir()
    config = Config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "lessons"
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    config.ClearSolutions.code_stub = {"python": STUB}
    for lesson in lessons:
        source = folder / "solutions" / lesson.name
        shutil.copytree(lesson.source.parent, source, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        for path in lesson.notebooks:
            notebook = node(path)
            facts = {**notebook.metadata.get("companion", {}), "notebook": path.stem, "version": __version__}
            notebook.metadata = {"companion": facts, "kernelspec": KERNEL, "language_info": {"name": "python"}}
            notebook.cells.append(footer(lesson, path, course))
            if repository:
                notebook.cells.insert(1, colab(repository))
            nbformat.write(notebook, source / path.name)
        config.CourseDirectory.assignment_id = lesson.name
        result = capture_log(GenerateAssignment(coursedir=CourseDirectory(config=config), config=config))
        if not result["success"]:
            reason = result.get("log") or result["error"]
            raise LessonError(f"{lesson.name}: nbgrader could not make it\n{reason}")
        for path in lesson.notebooks:
            _settle(made / lesson.name / path.name)
    return made


def colab(repository: str) -> nbformat.NotebookNode:
    """Return a folded cell that installs the companion on Colab, with the torch that is there, and does nothing
    elsewhere.
    """
    what = f"transformers-as-algorithms[lessons] @ git+https://github.com/{repository}"
    source = f'import sys\n\nif "google.colab" in sys.modules:\n    %pip install -q "{what}"'
    fold = {"tags": ["colab"], "jupyter": {"source_hidden": True}, "cellView": "form"}
    return nbformat.v4.new_code_cell(source, id="colab", metadata=fold)


def footer(lesson: Lesson, path: Path, course: list[Lesson]) -> nbformat.NotebookNode:
    """Return the cell under a notebook's references: from the lesson to those beside it, the lesson before, the next,
    the map and the notation; from one beside it (the notebook at ``path``) back.
    """
    place, title = course.index(lesson), f"{lesson.name[:2]} {lesson.facts()['title']}"
    if path != lesson.source:
        links = [f"Back to the lesson: [{title}]({lesson.source.name})"]
    else:
        neighbours = {"Before": course[max(place - 1, 0) : place], "Next": course[place + 1 : place + 2]}
        links = [f"[{title}]({other.name})" for title, other in lesson.beside.items()]
        links += [
            f"{word}: [{other.name[:2]} {other.facts()['title']}](../{other.name}/{other.name}.ipynb)"
            for word, others in neighbours.items()
            for other in others
        ]
    links += ["[All lessons](../README.md)", "[Notation](../README.md#notation)"]
    return nbformat.v4.new_markdown_cell(" · ".join(links), id="footer")


def led_astray(lessons: list[Lesson], course: list[Lesson], root: Path) -> list[Lesson]:
    """Return the neighbours of ``lessons`` in the ``course`` whose released footer leads elsewhere than it should."""
    places = {course.index(lesson) + step for lesson in lessons for step in (-1, 1)}
    beside = [lesson for at, lesson in enumerate(course) if at in places and lesson not in lessons]
    texts = {lesson: root / "lessons" / lesson.path for lesson in beside}
    texts = {lesson: path.read_text(encoding="utf-8") for lesson, path in texts.items() if path.is_file()}
    due = {lesson: json.dumps(footer(lesson, lesson.source, course).source, ensure_ascii=False) for lesson in texts}
    return [lesson for lesson, text in texts.items() if due[lesson] not in text]


def _settle(path: Path) -> None:
    """Write a notebook as every version and platform does: no outputs, sorted keys, a newline at the end."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    path.write_bytes((nbformat.writes(notebook).rstrip("\n") + "\n").encode())


def compare(made: Path, lessons: Path, *, whole: bool) -> list[str]:
    """Return one line for every file of ``made`` that ``lessons`` has otherwise, and (``whole``) for every one that it
    has beside them.
    """
    new = {path.relative_to(made) for path in made.rglob("*") if path.is_file()}
    old = {path.relative_to(lessons) for path in _files(lessons)}
    if not whole:
        touched = {path.parts[0] for path in new}
        old = {path for path in old if path.parts[0] in touched}
    lines = [f"{path.as_posix()}: is missing" for path in sorted(new - old)]
    lines += [f"{path.as_posix()}: comes from no solution" for path in sorted(old - new)]
    for path in sorted(new & old):
        if (made / path).read_bytes() != (lessons / path).read_bytes():
            lines.append(
                f"{path.as_posix()}: differs{_where(made / path, lessons / path) if path.suffix == '.ipynb' else ''}"
            )
    return lines


def _files(lessons: Path) -> list[Path]:
    """What stands in ``lessons``, but for what editors and runs leave there."""
    paths = (path for path in lessons.rglob("*") if path.is_file())
    return [
        path
        for path in paths
        if not any(fnmatch(part, pattern) for part in path.relative_to(lessons).parts for pattern in LEFT_BEHIND)
    ]


def _where(made: Path, kept: Path) -> str:
    """In which cells two notebooks differ."""
    try:
        new, old = node(made), node(kept)
    except FileError:
        return ": not a notebook"
    if len(new.cells) != len(old.cells):
        return f": {len(old.cells)} cells instead of {len(new.cells)}"
    cells = [str(number) for number, pair in enumerate(zip(new.cells, old.cells, strict=True), 1) if pair[0] != pair[1]]
    return f" in cell {', '.join(cells)}" if cells else " in the notebook's metadata or form"


def replace(made: Path, lessons: Path, *, whole: bool) -> None:
    """Move what was made to where it belongs, one lesson at a time and each in one rename."""
    lessons.mkdir(exist_ok=True)
    gone = made.parent / "gone"
    gone.mkdir()
    for old in lessons.iterdir():
        if (made / old.name).exists() or (whole and not old.name.startswith(".")):
            old.rename(gone / old.name)
        if (made / old.name).exists():
            (made / old.name).rename(old)
    for new in made.iterdir():
        new.rename(lessons / new.name)
