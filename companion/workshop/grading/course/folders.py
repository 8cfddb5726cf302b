"""Which notebook of a student's folder is the hand-in, and what is said of all the others: none is left out silently.

grading/submitted/STUDENT/NN-topic/NN-topic.ipynb        where it belongs
grading/submitted/STUDENT/NN-topic/NN-topic (1).ipynb    what is read, too: another name, NN-topic/NN-topic/, a folder
                                                         NN-TOPIC/ or NN/, one of any name, or none

Of several notebooks one alone may hold answers: that one is marked. Where several do, the one in its place is.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from companion.workshop.grading.course.names import student
from companion.workshop.grading.notebook.files import (
    HELP,
    HELPERS,
    PACKED,
    Unreadable,
    enumerated,
    helpers,
    is_notebook,
    no_notebook,
    read_file,
)
from companion.workshop.notebooks import BESIDE

DEEP, MANY = 2, 5000  # folders below the lesson's that are looked into, and files in one
SEVERAL = 6  # notebooks that are read, to see which of them holds answers
KINDS = (*PACKED, ".ipynb", ".json", ".html", ".htm", ".pdf", ".py", ".txt", ".md")
SYSTEM = {"timestamp.txt", "desktop.ini", "thumbs.db", "predictions.json"}  # beside a notebook without a hand's doing
Answered = Callable[[bytes], bool]


@dataclass(frozen=True)
class Notebook:
    """One that was found: how it is ``shown``, whether it has its ``own`` name and lies in its ``place``, and what is
    in it (``data``, last ``changed`` at), or the ``problem`` that kept it from being read.
    """

    shown: str
    own: bool
    place: bool
    data: bytes = b""
    problem: str = ""
    changed: float = 0.0
    folder: Path | None = None


@dataclass(frozen=True)
class Found:
    """The notebook that is the hand-in, the ``files`` beside it that it can import, and ``remarks`` on the rest."""

    notebook: Notebook
    files: dict[str, bytes]
    remarks: list[str]


def find(place: Path, lesson: str, others: set[str], largest: int, answered: Answered) -> Found | None:
    """Return the hand-in for a ``lesson`` in a student's folder ``place``; None if there is nothing that looks like
    one, as far as it can be told from the names of the ``others``. No notebook has more than ``largest`` bytes, and
    ``answered`` says of one whether it holds answers; it is asked only where there are several.

    Raises Unreadable, which names what is there, and OSError.
    """
    proper = place / lesson
    if (place.is_symlink() and proper.is_dir()) or proper.is_symlink():
        raise Unreadable("the folder is a link, which is not followed; put the folder itself there")
    if place.is_symlink() or not place.is_dir():
        if place.name.lower().endswith(KINDS):
            raise Unreadable(f"it is in no student's folder; it must be in STUDENT/{lesson}/")
        return None
    search = _Search(place, lesson, others)
    beside = [f"{lesson}-{each}".lower() for each in BESIDE]
    paths = [path for path in search.notebooks if path.stem.lower() not in beside] or search.notebooks
    strange = search.strange
    if not paths:
        if proper.is_dir():  # what lies elsewhere may be another lesson's
            strange = [path for path in strange if path.is_relative_to(proper)]
        elif not strange:
            return None
        raise Unreadable(no_notebook([*map(search.shown, strange)], lesson))
    found = [search.read(path, largest) for path in paths[:SEVERAL]]
    notebook, remarks = choose(found, lesson, answered)
    if paths[SEVERAL:]:
        remarks.append(f"not looked at: {enumerated(map(search.shown, paths[SEVERAL:]))}")
    if not notebook.place:
        remarks = [f"{notebook.shown} was read; it belongs in {lesson}/{lesson}.ipynb", *remarks]
    own = [path for path in strange if path.is_relative_to(proper) or lesson in path.name]
    if doubtful := [path for path in own if ".ipynb." in path.name.lower() or path.name.lower().endswith(PACKED)]:
        remarks.append(f"not read: {enumerated(map(search.shown, doubtful))}")
    python = [path.name for path in _entries(notebook.folder) if path.name.endswith(".py")]
    files, left = helpers(python, partial(_read, notebook.folder))
    if left:
        remarks.append(not_helpers([*map(student, left)]))
    return Found(notebook, files, remarks)


def choose(found: list[Notebook], lesson: str, answered: Answered) -> tuple[Notebook, list[str]]:
    """Return the notebook that is marked, of those that were ``found``, the likeliest first, and what is to be said of
    the others. Raises Unreadable where it cannot be told which, and for what keeps the only one from being read.
    """
    distinct = [one for at, one in enumerate(found) if one.problem or one.data not in [two.data for two in found[:at]]]
    if len(distinct) == 1:
        [chosen], solved = distinct, distinct
    else:
        solved = [one for one in distinct if not one.problem and answered(one.data)]
        named = [one for one in solved if one.own]
        placed = [one for one in named if one.place]
        ways = solved, placed, named, [] if solved else [one for one in distinct[:1] if one.own]
        chosen = next((way[0] for way in ways if len(way) == 1), None)
    if chosen is None:
        those = f", and {len(solved)} of them hold answers" if solved else ""
        names = enumerated(one.shown for one in distinct)
        raise Unreadable(
            f"there are {len(distinct)} notebooks, none named {lesson}.ipynb{those} ({names}): keep one of them"
            if not any(one.own and one.place for one in distinct)
            else f"there are {len(distinct)} notebooks{those} ({names}): keep one of them"
        )
    if chosen.problem:
        raise Unreadable(chosen.problem)
    remarks = [_remark(chosen, one, one in solved) for one in distinct if one is not chosen]
    return chosen, remarks


def _remark(chosen: Notebook, other: Notebook, holds_answers: bool) -> str:
    if other.problem:
        return f"{chosen.shown} is marked, since {other.shown} cannot be read: {other.problem}"
    if holds_answers:
        return f"{chosen.shown} is marked, and {other.shown} is not, which holds answers, too: keep one of them"
    if other.own:
        return f"{chosen.shown} is marked, because {other.shown} holds no answers that can be read: keep one of them"
    return f"{chosen.shown} is marked, and {other.shown} is not, which holds no answers that can be read"


def not_helpers(names: list[str]) -> str:
    """Say of files of Python that they are not kept beside a notebook."""
    most = f"at most {HELPERS} files of {HELP >> 10} KiB together"
    return f"not read beside the notebook: {enumerated(names)} (of Python files only what it can import, {most})"


class _Search:
    """What lies in a student's folder: the ``notebooks`` that may be of the lesson, the likeliest first, and other
    things that may be meant as one (``strange``).
    """

    def __init__(self, place: Path, lesson: str, others: set[str]):
        self.place, self.lesson, self.proper = place, lesson, place / lesson
        self.others = {name for name in others if name != lesson}
        self.notebooks: list[Path] = []
        self.strange: list[Path] = []
        if self.proper.is_dir():
            self._look(self.proper, DEEP, every=True)
        for path in _entries(place):
            if (path == self.proper and path.is_dir()) or self._of_another(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                before = len(self.notebooks)
                with suppress(OSError):
                    self._look(path, 1, every=self._alias(path.name))
                self.strange += [path] if len(self.notebooks) == before else []
            else:
                self._sort(path, every=False)
        self.notebooks.sort(key=lambda path: (path.parent != self.proper, not self._own(path), path.as_posix()))

    def shown(self, path: Path) -> str:
        """Return how a file is named: by what is not clear from the lesson."""
        name = student(path.relative_to(self.proper if path.parent == self.proper else self.place).as_posix())
        return f"{name}/" if path.is_dir() else name

    def read(self, path: Path, largest: int) -> Notebook:
        """Read one of the notebooks."""
        about = {"shown": self.shown(path), "own": self._own(path), "place": path.parent == self.proper}
        try:
            data, changed = read_file(path, largest)
        except Unreadable as error:
            return Notebook(**about, problem=str(error))
        return Notebook(**about, data=data, changed=changed, folder=path.parent)

    def _look(self, folder: Path, deep: int, *, every: bool) -> None:
        for path in _entries(folder):
            if path.is_dir() and not path.is_symlink() and not is_notebook(path.name):
                if deep and not path.name.startswith((".", "__")):
                    with suppress(OSError):
                        self._look(path, deep - 1, every=every)
            else:
                self._sort(path, every=every)

    def _sort(self, path: Path, *, every: bool) -> None:
        if is_notebook(path.name) and (every or self.lesson.casefold() in path.stem.casefold()):
            self.notebooks.append(path)
        elif path.name[0] != "." and path.name.lower() not in SYSTEM:
            name = path.name.casefold()
            is_meant = name.endswith(KINDS) or self.lesson.casefold() in name
            is_here = path.parent == self.place or path.is_relative_to(self.proper)
            self.strange += [path] if is_meant and is_here else []

    def _own(self, path: Path) -> bool:
        return path.name.casefold() == f"{self.lesson}.ipynb".casefold()

    def _alias(self, name: str) -> bool:
        """Whether a folder is called like the lesson, in other letters or in short."""
        number, _, topic = _plain(self.lesson).partition("-")
        name = _plain(name)
        return name in (number, number.lstrip("0"), topic) or name.startswith(f"{number}-{topic}")

    def _of_another(self, name: str) -> bool:
        """Whether a file or folder is called like another lesson, or begins with another's number."""
        name, number = _plain(name), re.match(r"\d*", self.lesson)[0]
        found = re.match(r"(\d{1,2})(?!\d)", name)
        alike = any(_plain(other) in name for other in self.others)
        return alike or name.startswith(".") or (found is not None and int(found[1]) != int(number or -1))


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]+", "-", name.casefold())


def _entries(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for _, entry in zip(range(MANY), entries, strict=False))


def _read(folder: Path, name: str) -> bytes | None:
    try:
        return read_file(folder / name, HELP)[0]
    except Unreadable:
        return None
