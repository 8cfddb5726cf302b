"""What of an older version of a lesson is still an answer to this one's exercises. Standard library only.

An exercise that comes to ask for something else under the same function says so in the metadata of its answer's cell in
``solutions/``, as ``"companion": {"since": "0.4"}``.
"""

import ast
import re

from companion import __version__
from companion.workshop.grading.notebook.syntax import top_level

THIS = __version__.rpartition(".")[0]
FIRST = (0, 3)  # before it the lessons were others
VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")


def series(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    major, minor = VERSION.match(version).groups()
    return int(major), int(minor)


def version_of(notebook: dict) -> str:
    """Return the first two numbers of the version that a notebook, which is believed in nothing, was released with;
    this one's if an editor has lost them.
    """
    metadata = notebook.get("metadata")
    course = metadata.get("companion") if isinstance(metadata, dict) else None
    version = course.get("version") if isinstance(course, dict) else None
    numbers = VERSION.match(version) if isinstance(version, str) else None
    return numbers[0] if numbers else THIS


def since(metadata: dict) -> str:
    """Return the version from which on an exercise asks for what it asks, as its answer's cell says; empty if it does
    not.
    """
    return metadata.get("companion", {}).get("since", "")


def unfit(answer: str, stub: str, function: str, *, since: str, version: str) -> str:
    """Return why an ``answer`` that was written for a ``version`` of the lesson (empty if that is not known) is none to
    the exercise that asks for the ``function`` of this ``stub`` ``since`` another; empty if it is one.
    """
    if since and version and series(version) < series(since):
        return f"asks for something else since version {since}"
    due, there = _arguments(stub, function), _arguments(answer, function)
    if due and there and not (there[0] <= due[0] and due[1] <= there[1]):
        return "has other parameters now"
    return ""


def _arguments(source: str, function: str) -> tuple[int, float] | None:
    """How many arguments a function must be given, and may be; None where it cannot be read."""
    found = [node.args for node in top_level(source) if isinstance(node, ast.FunctionDef) and node.name == function]
    if not found:
        return None
    most = len(found[-1].posonlyargs) + len(found[-1].args)
    return most - len(found[-1].defaults), float("inf") if found[-1].vararg else most


def unwritten(source: str) -> bool:
    """Return whether a cell is a function that does nothing but raise NotImplementedError: a stub, of whatever version
    its head and its docstring are.
    """
    match top_level(source):
        case [ast.FunctionDef(body=[*docstring, ast.Raise(exc=ast.Name("NotImplementedError"))])]:
            return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in docstring)
    return False
