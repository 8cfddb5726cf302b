"""nbgrader's side of grading: its gradebook, the notebooks that its form grader shows, and the form grader itself."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.utils import compute_checksum, is_grade, is_locked, is_solution

from companion.cli.feedback import Scores
from companion.cli.lessons import Lesson
from companion.cli.run import write
from companion.cli.submissions import Handout

CONFIG = """# Written by `python -m companion grade`.
c = get_config()
c.CourseDirectory.course_id = "course"
c.CourseDirectory.root = {root!r}
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "lessons"
c.CourseDirectory.submitted_directory = "grading/submitted"
c.CourseDirectory.autograded_directory = "grading/autograded"
c.CourseDirectory.feedback_directory = "grading/feedback"
c.CourseDirectory.db_url = "sqlite:///" + {database!r}
c.Exchange.root = {exchange!r}
"""


def record(grading: Path, lesson: Lesson, given: Handout, results: dict[str, dict[str, Any]], new: set[str]) -> Scores:
    """Write what is ``new`` into the gradebook and into ``autograded/``, and return everybody's points.

    Points that a person has given stay. Where the submission has changed since, the form grader asks for them again.
    """
    scores: Scores = {}
    if shutil.which("alembic") is None:  # nbgrader starts it by name
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    solution = nbformat.read(lesson.source, as_version=4)
    with warnings.catch_warnings(), Gradebook(f"sqlite:///{grading / 'gradebook.db'}") as book:
        warnings.simplefilter("ignore")  # of SQLAlchemy, about what nbgrader does with it
        _assignment(book, lesson, solution)
        there = {submission.student.id for submission in book.assignment_submissions(lesson.name)}
        for student, result in results.items():
            path = grading / "autograded" / student.replace("/", "_") / lesson.name / f"{lesson.name}.ipynb"
            if student in new or student not in there or not path.exists():
                book.update_or_create_student(student)
                book.update_or_create_submission(lesson.name, student)
                _save(book, lesson.name, student, result)
                path.parent.mkdir(parents=True, exist_ok=True)
                write(path, nbformat.writes(_marked(solution, given, result)))
            [graded] = book.find_submission(lesson.name, student).notebooks
            scores[student] = {grade.name: _score(grade, result) for grade in graded.grades}
    return scores


def _score(grade: Any, result: dict[str, Any]) -> float | None:
    if grade.manual_score is not None:
        return grade.manual_score + (grade.extra_credit or 0)
    if grade.name in result["exercises"]:
        return result["exercises"][grade.name]["points"] + (grade.extra_credit or 0)
    return None if result["written"].get(grade.name) or not grade_is_empty(grade.name, result) else 0.0


def grade_is_empty(name: str, result: dict[str, Any]) -> bool:
    """Whether the written answer was found and is empty; one that was not found is for a person to look for."""
    return result["written"].get(name) == ""


def _assignment(book: Gradebook, lesson: Lesson, solution: NotebookNode) -> None:
    book.update_or_create_assignment(lesson.name)
    book.update_or_create_notebook(lesson.name, lesson.name)
    for cell in solution.cells:
        if "nbgrader" not in cell.metadata:
            continue
        name = cell.metadata.nbgrader.grade_id
        if is_grade(cell):
            points = float(cell.metadata.nbgrader.points)
            book.update_or_create_grade_cell(name, lesson.name, lesson.name, max_score=points, cell_type=cell.cell_type)
        if is_solution(cell):
            book.update_or_create_solution_cell(name, lesson.name, lesson.name)
        facts = {"cell_type": cell.cell_type, "locked": is_locked(cell), "source": cell.source, "checksum": compute_checksum(cell)}
        book.update_or_create_source_cell(name, lesson.name, lesson.name, **facts)


def _save(book: Gradebook, lesson: str, student: str, result: dict[str, Any]) -> None:
    for name, entry in result["exercises"].items():
        grade = book.find_grade(name, lesson, lesson, student)
        grade.auto_score, grade.needs_manual_grade = entry["points"], grade.manual_score is not None
    [graded] = book.find_submission(lesson, student).notebooks
    for grade in (grade for grade in graded.grades if grade.name not in result["exercises"]):
        empty = grade_is_empty(grade.name, result)
        grade.auto_score, grade.needs_manual_grade = (0.0 if empty else None), not empty or grade.manual_score is not None
    book.db.commit()


def _marked(solution: NotebookNode, given: Handout, result: dict[str, Any]) -> NotebookNode:
    """The lesson with the student's answers in it and, under each check, what the grader says: never the student's outputs or HTML."""
    answer_of = {question.answer_id: question for question in given.automatic}
    notebook = nbformat.from_dict(solution)
    notebook = nbformat.reads(nbformat.writes(notebook), as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if name in given.sources:
            cell.source = given.sources[name]
        if name in answer_of:
            cell.source = result["answers"].get(answer_of[name].id, "# no answer was found")
        elif name in result["exercises"]:
            said = result["exercises"][name]
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=f"{said['outcome']}: {said['diagnosis']}\n")]
        elif name in result["written"]:
            cell.source = _harmless(result["written"][name] or cell.source)
    return notebook


def _harmless(text: str) -> str:
    """Markdown without HTML, and without links that run a program."""
    return re.sub(r"(?i)(script|data)([\s\\]*):", r"\1\2 :", text.replace("&", "&amp;").replace("<", "&lt;"))


def serve(root: Path) -> None:
    """Open nbgrader's form grader on the checkout ``root`` in the browser, until interrupted."""
    grading = root.resolve() / "grading"
    exchange = grading / "exchange"  # nbgrader wants to see one; nothing is exchanged
    exchange.mkdir(parents=True, exist_ok=True)
    places = {"root": str(root.resolve()), "database": str(grading / "gradebook.db"), "exchange": str(exchange)}
    write(grading / "nbgrader_config.py", CONFIG.format(**places))
    extensions = "{'nbgrader.server_extensions.formgrader': True}"
    command = [sys.executable, "-m", "jupyter_server", f"--ServerApp.jpserver_extensions={extensions}"]
    command += ["--ServerApp.default_url=/formgrader/gradebook", "--ServerApp.open_browser=True"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    subprocess.call(command, cwd=grading)
