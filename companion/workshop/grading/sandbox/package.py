"""The course as the sandbox sees it: without answers.

An answer that reaches no part of the course gets the worker alone; one that does, and a whole notebook, gets all that
a lesson imports, with what was trained and measured. Modules of exercises are there by name only: what they hold
decorates, and asks outside.
"""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

COMPANION = Path(__file__).resolve().parents[3]
WITH_ANSWERS = COMPANION.parent  # for the process in which the course itself stands in for an exercise
WORKER = (
    "__init__.py",
    "lesson/__init__.py",
    "lesson/attempts.py",
    "lesson/disturbed.py",
    "lesson/trials.py",
    "topics/__init__.py",
    "workshop/__init__.py",
    "workshop/grading/__init__.py",
    "workshop/grading/sandbox/__init__.py",
    "workshop/grading/sandbox/worker.py",
    "workshop/grading/sandbox/wire.py",
)
PARTS = ("core/*.py", "lesson/*.py", "lesson/widgets/*", "topics/**/*.py", "topics/*/*.csv", "pretrained/*.py")
PARTS += ("measured/*", "published/*", "weights/*")  # what a notebook looks up
ANSWERS = ("topics/*/exercises.py", "topics/*/exercises/**/*.py", "lesson/exercise.py", "lesson/summit.py")
ANSWERS += ("lesson/near_misses/**/*.py",)
STAND_IN = '''"""The exercises of this name, without their answers."""

from companion.workshop.grading.sandbox.worker import StandIn


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return StandIn(__name__, name)
'''


@functools.cache
def without_answers(*, course: bool) -> Path:
    """Make a folder that holds ``companion`` without answers; with what lessons import but these if ``course``."""
    parts = [*WORKER, "topics/*/__init__.py", *(PARTS if course else ())]
    place = Path(tempfile.mkdtemp(prefix="course-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for name in {name for part in parts for name in _found(part)}:
        (place / "companion" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(COMPANION / name, place / "companion" / name)
    for name in (name for pattern in ANSWERS for name in _found(pattern)):
        (place / "companion" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "companion" / name).write_text(STAND_IN, encoding="utf-8")
    return place


def _found(pattern: str) -> list[str]:
    return [path.relative_to(COMPANION).as_posix() for path in COMPANION.glob(pattern) if path.is_file()]
