"""``progress``: what is solved and predicted in ``work/``, read from the saved notebooks; and a lesson started anew."""

import os
import sys
from argparse import Namespace
from pathlib import Path

from companion.workshop.cli import review, work
from companion.workshop.cli.lessons import Lesson, LessonError, released, select_lessons
from companion.workshop.cli.setup import ROOT


def main(arguments: Namespace, root: Path = ROOT) -> int:
    """Print a line for each notebook, or with ``--reset`` start one anew."""
    try:
        if arguments.reset:
            [lesson] = select_lessons([arguments.reset], among=released(root))
            return _reset(lesson, root, sure=arguments.yes)
        lessons = select_lessons(arguments.lessons, among=released(root))
    except LessonError as error:
        print(f"progress: {error}")
        return 2
    try:
        news = work.refresh(root)
    except OSError as error:
        news = [f"work/ cannot be brought up to date ({error.strerror}); this is what stands in it"]
    rows = [("Lesson", "Exercises", "Predictions")]
    for path in (path for lesson in lessons for path in lesson.notebooks):
        result = work.best(root / "work" / path.parent.name, path.stem)
        rows.append((path.stem, result.exercises, result.predictions))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for line in [*news, *work.outdated(root), *review.waiting(root)]:
        print(line)
    return 0


def _reset(lesson: Lesson, root: Path, *, sure: bool) -> int:
    if not (root / "work" / lesson.name).exists():
        print(f"{lesson.name} has not been opened yet, so that there is nothing to start anew")
        return 0
    if not sure:
        if not sys.stdin.isatty():
            print("progress: --reset asks a question first, and nobody is there to answer it; --yes leaves it out")
            return 1
        question = f"Start {lesson.name} anew? Your copy with all answers and predictions is put aside. [y/N] "
        if input(question).strip().lower() not in {"y", "yes"}:
            print("Nothing was changed")
            return 1
    try:
        aside = work.reset(lesson, root)
    except PermissionError as error:  # Windows moves no folder in which a kernel runs
        if not os.access(root / "work", os.W_OK):
            raise
        print(f"progress: {error.strerror}: close {lesson.name} in JupyterLab, shut its kernel down, and try again")
        return 1
    print(f"A fresh copy is in work/{lesson.name}; yours is now {aside.relative_to(root).as_posix()}")
    return 0
