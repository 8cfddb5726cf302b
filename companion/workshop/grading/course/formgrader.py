"""nbgrader's side of grading: its gradebook, the notebooks that its form grader shows, and the form grader itself."""

import copy
import html
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import compute_checksum, is_grade, is_locked, is_solution

from companion.core.files import atomic_write, mathjax
from companion.workshop.grading.course.book import Book
from companion.workshop.grading.course.names import file_name
from companion.workshop.grading.notebook.handout import Handout

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
# Pages show what strangers wrote: nothing is fetched from elsewhere, and nothing is sent there
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src data: 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)


def persons(grading: Path, handout: Handout) -> dict[str, dict[str, tuple[float | None, float]]]:
    """Return what persons gave in the form grader: points (None if they have not) and extra credit, by name and
    question.
    """
    if not (grading / "gradebook.db").exists():
        return {}
    with _gradebook(grading) as book:
        try:
            submissions = book.assignment_submissions(handout.name)
        except MissingEntry:
            return {}
        return {
            submission.student.id: {
                grade.name: (grade.manual_score, grade.extra_credit or 0.0)
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in submissions
        }


def record(grading: Path, handout: Handout, source: Path, points: Book, new: set[str]) -> None:
    """Write ``points`` for a lesson (its ``handout`` and ``source``) into the gradebook in ``grading`` and into
    ``autograded/``: of those who are ``new`` in this run, or are not there.

    Points that a person has given stay. Where the submission has changed since, the form grader asks for them again.
    """
    solution = nbformat.read(source, as_version=4)
    with _gradebook(grading) as book:
        _assignment(book, handout.name, solution)
        there = {submission.student.id for submission in book.assignment_submissions(handout.name)}
        for student, result in points.results.items():
            name = file_name(points.label(student))  # nbgrader looks for a folder of the student's name
            path = grading / "autograded" / name / handout.name / f"{handout.name}.ipynb"
            if student in new or name not in there or not path.exists():
                book.update_or_create_student(name)
                book.update_or_create_submission(handout.name, name)
                _save(book, handout.name, name, result)
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(path, nbformat.writes(_marked(solution, handout, result)))


@contextmanager
def _gradebook(grading: Path) -> Iterator[Gradebook]:
    if shutil.which("alembic") is None:  # nbgrader starts it by name
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with warnings.catch_warnings(), Gradebook(f"sqlite:///{grading / 'gradebook.db'}") as book:
        warnings.simplefilter("ignore")  # of SQLAlchemy, about what nbgrader does with it
        yield book


def _assignment(book: Gradebook, lesson: str, solution: NotebookNode) -> None:
    book.update_or_create_assignment(lesson)
    book.update_or_create_notebook(lesson, lesson)
    for cell in solution.cells:
        if "nbgrader" not in cell.metadata:
            continue
        name = cell.metadata.nbgrader.grade_id
        if is_grade(cell):
            points = float(cell.metadata.nbgrader.points)
            book.update_or_create_grade_cell(name, lesson, lesson, max_score=points, cell_type=cell.cell_type)
        if is_solution(cell):
            book.update_or_create_solution_cell(name, lesson, lesson)
        facts = {
            "cell_type": cell.cell_type,
            "locked": is_locked(cell),
            "source": cell.source,
            "checksum": compute_checksum(cell),
        }
        book.update_or_create_source_cell(name, lesson, lesson, **facts)


def _save(book: Gradebook, lesson: str, student: str, result: dict[str, Any]) -> None:
    for name, entry in result["exercises"].items():
        grade = book.find_grade(name, lesson, lesson, student)
        grade.auto_score, grade.needs_manual_grade = entry["points"], grade.manual_score is not None
    [graded] = book.find_submission(lesson, student).notebooks
    for grade in (grade for grade in graded.grades if grade.name not in result["exercises"]):
        empty = result["written"].get(grade.name) == ""  # one that was not found is for a person to look for
        grade.auto_score = 0.0 if empty else None
        grade.needs_manual_grade = not empty or grade.manual_score is not None
    book.db.commit()


def _marked(solution: NotebookNode, handout: Handout, result: dict[str, Any]) -> NotebookNode:
    """The lesson with the student's answers in it and, under each check, what the grader says: never the student's
    outputs or HTML.
    """
    answer_of = {question.answer_id: question for question in handout.automatic}
    notebook = copy.deepcopy(solution)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if name in handout.sources:
            cell.source = handout.sources[name]
        if name in answer_of:
            cell.source = result["answers"].get(answer_of[name].id, "# no answer was found")
        elif name in result["exercises"]:
            entry = result["exercises"][name]
            said = f"{entry['outcome']}: {entry['diagnosis']}\n"
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=said)]
        elif result["written"].get(name):
            cell.source = _shown(result["written"][name], result["pictures"].get(name, []))
    return notebook


def _shown(text: str, pictures: list[str]) -> str:
    """A stranger's text and pictures as Markdown that shows them letter by letter: no link, no HTML, no formula, for
    these can run programs, too. ``<pre>`` and ``<p>`` end where they end, and not at an empty line: there is none.
    """
    lines = "&#10;".join(html.escape(line) for line in text.split("\n"))
    images = "".join(f'<img alt="a picture in the answer" src="{picture}">' for picture in pictures)
    return f'<pre class="tex2jax_ignore mathjax_ignore" style="white-space: pre-wrap">{lines}</pre>\n<p>{images}</p>'


def serve(root: Path, *, open_browser: bool = True) -> None:
    """Open nbgrader's form grader on the checkout ``root`` in the browser, until interrupted. MathJax, which sets its
    formulas, comes from here.
    """
    grading = root.resolve() / "grading"
    exchange = grading / "exchange"  # nbgrader wants to see one; nothing is exchanged
    exchange.mkdir(parents=True, exist_ok=True)
    places = {"root": str(root.resolve()), "database": str(grading / "gradebook.db"), "exchange": str(exchange)}
    atomic_write(grading / "nbgrader_config.py", CONFIG.format(**places))
    extensions = "{'nbgrader.server_extensions.formgrader': True}"
    command = [sys.executable, "-m", "jupyter_server", f"--ServerApp.jpserver_extensions={extensions}"]
    command += ["--ServerApp.default_url=/formgrader/gradebook", f"--ServerApp.open_browser={open_browser}"]
    command += [f"--ServerApp.tornado_settings={ {'headers': {'Content-Security-Policy': POLICY}} }"]
    command += [f"--ServerApp.extra_static_paths={[str(mathjax())]}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    ours = [str(Path(__file__).parent / "jupyter"), *filter(None, [os.environ.get("JUPYTER_PATH")])]
    subprocess.call(command, cwd=grading, env=os.environ | {"JUPYTER_PATH": os.pathsep.join(ours)})
