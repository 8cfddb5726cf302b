"""``test``: every test of the house, some at a time; with ``--quick`` those that a change to a topic needs, with
``--processors`` right answers and lessons on every processor that this machine can be.
"""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import psutil

from companion.core.registry import nearest_first
from companion.workshop.cli.lessons import LessonError, everything, select_lessons
from companion.workshop.cli.setup import ROOT, go_on_as

HOUSE = (  # files that look over the whole course: a topic or a lesson that is not complete fails there
    "tests/test_house.py",
    "tests/test_public_names.py",
    "tests/github/test_workflows.py",
    "tests/workshop/cli/test_scoreboard.py",
    "tests/workshop/site/test_atlas.py",
    "tests/workshop/site/test_pages.py",
)
ALL_TOPICS = (  # files that test every topic, lesson or exercise in turn, each under its name
    "tests/test_links.py",
    "tests/devices/test_checks.py",
    "tests/devices/test_functions.py",
    "tests/devices/test_recipes.py",
    "tests/devices/test_tasks.py",
    "tests/lesson/test_mutants.py",
    "tests/lesson/test_sentences.py",
    "tests/lesson/test_unlisted.py",
    "tests/measured/test_tables.py",
    "tests/notebooks/test_answers.py",
    "tests/notebooks/test_cells.py",
    "tests/notebooks/test_claims.py",
    "tests/notebooks/test_form.py",
    "tests/notebooks/test_further.py",
    "tests/notebooks/test_grades.py",
    "tests/notebooks/test_lessons.py",
    "tests/notebooks/test_predictions.py",
    "tests/notebooks/test_taster.py",
    "tests/core/test_recipe.py",
    "tests/core/test_shipped.py",
    "tests/workshop/site/test_again.py",
    "tests/wrong_answers/test_wrong_answers.py",
)
TOGETHER = (  # tests in those files that look over all of them at once
    "test_every_exercise_stands_in_one_notebook_once",
    "test_every_lesson_has_its_file_and_every_file_its_lesson",
    "test_every_table_has_a_function_and_every_function_a_table",
    "test_it_is_short_and_leads_to_every_lesson",
    "test_nothing_is_forgotten",
    "test_the_lessons_are_what_the_solutions_give",
    "test_the_solutions_are_stripped",
)
IMPORT = re.compile(r"from companion\.topics\.(\w+) import (?:\([^)]*|[^\n(]*)\bexercises\b")
EXERCISE = re.compile(r"^@(?:exercise|summit)\(.*?^def (\w+)\(", re.MULTILINE | re.DOTALL)


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
    return go_on_as([sys.executable, "-m", "pytest", "-n", str(workers()), "--dist", "worksteal", *handed_on])


def workers() -> int:
    """Return how many tests run at a time: two to four, one for each core that has 3.5 GiB of memory beside it."""
    return max(2, min(4, os.cpu_count() or 2, psutil.virtual_memory().total // (7 << 29)))


def topics(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the names of the lessons of each topic: those that import its exercises."""
    found: dict[str, list[str]] = {}
    for lesson in everything(root):
        text = "\n".join(path.read_text(encoding="utf-8") for path in lesson.notebooks)
        for topic in dict.fromkeys(IMPORT.findall(text)):
            found.setdefault(topic, []).append(lesson.name)
    return found


def named(words: Iterable[str], root: Path = ROOT) -> set[str]:
    """Return the topics that ``words`` name: a topic, or a lesson by number, name or a part of it. Raises TopicError
    for any other word, for none, and for a lesson that imports no topic's exercises.
    """
    known, found = topics(root), set()
    for word in [*words] or [""]:
        try:
            lessons = known.get(word) or [lesson.name for lesson in select_lessons([word], among=everything(root))]
        except LessonError:
            there = ", ".join(f"{topic} ({', '.join(known[topic])})" for topic in nearest_first(word, sorted(known)))
            said = f"TOPIC = {word!r}: no lesson has this name or topic; there" if word else "which TOPIC? There"
            raise TopicError(f"{said} is {there}") from None
        due = {topic for topic, names in known.items() if set(names) & set(lessons)}
        if not due:
            wanted = "from companion.topics.TOPIC import exercises"
            raise TopicError(
                f"TOPIC = {word!r}: {lessons[0]} belongs to no topic; one of its notebooks must have `{wanted}`"
            )
        found |= due
    return found


def tests_of(chosen: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return pytest's arguments for the tests of topics: their own files and those of the whole course, the files of
    all topics, and ``-k`` with what is wanted of these.
    """
    known, chosen = topics(root), sorted(chosen)
    files = [path.relative_to(root).as_posix() for path in sorted(root.glob("tests/**/test_*.py"))]
    whole = [path for path in files if set(chosen) & set(re.split(r"[-_./]", path)) and path not in ALL_TOPICS]
    whole = list(dict.fromkeys([*whole, *HOUSE]))
    lessons = [name for topic in chosen for name in known[topic]]
    wanted = [*chosen, *lessons, *_exercises(chosen, root), *dict.fromkeys(Path(path).name for path in whole)]
    wanted += TOGETHER
    return [*whole, *ALL_TOPICS, "-k", " or ".join(wanted)]


def _exercises(chosen: list[str], root: Path) -> list[str]:
    """The exercises of topics, after which tests of single exercises are named."""
    rooms = [root / "companion/topics" / topic for topic in chosen]
    paths = [path for room in rooms for path in [*room.glob("exercises.py"), *sorted(room.glob("exercises/*.py"))]]
    return [name for path in paths for name in EXERCISE.findall(path.read_text(encoding="utf-8"))]
