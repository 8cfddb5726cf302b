"""The lessons there are: folders ``solutions/NN-topic`` with a notebook of the same name, and perhaps a second one,
``NN-topic-further``.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from companion.workshop.cli.setup import ROOT

TIMES = {"minutes": int, "machine_seconds": int}
FACTS = {"title": str, "question": str, "needs": list} | TIMES


class LessonError(ValueError):
    """A lesson that is not there or not as it should be; the message names it."""


@dataclass(frozen=True)
class Lesson:
    """One lesson by its source. A second notebook beside it, *further*, has what a first reading leaves out."""

    name: str
    source: Path

    @property
    def further(self) -> Path | None:
        """Return where the second notebook lies; None if there is none."""
        path = self.source.with_name(f"{self.name}-further.ipynb")
        return path if path.is_file() else None

    @property
    def notebooks(self) -> list[Path]:
        """Return the lesson's one or two notebooks, in the order in which they are read."""
        return [path for path in (self.source, self.further) if path]

    def facts(self) -> dict:
        """Title, question, minutes, machine_seconds and needs: the lesson's metadata ``companion``. Raises LessonError
        where it lacks one, or one is of the wrong type.
        """
        return _facts(self.source, FACTS)

    def times(self) -> list[dict]:
        """Return the minutes and machine_seconds of each notebook. Raises as `facts`."""
        return [_facts(path, TIMES) for path in self.notebooks]


def _facts(path: Path, due: dict[str, type]) -> dict:
    facts = json.loads(path.read_text(encoding="utf-8"))["metadata"].get("companion", {})
    wrong = [f"{fact} ({kind.__name__})" for fact, kind in due.items() if not isinstance(facts.get(fact), kind)]
    if wrong:
        raise LessonError(f"{path.stem}: the notebook's metadata 'companion' needs {', '.join(wrong)}")
    return facts


def all_lessons(root: Path = ROOT) -> list[Lesson]:
    """Return all lessons, in order."""
    sources = sorted(root.glob("solutions/*/*.ipynb"))
    return [Lesson(source.stem, source) for source in sources if source.stem == source.parent.name]


def released(root: Path = ROOT) -> list[Lesson]:
    """Return the lessons as learners get them, in order."""
    paths = sorted(root.glob("lessons/*/*.ipynb"))
    return [Lesson(path.stem, path) for path in paths if path.stem == path.parent.name]


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
            there = ", ".join(lesson.name for lesson in fits or lessons) or "no lesson yet"
            raise LessonError(
                f"LESSON = {word!r}: {'fits more than one' if fits else 'there is no such lesson'}; there is {there}"
            )
        found.add(fits[0])
    return [lesson for lesson in lessons if lesson in found]


def notation() -> str:
    """Return the notation of the whole course in Markdown, which stands under the map of the lessons."""
    return Path(__file__).with_name("notation.md").read_text(encoding="utf-8")


def start_page(
    lessons: list[Lesson], columns: tuple[str, ...] = (), more: dict[str, tuple[str, ...]] | None = None
) -> str:
    """Return the map of the lessons in Markdown: what JupyterLab opens on, above the `notation`. ``columns`` are
    further columns of its table, which ``more`` fills for each lesson by name.
    """
    head = ["Lesson", "The question", "You need", "Machine", "First", *columns]
    lines = [
        "# Transformers as Algorithms",
        "",
        "Read and run the lessons in this order. Each is a notebook: a question, code to read, exercises that check "
        "themselves. A second one, *Further*, has extensions, and how sure we are.",
        "",
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
    ]
    for lesson in lessons:
        facts = lesson.facts()
        link = f"[{lesson.name[:2]} {facts['title']}]({lesson.name}/{lesson.name}.ipynb)"
        if lesson.further:
            link += f"<br>[Further]({lesson.name}/{lesson.further.name})"
        needs = "<br>".join(facts["needs"]) or "nothing"
        minutes = "<br>".join(f"{times['minutes']} min" for times in lesson.times())
        machine = "<br>".join(machine_time(times["machine_seconds"]) for times in lesson.times())
        row = [link, facts["question"], minutes, machine, needs]
        lines.append(f"| {' | '.join([*row, *(more or {}).get(lesson.name, ())])} |")
    return "\n".join(lines) + "\n"


def machine_time(seconds: int) -> str:
    """Seconds as people say them."""
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"
