"""The answers between ``### BEGIN SOLUTION`` and ``### END SOLUTION``, written from the functions that the exercises
hold as the course's own. An answer is changed there, nowhere else.
"""

import ast
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from companion.lesson.attempts import source_of
from companion.lesson.exercise import Exercise
from companion.workshop.cli.lessons import LessonError
from companion.workshop.grading.notebook import syntax
from companion.workshop.notebooks import node

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
CALLED = re.compile(r"(?<=\w)\.answer\(")
DECORATED = re.compile(r"^@(\w+)\.(\w+)$", re.M)


@dataclass(frozen=True)
class Place:
    """Where an answer stands: the ``number``-th cell of the notebook ``path``, under the decorator of ``exercise``."""

    path: Path
    number: int
    cell: nbformat.NotebookNode
    exercise: Exercise

    def error(self, reason: str) -> LessonError:
        """Return the error that names this place."""
        return LessonError(f"{self.path.stem}: cell {self.number}, the answer of {self.exercise.name}: {reason}")


def answer_text(exercise: Exercise) -> str:
    """Return the body of an exercise's answer as a learner would write it. Where it calls ``other.answer(...)``,
    another exercise's, the learner calls ``other(...)``. Raises ValueError unless the answer is a plain ``def`` whose
    body has lines of its own.
    """
    source = source_of(exercise.answer)
    if source is None or not isinstance(source.tree, ast.FunctionDef):
        raise ValueError(f"the course's answer is `{source and ast.unparse(source.tree)}`; must be a plain `def`")
    if not source.body:
        raise ValueError("the course's answer has no lines below its signature; must have some")
    return CALLED.sub("(", source.body)


def put_answer(source: str, text: str) -> str:
    """Return a cell's source with ``text`` between its markers, indented as they are. Raises ValueError unless it has
    one of each, in their order.
    """
    lines = source.split("\n")
    begin, end = ([at for at, line in enumerate(lines) if line.strip() == marker] for marker in (BEGIN, END))
    for marker, found in ((BEGIN, begin), (END, end)):
        if len(found) != 1:
            raise ValueError(f"there are {len(found)} lines `{marker}`; must be exactly one")
    if begin > end:
        raise ValueError(f"`{END}` stands before `{BEGIN}`; must stand after it")
    indent = lines[begin[0]].removesuffix(BEGIN)
    return "\n".join([*lines[: begin[0] + 1], textwrap.indent(text, indent), *lines[end[0] :]])


def places(path: Path, notebook: nbformat.NotebookNode) -> Iterator[Place]:
    """Yield every cell of the ``notebook`` at ``path`` whose function an exercise of the companion decorates. Raises
    LessonError where a cell has more than one, or names one that is not there.
    """
    imported = syntax.aliases([cell.source for cell in notebook.cells if cell.cell_type == "code"])
    for number, cell in enumerate(notebook.cells, 1):
        found = []
        for module, name in DECORATED.findall(cell.source) if cell.cell_type == "code" else ():
            if module not in imported:
                continue
            try:
                decorator = getattr(pkgutil.resolve_name(imported[module]), name)
            except AttributeError:
                raise LessonError(f"{path.stem}: cell {number}: {imported[module]} has no exercise {name}") from None
            if isinstance(decorator, Exercise):
                found.append(Place(path, number, cell, decorator))
        if len(found) > 1:
            raise found[0].error("another exercise stands in the same cell; give it its own")
        yield from found


def _checked_text(place: Place, known: set[str]) -> str:
    """The text of an answer, for a notebook that has the names ``known`` and a stub of the same parameters."""
    function = inspect.unwrap(place.exercise.answer)
    try:
        text = answer_text(place.exercise)
        stub = ast.parse(put_answer(place.cell.source, "pass")).body
    except (ValueError, SyntaxError) as error:
        raise place.error(str(error)) from None
    due = ", ".join(inspect.signature(function).parameters)
    stubs = [", ".join(each.arg for each in node.args.args) for node in stub if isinstance(node, ast.FunctionDef)]
    if stubs != [due]:
        raise place.error(
            f"the stub's parameters are {' and '.join(stubs)}; those of {_named(place.exercise)} are {due}"
        )
    reads = syntax.used(ast.unparse(source_of(function).tree), later=True)
    if unknown := (reads & function.__globals__.keys()) - known:
        raise place.error(
            f"{_named(place.exercise)} uses {min(unknown)}, which the lesson does not import; write it into the answer"
        )
    return text


def _named(exercise: Exercise) -> str:
    function = inspect.unwrap(exercise.answer)
    return f"{function.__module__}.{function.__name__}"


def put_answers(path: Path) -> tuple[nbformat.NotebookNode, list[str]]:
    """Return the notebook at ``path`` with every answer as its exercise has it, and a line for each that was another.
    Raises LessonError where one cannot be written.
    """
    notebook = node(path)
    code = [syntax.plain(cell.source) for cell in notebook.cells if cell.cell_type == "code"]
    known = set().union(*map(syntax.defined, code))
    lines = []
    for place in places(path, notebook):
        source = put_answer(place.cell.source, _checked_text(place, known))
        if source != place.cell.source:
            lines.append(
                f"{path.parent.name}/{path.name}: cell {place.number}, the answer of {place.exercise.name} is not "
                f"that of {_named(place.exercise)}; change it there, and `release` writes it here"
            )
            place.cell.source = source
    return notebook, lines
