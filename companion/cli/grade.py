"""``grade``: marks what was handed in, in sandboxes and in parallel, and writes grades, feedback, a summary and nbgrader's gradebook.

grading/submitted/STUDENT/NN-topic/NN-topic.ipynb    handed in
grading/NN-topic/grades.csv, summary.md              the class
grading/NN-topic/results/                            what is known of each submission; only what changed is marked again
grading/feedback/STUDENT/NN-topic.html               for the student
grading/autograded/, gradebook.db                    for nbgrader's form grader, where the written answers are marked
grading/secret                                       the inputs' seeds come from it: keep it, and keep it to yourself
"""

import hashlib
import json
import os
import secrets
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from tqdm.auto import tqdm

from companion.cli import formgrader, sandbox
from companion.cli.feedback import page, summary, table
from companion.cli.lessons import Lesson, LessonError, chosen
from companion.cli.marking import contents, fingerprint, mark
from companion.cli.release import generate
from companion.cli.run import write
from companion.cli.sandbox import Limits
from companion.cli.setup import ROOT
from companion.cli.submissions import Handout, handout


def main(arguments: Namespace, root: Path = ROOT) -> int:
    """Grade the lessons, then open the form grader if asked to. 1 if a submission could not be marked, 2 if nothing could be done."""
    try:
        lessons = chosen(arguments.lessons, root) if arguments.lessons else []
    except LessonError as error:
        print(f"grade: {error}")
        return 2
    if not (lessons or arguments.formgrader):
        print("grade: which LESSON? Or --formgrader, to mark written answers")
        return 2
    if lessons and (reason := sandbox.missing(root)):
        print(f"grade: NO SANDBOX: {reason}.\nSubmissions are programs by strangers; without a sandbox they run with all your rights.")
        if not arguments.unsafe:
            print("Nothing was run. --unsafe runs them all the same.")
            return 2
    status = 0
    for lesson in lessons:
        try:
            left = grade(lesson, root, jobs=arguments.jobs, unsafe=arguments.unsafe)
        except LessonError as error:
            print(f"grade: {error}")
            return 2
        status = status or int(bool(left))
    if arguments.formgrader:
        formgrader.serve(root)
    return status


def grade(lesson: Lesson, root: Path = ROOT, *, jobs: int | None = None, unsafe: bool = False, limits: Limits | None = None) -> list[str]:
    """Grade one lesson's submissions; the names of those that could not be marked, because the sandbox failed.

    Submissions are marked through joblib: ``joblib.parallel_config(backend="dask")`` around this call spreads them over a cluster
    whose machines share the disk. Results are kept and the gradebook is written here, by one process.
    """
    grading, limits = root / "grading", limits or Limits()
    place = grading / lesson.name
    (place / "results").mkdir(parents=True, exist_ok=True)
    given = questions(lesson, root)
    seeds = _seeds(grading, lesson.name)
    folders = sorted(path for path in (grading / "submitted").glob(f"*/{lesson.name}") if path.is_dir() or path.is_symlink())
    course = fingerprint(given, seeds, limits, unsafe=unsafe)
    known = {folder: _known(place, folder, course, limits) for folder in folders}
    new, failed = [folder for folder in folders if known[folder] is None], []
    jobs_to_do = (delayed(_attempt)(folder, given, seeds, limits, unsafe, root) for folder in new)
    marked = Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")(jobs_to_do)
    for folder, key, result in tqdm(marked, total=len(new), desc=f"{lesson.name}: marking"):
        if isinstance(result, str):
            failed.append(_student(folder))
            tqdm.write(f"{_student(folder)}: not marked: {result}")
            continue
        known[folder] = result | {"course": course, "contents": key, "student": _student(folder)}
        write(_kept(place, folder), json.dumps(known[folder], indent=1) + "\n")
    results = {_student(folder): result for folder, result in known.items() if result is not None}
    book = formgrader.record(grading, lesson, given, results, {_student(folder) for folder in new})
    write(place / "grades.csv", table(given, results, book))
    write(place / "summary.md", text := summary(given, results, book, failed))
    for folder in (folder for folder, result in known.items() if result is not None):
        target = grading / "feedback" / folder.parent.name / f"{lesson.name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        write(target, page(given, _student(folder), known[folder], book))
    print(text + f"\n{len(new)} marked, {len(folders) - len(new)} as before; see {place.relative_to(root)}")
    return failed


def questions(lesson: Lesson, root: Path) -> Handout:
    """The lesson's questions, and what its learners were given: made anew from the solution."""
    (root / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root / "build") as folder:
        made = generate([lesson], Path(folder))
        return handout(lesson, made / lesson.name / lesson.source.name)


def _attempt(
    folder: Path, given: Handout, seeds: list[int], limits: Limits, unsafe: bool, root: Path
) -> tuple[Path, str, dict[str, Any] | str]:
    key = ""
    try:
        key = contents(folder, limits.notebook)
        return folder, key, mark(folder, given, seeds, limits, unsafe=unsafe, root=root)
    except Exception as error:  # one submission must not stop the others; it is named, and the exit status says that there is one
        return folder, key, f"{type(error).__name__}: {error}"


def _known(place: Path, folder: Path, course: str, limits: Limits) -> dict[str, Any] | None:
    """What was found out about this very submission before, if the lesson and the grader are still the same."""
    try:
        result = json.loads(_kept(place, folder).read_text(encoding="utf-8"))
        same = result["course"] == course and result["contents"] == contents(folder, limits.notebook)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if same else None


def _kept(place: Path, folder: Path) -> Path:
    return place / "results" / f"{hashlib.sha256(os.fsencode(folder.parent.name)).hexdigest()[:24]}.json"


def _student(folder: Path) -> str:
    """The name of the student's folder, as text that every file can hold."""
    return os.fsencode(folder.parent.name).decode("utf-8", "backslashreplace")


def _seeds(grading: Path, lesson: str) -> list[int]:
    """The seeds of the inputs on which answers are graded: the same for everybody and every time, but known to the staff alone."""
    path = grading / "secret"
    if not path.exists():
        write(path, secrets.token_hex(16) + "\n")
        path.chmod(0o600)
    return list(_integers(path.read_text(encoding="utf-8").strip() + lesson, 6))


def _integers(key: str, many: int) -> Iterator[int]:
    for number in range(many):
        yield int.from_bytes(hashlib.sha256(f"{key}/{number}".encode()).digest()[:6], "big")
