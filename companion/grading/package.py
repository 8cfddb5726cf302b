"""The course as the sandbox sees it: without answers.

An answer that reaches no part of the course gets the worker alone; one that imports samplers, models, baselines or
probes gets these. Modules of exercises are there by name only: what they hold decorates, and asks outside.
"""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

COMPANION = Path(__file__).resolve().parents[1]
WORKER = (
    "__init__.py",
    "checks/__init__.py",
    "checks/attempts.py",
    "checks/trials.py",
    "grading/__init__.py",
    "grading/worker.py",
    "grading/wire.py",
)
PARTS = ("arguments.py", "samplers", "models", "baselines", "probes", "figures.py")
WITHOUT_ANSWERS = ("checks/__init__.py", "checks/attempts.py", "checks/trials.py")
KINDS = {".py", ".csv"}
STAND_IN = '''"""The exercises of this name, without their answers."""

from companion.grading.worker import StandIn


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return StandIn(__name__, name)
'''


@functools.cache
def without_answers(*, course: bool) -> Path:
    """A folder that holds ``companion`` without answers; with its samplers, models and the like if ``course``."""
    folder = Path(tempfile.mkdtemp(prefix="course-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in WORKER + (PARTS if course else ()):
        _copy(COMPANION / name, folder / "companion" / name)
    for path in (COMPANION / "checks").rglob("*.py"):
        name = path.relative_to(COMPANION)
        if name.as_posix() not in WITHOUT_ANSWERS:
            (folder / "companion" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "companion" / name).write_text(STAND_IN, encoding="utf-8")
    return folder


@functools.cache
def with_answers() -> Path:
    """A folder that holds ``companion`` with what its exercises need, for the process in which the course itself stands
    in for an exercise.
    """
    folder = Path(tempfile.mkdtemp(prefix="course-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in COMPANION.rglob("*"):
        if path.suffix in KINDS and path.is_file():
            _copy(path, folder / "companion" / path.relative_to(COMPANION))
    return folder


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        for path in source.rglob("*"):
            if path.suffix in KINDS and path.is_file():
                _copy(path, target / path.relative_to(source))
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
