"""nbgrader's side of grading: its gradebook, the notebooks that its form grader shows, and the form grader itself."""

import copy
import html
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import alembic
import nbformat
from nbformat import NotebookNode
from nbgrader.api import Grade, Gradebook, InvalidEntry, MissingEntry, SubmittedAssignment
from nbgrader.utils import compute_checksum, is_grade, is_locked, is_solution
from sqlalchemy.exc import SQLAlchemyError

from companion.core.files import atomic_write, rename_over
from companion.workshop.formulas import mathjax_folder
from companion.workshop.grading.course.book import Book, Given, Persons
from companion.workshop.grading.notebook.handout import Handout
from companion.workshop.notebooks import node

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
# nbgrader logs there, with a traceback, what it raises
logging.getLogger("tornado.application").addHandler(logging.NullHandler())


class GradebookError(RuntimeError):
    """nbgrader's gradebook cannot be read or written; the message says why."""


def persons(grading: Path, handout: Handout) -> Persons:
    """Return what persons gave in the form grader. Raises GradebookError."""
    if not (grading / "gradebook.db").exists():
        return {}
    with _gradebook(grading) as book:
        return _persons(book, handout.name)


def _persons(book: Gradebook, lesson: str) -> Persons:
    try:
        submissions = book.assignment_submissions(lesson)
    except MissingEntry:
        return {}
    return {
        submission.student.id: {name: _given(grade) for name, grade in _grades(submission).items()}
        for submission in submissions
    }


def _grades(submission: SubmittedAssignment) -> dict[str, Grade]:
    return {grade.name: grade for notebook in submission.notebooks for grade in notebook.grades}


def _given(grade: Grade) -> Given:
    """What a person gave. Where there are points by a person, others are needed only if `record` says so."""
    changed = grade.manual_score is not None and grade.needs_manual_grade
    return Given(grade.manual_score, grade.extra_credit or 0.0, changed)


def record(grading: Path, handout: Handout, source: Path, points: Book, new: set[str]) -> Persons:
    """Write ``points`` for a lesson (its ``handout`` and ``source``) into the gradebook in ``grading`` and into
    ``autograded/``: of those who are ``new`` in this run, or stand there otherwise. Return what persons gave. Raises
    GradebookError.

    Points that a person has given stay. The form grader asks for them again where the answer is another than the one
    that it showed; whether the submission was marked again is all one. What was given under a student's other name
    (`Book.both_folders`) moves to the current one; where both have points, both stay.
    """
    solution = node(source)
    with _gradebook(grading) as book:
        _assignment(book, handout.name, solution)
        there = {submission.student.id: submission for submission in book.assignment_submissions(handout.name)}
        for student, result in points.results.items():
            name, other = points.both_folders(student)  # nbgrader looks for a folder of the student's name
            here, elsewhere = (grading / "autograded" / label / handout.name for label in (name, other))
            path, notebook = here / f"{handout.name}.ipynb", _marked(solution, handout, result)
            text, before = nbformat.writes(notebook), _text(path)
            if student in new or name not in there or other in there or text != before:
                book.update_or_create_student(name)
                submission = book.update_or_create_submission(handout.name, name)
                _complete(book, submission)
                is_moved = other in there and _move(there[other], submission)
                changed = _changed(before or _text(elsewhere / path.name), notebook, handout)
                _save(submission, result, changed)
                book.db.commit()  # before the notebook: a run that is stopped here finds it changed again
                atomic_write(path, text)
                if is_moved:
                    book.remove_submission(handout.name, other)
                    shutil.rmtree(elsewhere, ignore_errors=True)
        return _persons(book, handout.name)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _complete(book: Gradebook, submission: SubmittedAssignment) -> None:
    """Give a submission the grades of questions that the lesson did not have when it came."""
    for notebook in submission.notebooks:
        lacking = {cell.id for cell in notebook.notebook.grade_cells} - {grade.cell_id for grade in notebook.grades}
        book.db.add_all(Grade(cell_id=number, notebook=notebook) for number in sorted(lacking))


def _move(old: SubmittedAssignment, new: SubmittedAssignment) -> bool:
    """Copy what a person gave for one submission to another of the same student, where nothing was given; whether all
    of it is there now.
    """
    grades, is_whole = _grades(new), True
    for name, grade in _grades(old).items():
        if name not in grades or not _given(grade).counts:
            continue
        mine = grades[name]
        if _given(grade).counts > _given(mine).counts:
            mine.manual_score, mine.extra_credit = grade.manual_score, grade.extra_credit
            mine.needs_manual_grade = grade.needs_manual_grade
        is_whole = is_whole and _given(grade).total == _given(mine).total
    comments = {comment.name: comment for notebook in new.notebooks for comment in notebook.comments}
    for comment in (comment for notebook in old.notebooks for comment in notebook.comments):
        if comment.name in comments and not comments[comment.name].manual_comment:
            comments[comment.name].manual_comment = comment.manual_comment
    return is_whole


def _changed(before: str, notebook: NotebookNode, handout: Handout) -> set[str]:
    """The questions whose answers stand in a notebook otherwise than in the text of the one ``before``."""
    try:
        old = {_name(cell): "".join(cell["source"]) for cell in json.loads(before)["cells"]}
    except (ValueError, KeyError, TypeError):
        old = {}
    new = {_name(cell): cell.source for cell in notebook.cells}
    return {each.id for each in handout.questions if old.get(each.answer_id) != new.get(each.answer_id)}


def _name(cell: dict[str, Any]) -> str | None:
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


@contextmanager
def _gradebook(grading: Path) -> Iterator[Gradebook]:
    if shutil.which("alembic") is None:  # nbgrader starts it by name
        schemes = sysconfig.get_default_scheme(), f"{os.name}_user"
        scripts = [str(Path(sys.executable).parent), *(sysconfig.get_path("scripts", scheme) for scheme in schemes)]
        beside_packages = Path(alembic.__file__).parents[4] / "bin"  # of packages that PYTHONPATH names
        os.environ["PATH"] = os.pathsep.join([*scripts, str(beside_packages), os.environ.get("PATH", "")])
    path = grading / "gradebook.db"
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of SQLAlchemy, about what nbgrader does with it
            if not path.exists():  # one that was made by half would stay so
                Gradebook(f"sqlite:///{beside}").close()
                rename_over(beside, path)
            with Gradebook(f"sqlite:///{path}") as book:
                yield book
    except (SQLAlchemyError, InvalidEntry, subprocess.CalledProcessError) as error:
        said = re.sub(r"^\(\S+\) ", "", str(error)).partition("\n")[0]  # the kind of the error, and the SQL
        raise GradebookError(f"{path.name} cannot be read or written: {said}") from None
    finally:
        beside.unlink(missing_ok=True)


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
        facts = {"locked": is_locked(cell), "source": cell.source, "checksum": compute_checksum(cell)}
        book.update_or_create_source_cell(name, lesson, lesson, cell_type=cell.cell_type, **facts)


def _save(submission: SubmittedAssignment, result: dict[str, Any], changed: set[str]) -> None:
    """Write a result into a submission's grades; of answers that have ``changed``, a person's are asked for again."""
    for name, grade in _grades(submission).items():
        entry = result["exercises"].get(name)
        empty = result["written"].get(name) == ""  # one that was not found is for a person to look for
        grade.auto_score = entry["points"] if entry else 0.0 if empty else None
        if grade.manual_score is None:
            grade.needs_manual_grade = not (entry or empty)
        elif name in changed:
            grade.needs_manual_grade = True


def _marked(solution: NotebookNode, handout: Handout, result: dict[str, Any]) -> NotebookNode:
    """The lesson with the student's answers in it and, under each check, what the grader says: never the student's
    outputs or HTML.
    """
    answer_of = {question.answer_id: question for question in handout.automatic}
    notebook = copy.deepcopy(solution)
    for cell in notebook.cells:
        name = _name(cell)
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
    command += [f"--ServerApp.extra_static_paths={[str(mathjax_folder())]}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    ours = [str(Path(__file__).parent / "jupyter"), *filter(None, [os.environ.get("JUPYTER_PATH")])]
    subprocess.call(command, cwd=grading, env=os.environ | {"JUPYTER_PATH": os.pathsep.join(ours)})
