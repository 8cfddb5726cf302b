"""What a lesson asks, as data, read off its own notebook and not a student's: which exercises there are, what they are
worth and what checks them.
"""

import re
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from nbformat import NotebookNode

from companion.lesson.exercise import Exercise
from companion.workshop.grading.notebook.syntax import aliases, defined, plain, used
from companion.workshop.grading.notebook.versions import since
from companion.workshop.notebooks import node

GRADES = re.compile(r"^(\w+)\.(\w+)\.grade\((\w+)\)", re.MULTILINE)


class HandoutError(ValueError):
    """A lesson that cannot be graded as it is; the message names it."""


@dataclass(frozen=True)
class Question:
    """One graded cell of a lesson. ``exercise`` is where its `Exercise` lies, as (module, name); None if a person marks
    the answer. ``since`` is the version from which on it asks for what it asks; empty if it always has.
    """

    id: str
    answer_id: str
    points: float
    source: str
    function: str = ""
    exercise: tuple[str, str] | None = None
    since: str = ""


@dataclass(frozen=True)
class Handout:
    """A lesson as its own notebook has it: its questions in order, its other code cells, and the sources of all marked
    cells as learners get them. ``solutions`` are by question.
    """

    name: str
    questions: tuple[Question, ...]
    code: tuple[str, ...]
    sources: dict[str, str] = field(hash=False)
    solutions: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def automatic(self) -> list[Question]:
        """Return the questions that a check answers."""
        return [question for question in self.questions if question.exercise]

    @property
    def written(self) -> list[Question]:
        """Return the questions that a person marks."""
        return [question for question in self.questions if not question.exercise]

    @property
    def points(self) -> float:
        """Return all that can be earned."""
        return sum(question.points for question in self.questions)


def handout(source: Path, released: Path) -> Handout:
    """Return the questions of the lesson ``source``. ``released`` is the notebook that learners get, whose stubs tell
    what was not attempted. An exercise whose check has no grade is none. Raises HandoutError for a check that cannot be
    graded, and for an answer that rests on such an exercise.
    """
    solved, unsolved = map(node, (source, released))
    stubs = {cell.metadata.nbgrader.grade_id: cell.source for cell in unsolved.cells if "nbgrader" in cell.metadata}
    modules = aliases([cell.source for cell in solved.cells if cell.cell_type == "code"])
    functions: dict[str, tuple[str, str, str]] = {}  # function -> its answer cell's id, the answer, since when
    questions, code, solutions = [], [], {}
    for cell in solved.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution") and not marks.get("grade"):
            functions |= dict.fromkeys(defined(plain(cell.source)), (marks.grade_id, cell.source, since(cell.metadata)))
        elif marks.get("solution"):
            questions.append(Question(marks.grade_id, marks.grade_id, float(marks.points), stubs[marks.grade_id]))
        elif marks.get("grade"):
            exercise, function = _graded(source.stem, cell, modules, functions)
            answer_id, solutions[marks.grade_id], asked = functions[function]
            points = float(marks.points)
            questions.append(Question(marks.grade_id, answer_id, points, stubs[answer_id], function, exercise, asked))
        elif cell.cell_type == "code":
            code.append(cell.source)
    marked = {question.answer_id for question in questions}
    unmarked = {name for name, (answer_id, *_) in functions.items() if answer_id not in marked}
    for check, solution in solutions.items():
        if rests_on := used(plain(solution)) & unmarked:
            raise HandoutError(
                f"{source.stem}: the answer to {check} uses {', '.join(sorted(rests_on))}, whose check must have a "
                "grade: without one, nothing takes its place in the sandbox where it is not attempted"
            )
    return Handout(source.stem, tuple(questions), tuple(code), stubs, solutions)


def _graded(lesson: str, cell: NotebookNode, modules: dict, functions: dict) -> tuple[tuple[str, str], str]:
    """The exercise, as (module, name), and the learner's function that a check cell grades."""
    called = GRADES.findall(cell.source)
    if len(called) != 1 or called[0][2] not in functions or called[0][0] not in modules:
        check = cell.metadata.nbgrader.grade_id
        raise HandoutError(f"{lesson}: the check {check} must grade one exercise, by `exercises.NAME.grade(FUNCTION)`")
    [(alias, name, function)] = called
    if not isinstance(getattr(import_module(modules[alias]), name, None), Exercise):
        raise HandoutError(f"{lesson}: {modules[alias]}.{name} must be an Exercise")
    return (modules[alias], name), function
