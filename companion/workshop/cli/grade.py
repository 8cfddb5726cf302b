"""``grade``: which lessons does `companion.workshop.grading` mark, and is there a sandbox?"""

import functools
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from companion.core.files import FileError
from companion.workshop.cli.lessons import Lesson, select_lessons
from companion.workshop.cli.release import generate
from companion.workshop.cli.setup import ROOT
from companion.workshop.grading.course import classroom, formgrader, handins, lms
from companion.workshop.grading.course.folders import Answered
from companion.workshop.grading.course.names import one_line
from companion.workshop.grading.course.reference import ReferenceFails
from companion.workshop.grading.notebook.handout import Handout, HandoutError, handout
from companion.workshop.grading.sandbox import bubblewrap

GOES_ON = "what was marked is kept, and the same command goes on from there"


def main(arguments: Namespace, root: Path = ROOT) -> int:
    """Grade the lessons, then open the form grader if asked to. 1 if a submission could not be marked, or a lesson,
    whose own answers do not pass here; 2 if nothing could be done, or no more; 130 if somebody has stopped it.
    """
    try:
        return _done(arguments, root)
    except KeyboardInterrupt:
        print("\ngrade: stopped" + (f"; {GOES_ON}" if arguments.lessons else ""))
        return 130


def _done(arguments: Namespace, root: Path) -> int:
    """Do what is asked; return as `main`."""
    if arguments.self_test:
        return _self_test(arguments.self_test)
    try:
        lessons = select_lessons(arguments.lessons, root) if arguments.lessons else []
    except FileError as error:
        print(f"grade: {error}")
        return 2
    missing = "" if lessons or arguments.formgrader else "which LESSON? Or --formgrader, to mark written answers"
    missing = missing or ("--take-in ZIP needs one LESSON" if arguments.take_in and len(lessons) != 1 else "")
    if missing:
        print(f"grade: {missing}")
        return 2
    if lessons and not _can_run(unsafe=arguments.unsafe):
        return 2
    status = 0
    for lesson in lessons:
        ended = _marked(lesson, arguments, root)
        if ended > 1:
            return ended
        status = status or ended
    if arguments.formgrader:
        formgrader.serve(root)
    return status


def _marked(lesson: Lesson, arguments: Namespace, root: Path) -> int:
    """Take in what is to be taken in, and grade one lesson; return as `main`."""
    try:
        for archive in arguments.take_in:
            unpacked = lms.take_in(Path(archive), root / "grading", lesson.name, _answered(lesson, root))
            print(one_line(f"{archive}: {unpacked}"))
        options = {"only": arguments.student, "force": arguments.force}
        return int(bool(grade(lesson, root, jobs=arguments.jobs, unsafe=arguments.unsafe, **options)))
    except ReferenceFails as error:
        print(one_line(f"grade: {error}"))
        return 1
    except (HandoutError, FileError) as error:
        print(one_line(f"grade: {error}"))
        return 2
    except (formgrader.GradebookError, OSError) as error:  # of a disk that is full, for example
        print(one_line(f"grade: {error}; {GOES_ON}"))
        return 2


def _self_test(minutes: float) -> int:
    """Look for so many minutes for hand-ins that are marked wrongly; 1 if one is found. The search is the tests'."""
    if not _can_run(unsafe=False):
        return 2
    command = [sys.executable, "-m", "workshop.grading.self_test", str(minutes)]
    return subprocess.run(command, cwd=ROOT / "tests", check=False).returncode


def _can_run(*, unsafe: bool) -> bool:
    """Whether submissions can be run here; says why not, or at what risk."""
    if os.name == "nt":
        print("grade: marking needs pipes that Windows does not have; run it in WSL, Windows' own Linux.")
        print("Nothing was run.")
        return False
    if reason := bubblewrap.missing():
        print(f"grade: NO SANDBOX: {reason}.")
        print("Submissions are programs by strangers; without a sandbox they run with all your rights.")
        if not unsafe:
            print("Nothing was run. --unsafe runs them all the same.")
            return False
    return True


def grade(lesson: Lesson, root: Path = ROOT, **options) -> list[str]:
    """Grade one lesson's submissions (`classroom.grade`); the names of those that could not be marked."""
    return classroom.grade(questions(lesson, root), lesson.source, root, **options)


def _answered(lesson: Lesson, root: Path) -> Answered:
    """Return what says of a notebook whether it holds answers to the lesson, which is read once that is asked."""
    of = functools.cache(lambda: questions(lesson, root))
    return lambda data: handins.answered(data, of())


def questions(lesson: Lesson, root: Path) -> Handout:
    """Return the lesson's questions, and what its learners were given: made anew from the solution."""
    (root / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root / "build") as folder:
        made = generate([lesson], Path(folder), [lesson])
        return handout(lesson.source, made / lesson.name / lesson.source.name)
