"""The cases: answers as a learner would type them, and the message that each must get (none: it is right).

They are rows of ``TOPIC.toml``. Of each exercise it has groups, and a group begins with a right answer:

    [text, advice if it gets one, rows ...]

A row ``[old, new, .., message]`` is that text with each old part, which occurs exactly once, replaced by the new one; a
row ``[text, message]`` is a text of its own. Without a message it is a right answer, too, and so it is with a message
"Advice: ..". A text is what stands below the exercise's ``def``, or a whole cell with the ``def``.
"""

import inspect
import linecache
import pkgutil
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch

import companion.topics
from companion.lesson.attempts import Attempt
from companion.lesson.exercise import Exercise
from companion.lesson.mistakes import replaced

TOPICS = [module.name for module in pkgutil.iter_modules(companion.topics.__path__)]
EXERCISES = {
    (topic, name): value
    for topic in TOPICS
    for module in [import_module(f"companion.topics.{topic}.exercises")]
    for name in dir(module)
    if isinstance(value := getattr(module, name), Exercise)
}


@dataclass(frozen=True)
class Case:
    """``source`` defines a function of the exercise's name; ``message`` is part of the diagnosis, or None for a right
    answer, which may get an ``advice``.
    """

    source: str
    message: str | None = None
    advice: str = ""


def cell(exercise: Exercise, text: str) -> str:
    """Return the cell of an answer."""
    start = f"def {exercise.name}("
    if text.startswith(start) or f"\n{start}" in text:
        return text
    return f"{start}{', '.join(inspect.signature(exercise.answer).parameters)}):\n{textwrap.indent(text, '    ')}\n"


def compiled(exercise: Exercise, source: str) -> Attempt:
    """Return the function as a cell would define it, decorated."""
    namespace = {"torch": torch}
    file = f"<cell {exercise.name}>"
    # as a notebook does, for the line in a message
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)
    return exercise(namespace[exercise.name])


def read(exercise: Exercise, groups: list[list]) -> Iterator[Case]:
    """Yield an exercise's cases. Raises ValueError, naming it, for a part that does not occur exactly once."""
    for text, *rest in groups:
        yield Case(cell(exercise, text), advice="".join(each for each in rest if isinstance(each, str)))
        for *pairs, message in (row for row in rest if isinstance(row, list)):
            try:
                changed = pairs[0] if len(pairs) == 1 else replaced(text, pairs)
            except ValueError as error:
                raise ValueError(f"{exercise.name}, {message!r}: {error}") from None
            advice = message.removeprefix("Advice: ") if message.startswith("Advice: ") else ""
            yield Case(cell(exercise, changed), None if advice else message or None, advice)


CASES = {
    (topic, name): list(read(EXERCISES[topic, name], groups))
    for topic in TOPICS
    for name, groups in tomllib.loads(Path(__file__).with_name(f"{topic}.toml").read_text(encoding="utf-8")).items()
}
