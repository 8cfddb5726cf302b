"""``test``: every test of the house, two at a time; with ``--quick`` those that a change to a topic needs, with
``--processors`` right answers and lessons on every processor that this machine can be.
"""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from companion.workshop.cli.lessons import LessonError, all_lessons, select_lessons
from companion.workshop.cli.setup import ROOT, go_on_as

ALL_TOPICS = (  # files that test every topic or lesson in turn, each under its name
    "tests/lesson/test_mutants.py",
    "tests/lesson/test_unlisted.py",
    "tests/notebooks/test_cells.py",
    "tests/notebooks/test_claims.py",
    "tests/notebooks/test_form.py",
    "tests/notebooks/test_further.py",
    "tests/notebooks/test_grades.py",
    "tests/notebooks/test_lessons.py",
    "tests/core/test_recipe.py",
    "tests/core/test_shipped.py",
    "tests/wrong_answers/test_wrong_answers.py",
)


class TopicError(ValueError):
    """A word that names neither a topic nor a lesson; the message says what there is."""


def main(arguments: Namespace) -> int:
    """Go on as pytest, or try `companion.workshop.cli.processors`. Return 2 if ``--quick`` or ``--processors`` is asked
    for what there is not.
    """
    # two workers of one thread each are faster on two cores than two of two
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # tests start some hundred processes, and each would compile the course and the tests anew
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.chdir(ROOT)
    handed_on = arguments.pytest_args
    if arguments.processors:  # imported here, for it stands on what follows
        return import_module("companion.workshop.cli.processors").main(handed_on)
    if arguments.quick:
        try:
            selected = tests_of(named(word for word in handed_on if not word.startswith("-")))
        except TopicError as error:
            print(f"test: {error}")
            return 2
        os.environ.setdefault("COURSE_TEST_SCALE", "smoke")  # of the solved lesson
        handed_on = [*selected, *(word for word in handed_on if word.startswith("-"))]
    return go_on_as([sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *handed_on])


def topics(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the names of the lessons of each topic: those that import its exercises."""
    found: dict[str, list[str]] = {}
    for lesson in all_lessons(root):
        text = "\n".join(path.read_text(encoding="utf-8") for path in lesson.notebooks)
        for topic in dict.fromkeys(re.findall(r"from companion\.topics\.(\w+) import [^\n]*\bexercises\b", text)):
            found.setdefault(topic, []).append(lesson.name)
    return found


def named(words: Iterable[str], root: Path = ROOT) -> set[str]:
    """Return the topics that ``words`` name: a topic, or a lesson by number, name or a part of it. Raises TopicError
    for any other word, and for none.
    """
    known, found = topics(root), set()
    for word in [*words] or [""]:
        try:
            lessons = known.get(word) or [lesson.name for lesson in select_lessons([word], root)]
        except LessonError:
            there = ", ".join(f"{topic} ({', '.join(names)})" for topic, names in sorted(known.items()))
            raise TopicError(f"TOPIC = {word!r}: there is no such topic or lesson; there is {there}") from None
        found |= {topic for topic, names in known.items() if set(names) & set(lessons)}
    return found


def tests_of(chosen: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return pytest's arguments for the tests of topics: their own files, the files of all topics, and ``-k`` with what
    is wanted of these.
    """
    known, chosen = topics(root), sorted(chosen)
    files = [path.relative_to(root).as_posix() for path in sorted(root.glob("tests/**/test_*.py"))]
    whole = [path for path in files if set(chosen) & set(re.split(r"[-_./]", path)) and path not in ALL_TOPICS]
    lessons = [name for topic in chosen for name in known[topic]]
    wanted = [*chosen, *lessons, *dict.fromkeys(Path(path).name for path in whole)]
    return [*whole, *ALL_TOPICS, "-k", " or ".join(wanted)]
