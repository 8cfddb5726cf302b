"""``test``: every test of the house, two at a time; with ``--quick`` those that a change to a topic needs."""

import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable
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
    "tests/wrong_answers/test_wrong_answers.py",
)
HOUSE = "tests/test_house.py"


class TopicError(ValueError):
    """A word that names neither a topic nor a lesson, or none where one is needed; the message says what there is."""


def main(arguments: Namespace) -> int:
    """Go on as pytest. Return 2 if ``--quick`` is asked for what there is not."""
    # two workers of one thread each are faster on two cores than two of two
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.chdir(ROOT)
    handed_on = arguments.pytest_args
    if arguments.quick:
        words = [word for word in handed_on if not word.startswith("-")]
        try:
            selected = tests_of(named(words)) if words else tests_of_changes(changed_files())
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
    for any other word.
    """
    known, found = topics(root), set()
    for word in words:
        try:
            lessons = known.get(word) or [lesson.name for lesson in select_lessons([word], root)]
        except LessonError:
            there = ", ".join(f"{topic} ({', '.join(names)})" for topic, names in sorted(known.items()))
            raise TopicError(f"TOPIC = {word!r}: there is no such topic or lesson; there is {there}") from None
        found |= {topic for topic, names in known.items() if set(names) & set(lessons)}
    return found


def tests_of(chosen: Iterable[str], also: Iterable[str] = (), root: Path = ROOT) -> list[str]:
    """Return pytest's arguments for the tests of topics: their own files, the files of all topics, and ``-k`` with what
    is wanted of these.

    ``chosen``: topics.
    ``also``: further files of tests, whole.
    """
    known, chosen = topics(root), sorted(chosen)
    own = {path for path in _files(root) if set(chosen) & _words(path)}
    whole = sorted((own | set(also)) - set(ALL_TOPICS))
    if not chosen:
        return whole
    lessons = [name for topic in chosen for name in known[topic]]
    wanted = [*chosen, *lessons, *dict.fromkeys(Path(path).name for path in whole)]
    return [*whole, *ALL_TOPICS, "-k", " or ".join(wanted)]


def tests_of_changes(paths: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return pytest's arguments for what a change of these files needs: the tests of their topics, for a file of no
    topic those that mirror it, and the rules of the house.
    """
    known, chosen, also = topics(root), set(), {HOUSE}
    by_lesson = {name: topic for topic, names in known.items() for name in names}
    for path in paths:
        names = {part.partition(".")[0] for part in Path(path).parts} & by_lesson.keys()
        if touched := {by_lesson[name] for name in names} or known.keys() & _words(path):
            chosen |= touched
        else:
            also |= _mirroring(Path(path), known.keys(), root)
    return tests_of(chosen, also, root)


def _files(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in sorted(root.glob("tests/**/test_*.py"))]


def _words(path: str) -> set[str]:
    return set(re.split(r"[-_./]", path))


def _mirroring(path: Path, known: Iterable[str], root: Path) -> set[str]:
    """Return the files that test shared code: the one of its name, or all of its room that belong to no topic."""
    files = _files(root)
    if path.as_posix() in files:
        return {path.as_posix()}
    if path.parts[0] not in ("companion", "tests") or path.suffix != ".py":
        return {"tests/test_links.py"}
    room = "/".join(("tests", *path.parts[1:-1]))
    mirror = [file for file in files if re.fullmatch(rf"{room}/test_{path.stem}(_\w+)?\.py", file)]
    if mirror or room == "tests":
        return set(mirror)
    return {file for file in files if file.startswith(f"{room}/") and not _words(file) & set(known)}


def changed_files(root: Path = ROOT) -> list[str]:
    """Return the files that differ from the last commit, or, if none does, those of the last commit. Raises TopicError
    where git does not know.
    """

    def git(*command: str) -> list[str]:
        done = subprocess.run(["git", *command, "-z"], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TopicError(f"--quick needs a TOPIC or LESSON here: git says {done.stderr.strip()!r}")
        return [path for path in done.stdout.split("\0") if path]

    unfinished = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    return unfinished or git("diff", "--name-only", "HEAD~1", "HEAD")
