"""The course as the sandbox sees it: without answers.

An answer that reaches no part of the course gets the worker alone; one that imports a topic's data, models, baselines
or probes gets these, of all topics, with what they import. Modules of exercises are there by name only: what they hold
decorates, and asks outside.
"""

import ast
import atexit
import functools
import shutil
import tempfile
from pathlib import Path

COMPANION = Path(__file__).resolve().parents[3]
WORKER = (
    "__init__.py",
    "lesson/__init__.py",
    "lesson/attempts.py",
    "lesson/trials.py",
    "topics/__init__.py",
    "workshop/__init__.py",
    "workshop/grading/__init__.py",
    "workshop/grading/sandbox/__init__.py",
    "workshop/grading/sandbox/worker.py",
    "workshop/grading/sandbox/wire.py",
)
ROLES = ("data", "model", "by_hand", "baselines", "probes")  # of a topic: files, or folders of them
PARTS = (
    "lesson/figures.py",
    *(f"topics/*/{role}{end}" for role in ROLES for end in (".py", "/*.py")),
    "topics/*/*.csv",
)
ANSWERS = ("topics/*/exercises.py", "topics/*/exercises/**/*.py", "lesson/exercise.py", "lesson/near_misses/**/*.py")
KINDS = {".py", ".csv"}
STAND_IN = '''"""The exercises of this name, without their answers."""

from companion.workshop.grading.sandbox.worker import StandIn


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return StandIn(__name__, name)
'''


@functools.cache
def without_answers(*, course: bool) -> Path:
    """Make a folder that holds ``companion`` without answers; with its topics' data, models and the like if ``course``,
    and what these import.
    """
    place = Path(tempfile.mkdtemp(prefix="course-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    names = {*WORKER, *(_found("topics/*/__init__.py"))}
    for name in names | (_with_imports({name for part in PARTS for name in _found(part)}) if course else set()):
        _copy(COMPANION / name, place / "companion" / name)
    for name in (name for pattern in ANSWERS for name in _found(pattern)):
        (place / "companion" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "companion" / name).write_text(STAND_IN, encoding="utf-8")
    return place


def _found(pattern: str) -> list[str]:
    return [path.relative_to(COMPANION).as_posix() for path in COMPANION.glob(pattern)]


def _with_imports(names: set[str]) -> set[str]:
    """These files of the course, what they import of it, what that imports, and the packages on the way."""
    found, new = set(), set(names)
    while new:
        found |= new
        trees = [ast.parse((COMPANION / name).read_text(encoding="utf-8")) for name in new if name.endswith(".py")]
        nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        modules = {node.module or "" for node in nodes}
        modules |= {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
        ways = {
            module.split(".")[1:end] and "/".join(module.split(".")[1:end])
            for module in modules
            if module.startswith("companion.")
            for end in range(2, len(module.split(".")) + 1)
        }
        files = {f"{way}{end}" for way in ways for end in (".py", "/__init__.py")}
        new = {name for name in files if (COMPANION / name).is_file()} - found
    return found


@functools.cache
def with_answers() -> Path:
    """Make a folder that holds ``companion`` with what its exercises need, for the process in which the course itself
    stands in for an exercise.
    """
    folder = Path(tempfile.mkdtemp(prefix="course-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in COMPANION.rglob("*"):
        if path.suffix in KINDS and path.is_file():
            _copy(path, folder / "companion" / path.relative_to(COMPANION))
    return folder


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
