"""The lessons there are: folders ``solutions/NN-topic`` with a notebook of the same name, and perhaps a second one,
``NN-topic-further``, and a third, ``NN-topic-circuit``; and before them a *taster*, ``00-name``, for whoever is not
sure yet. It is made, run and shown like a lesson, but it has no form to keep, earns no points, makes no claims, and
does not count as one.
"""

import os
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from companion.core.files import FileError, atomic_write
from companion.core.registry import nearest_first
from companion.workshop.cli.setup import ROOT
from companion.workshop.notebooks import BESIDE, read_notebook

TIMES = {"minutes": int, "machine_seconds": int}
FACTS = {"title": str, "question": str, "needs": list} | TIMES
AIMS = re.compile(r"^\| You will be able to \|(.*)\|$", re.MULTILINE)


class LessonError(FileError):
    """A lesson that is not there or not as it should be; the message names it."""


@dataclass(frozen=True)
class Lesson:
    """One lesson by its source. The notebooks beside it, *further* and *circuit*, have what a first reading leaves out
    and earn no points.
    """

    name: str
    source: Path

    @property
    def is_taster(self) -> bool:
        """Return whether it is a taster, and no lesson."""
        return self.name.startswith("00-")

    @property
    def beside(self) -> dict[str, Path]:
        """Return where the other notebooks lie that there are, by what they are called."""
        paths = {each.title(): self.source.with_name(f"{self.name}-{each}.ipynb") for each in BESIDE}
        return {title: path for title, path in paths.items() if os.path.lexists(path)}

    @property
    def notebooks(self) -> list[Path]:
        """Return the lesson's notebooks, in the order in which they are read."""
        return [self.source, *self.beside.values()]

    @property
    def picture(self) -> Path:
        """Return where the picture at its head lies, answered if it is."""
        answer = self.source.with_name("answer.png")
        return answer if answer.is_file() else self.source.with_name("figure.png")

    @property
    def path(self) -> str:
        """Return where the lesson lies in the folder of all lessons."""
        return f"{self.name}/{self.name}.ipynb"

    def aim(self) -> str:
        """Return what a learner can do in the end: the last thing that the lesson's head says; empty if it says
        nothing.
        """
        head = read_notebook(self.source)["cells"][0]["source"]
        found = AIMS.search("".join(head))
        return found[1].rpartition(";")[2].replace("*", "").strip() if found else ""

    def facts(self) -> dict:
        """Title, question, minutes, machine_seconds and needs: the lesson's metadata ``companion``. Raises LessonError
        where it lacks one, or one is of the wrong type.
        """
        return _facts(self.source, FACTS)

    def damage(self) -> str:
        """Return why the lesson cannot be shown, naming its file; empty if nothing is wrong with it."""
        try:
            self.facts()
            self.times()
        except FileError as error:
            return str(error)
        return ""

    def unread(self) -> str:
        """Return why one of its notebooks cannot be read, or what it has lost, naming it; empty if they are whole."""
        try:
            for path in self.notebooks:
                _facts(path, {})
        except FileError as error:
            return str(error)
        return ""

    def times(self) -> list[dict]:
        """Return the minutes and machine_seconds of each notebook. Raises as `facts`."""
        return [_facts(path, TIMES) for path in self.notebooks]


def _facts(path: Path, due: dict[str, type]) -> dict:
    notebook = read_notebook(path)
    if not notebook["cells"]:
        raise LessonError(f"{path.stem}: the notebook has no cells")
    facts = notebook["metadata"].get("companion")
    if not facts or not isinstance(facts, dict):
        raise LessonError(f"{path.stem}: the notebook must have metadata 'companion', as the other lessons have")
    wrong = [f"{fact} ({kind.__name__})" for fact, kind in due.items() if not isinstance(facts.get(fact), kind)]
    if wrong:
        raise LessonError(f"{path.stem}: the notebook's metadata 'companion' must have {', '.join(wrong)}")
    return facts


def everything(root: Path = ROOT, folder: str = "solutions") -> list[Lesson]:
    """Return the taster and all lessons in a ``folder`` of the checkout, in order."""
    sources = sorted(root.glob(f"{folder}/*/*.ipynb"))
    return [Lesson(source.stem, source) for source in sources if source.stem == source.parent.name]


def all_lessons(root: Path = ROOT, folder: str = "solutions") -> list[Lesson]:
    """Return all lessons in a ``folder`` of the checkout, in order."""
    return [lesson for lesson in everything(root, folder) if not lesson.is_taster]


def released(root: Path = ROOT) -> list[Lesson]:
    """Return `everything` as learners get it, in order."""
    return everything(root, "lessons")


def select_lessons(words: list[str], root: Path = ROOT, *, among: list[Lesson] | None = None) -> list[Lesson]:
    """Return the lessons (``among`` these) that ``words`` name, in order: a number, a whole name, or a part of one name
    only; all of them if no word is given.

    Raises LessonError, naming what there is, for a word that names none or more than one.
    """
    lessons = all_lessons(root) if among is None else among
    if not words:
        return lessons
    found = set()
    for word in words:
        fits = [lesson for lesson in lessons if word == lesson.name] or [
            lesson
            for lesson in lessons
            if (lesson.name.startswith(f"{word}-") if word.isdigit() else word in lesson.name)
        ]
        if len(fits) != 1:
            names = [lesson.name for lesson in fits or lessons]
            there = ", ".join(nearest_first(word, names)) or "no lesson yet"
            raise LessonError(
                f"LESSON = {word!r}: {'fits more than one' if fits else 'there is no such lesson'}; there is {there}"
            )
        found.add(fits[0])
    return [lesson for lesson in lessons if lesson in found]


def notation() -> str:
    """Return the notation of the whole course in Markdown, which stands under the map of the lessons."""
    return Path(__file__).with_name("notation.md").read_text(encoding="utf-8")


def cards(lessons: list[Lesson], folder: str, more: dict[str, list[str]] | None = None) -> str:
    """Return the lessons as a table in Markdown, two in a row: picture, link and minutes, question, what one can do in
    the end.

    ``folder``: where the lessons lie, seen from the page.
    ``more``: further lines, for each lesson by name.
    """
    found = []
    for lesson in lessons:
        facts = lesson.facts()
        lines = [
            f'<img src="{folder}{lesson.name}/thumbnail.png" width="340" alt="{facts["title"]}">',
            f"**[{lesson.name[:2]} {facts['title']}]({folder}{lesson.path})** · {facts['minutes']} min",
            facts["question"],
            *[f"*In the end you {lesson.aim()}.*"] * bool(lesson.aim()),
            *(more or {}).get(lesson.name, []),
        ]
        found.append("<br>".join(lines))
    rows = [f"| {' | '.join(pair)} |" for pair in zip_longest(found[::2], found[1::2], fillvalue="")]
    return "\n".join(["| | |", "|---|---|", *rows])


def start_page(lessons: list[Lesson], progress: dict[str, list[str]] | None = None, first: str = "") -> str:
    """Return the map of the lessons in Markdown: what JupyterLab opens on, above the `notation`.

    ``progress``: for each lesson by name, lines that say what is done.
    ``first``: what stands above the map.
    """
    more = {}
    for lesson in lessons:
        facts = lesson.facts()
        more[lesson.name] = lines = [f"First: {'; '.join(facts['needs']) or 'nothing'}"]
        others = lesson.beside.items()
        for (title, path), times in zip(others, lesson.times()[1:] if others else (), strict=True):
            lines.append(f"[{title}]({lesson.name}/{path.name}) · {times['minutes']} min")
        lines += (progress or {}).get(lesson.name, [])
    text = (
        "# Transformers as Algorithms\n\nRead and run the lessons in this order. Each is a notebook: a question, code "
        "to read, exercises that check themselves. A second one, *Further*, has extensions, and how sure we are."
    )
    return "\n\n".join(filter(None, [text, first, cards(lessons, "", more)])) + "\n"


def machine_time(seconds: int) -> str:
    """Seconds as people say them."""
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def put_part(readme: Path, name: str, text: str, *, write: bool = True) -> bool:
    """Put ``text`` into ``readme`` between the marks ``<!-- name -->`` and ``<!-- /name -->`` of its ``name``, on the
    disk only if ``write``, and return whether another one was there. Raises ValueError where there are no such marks.
    """
    before = readme.read_text(encoding="utf-8")
    head, start, rest = before.partition(f"<!-- {name} -->")
    _, end, tail = rest.partition(f"<!-- /{name} -->")
    if not end:
        raise ValueError(f"{readme}: has no <!-- {name} --> … <!-- /{name} --> to put the {name} in")
    after = f"{head}{start}\n{text}\n{end}{tail}"
    if write and after != before:
        atomic_write(readme, after)
    return after != before
