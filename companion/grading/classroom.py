"""Marks what was handed in, in sandboxes and in parallel, and writes grades, feedback, a summary and nbgrader's
gradebook.

grading/submitted/STUDENT/NN-topic/NN-topic.ipynb    handed in; each is kept (`handins`)
grading/settings.toml, roster.csv                    deadlines and who is in the class (`settings`, `roster`)
grading/NN-topic/grades.csv                          the class; grows as results come
grading/NN-topic/summary.md, class.html              how each exercise was answered, and what needs a person
grading/NN-topic/canvas.csv, moodle.csv              points for an LMS (`lms`)
grading/NN-topic/overrides.csv                       points that you give instead, with a reason
grading/NN-topic/results/                            what is known of each submission; only what changed is marked again
grading/feedback/STUDENT/NN-topic.html               for the student; all of them in grading/NN-topic/feedback.zip
grading/autograded/, gradebook.db                    for nbgrader's form grader, where the written answers are marked
grading/secret                                       the inputs' seeds come from it: keep it, and keep it to yourself
"""

import hashlib
import json
import platform
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from companion.files import atomic_write
from companion.grading import formgrader, lms
from companion.grading.book import Book
from companion.grading.classpage import class_page
from companion.grading.feedback import page, summary, table
from companion.grading.handins import HandIn, collect
from companion.grading.marking import mark, nothing
from companion.grading.names import file_name, one_line
from companion.grading.package import KINDS
from companion.grading.parsing import parsed
from companion.grading.questions import Handout
from companion.grading.roster import read_overrides, read_roster
from companion.grading.sandbox import Limits
from companion.grading.settings import SettingsError, read_settings
from companion.grading.submissions import Unreadable

COMPANION = Path(__file__).resolve().parents[1]
OFTEN = 2.0  # seconds between two writings of grades.csv


def grade(
    given: Handout,
    source: Path,
    root: Path,
    *,
    jobs: int | None = None,
    unsafe: bool = False,
    limits: Limits | None = None,
    only: str = "",
    force: bool = False,
) -> list[str]:
    """Grade one lesson's submissions; the names of those that could not be marked, because the sandbox failed.

    Submissions are marked through joblib: ``joblib.parallel_config(backend="dask")`` around this call spreads them over
    a cluster whose machines share the disk. Results are kept and the gradebook is written here, by one process. Raises
    SettingsError.

    ``given``: the lesson as its learners got it.
    ``source``: its solution, from which the form grader's notebooks are made.
    ``root``: the checkout, in which ``grading/`` lies.
    ``jobs``: how many submissions at a time; as many as joblib is told, unless said.
    ``unsafe``: mark without a sandbox, where the system has none.
    ``limits``: what a submission may use.
    ``only``: the one student whose hand-in is marked; everybody's, if empty.
    ``force``: mark again what is known.
    """
    grading, limits = root / "grading", limits or Limits()
    place = grading / given.name
    (place / "results").mkdir(parents=True, exist_ok=True)
    with locked(grading):
        settings, seeds = read_settings(grading / "settings.toml"), _seeds(grading, given.name)
        handed = collect(grading, given.name, settings, limits.notebook)
        if only and only not in handed:
            raise SettingsError(f"--student {only!r} has handed in nothing; there is {', '.join(handed) or 'nobody'}")
        course = fingerprint(given, seeds, limits, unsafe=unsafe)
        results = {name: _known(place, one, course) for name, one in handed.items()}
        chosen = [one for name, one in handed.items() if only in ("", name)]
        new = [one for one in chosen if force or results[one.student] is None]
        results |= {one.student: None for one in new}
        book = Book(
            given,
            settings,
            read_roster(grading / "roster.csv"),
            read_overrides(place / "overrides.csv", given),
            key=_secret(grading),
            persons=formgrader.persons(grading, given),
        )
        failed = []
        for one, result in _marked(new, given, seeds, limits, jobs=jobs, unsafe=unsafe):
            if isinstance(result, str):
                failed.append(one.student)
                tqdm.write(one_line(f"{one.student}: not marked: {result}"))
                continue
            results[one.student] = result | {"course": course, "contents": one.key, "student": one.student}
            atomic_write(_kept(place, one.student), json.dumps(results[one.student], indent=1) + "\n")
            book.results = _dated(results, handed)
            if time.monotonic() - book.written > OFTEN:
                atomic_write(place / "grades.csv", table(book))
                book.written = time.monotonic()
        book.results = _dated(results, handed)
        formgrader.record(grading, given, source, book, {one.student for one in new})
        _publish(grading, place, book, failed)
    print(
        summary(book, failed)
        + f"\n{len(new)} marked, {len(handed) - len(new)} as before; see {place.relative_to(root)}"
    )
    return failed


def _marked(new: list[HandIn], given: Handout, seeds: list[int], limits: Limits, *, jobs: int | None, unsafe: bool):
    """Each hand-in with its result, or with what kept it from being marked, as they come."""
    jobs_to_do = (delayed(_attempt)(one, given, seeds, limits, unsafe) for one in new)
    marked = Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")(jobs_to_do)
    return tqdm(marked, total=len(new), desc=f"{given.name}: marking")


def _dated(results: dict[str, dict | None], handed: dict[str, HandIn]) -> dict[str, dict[str, Any]]:
    """The results there are, with when they were handed in."""
    return {
        name: result | {"when": handed[name].when, "days_late": handed[name].days_late}
        for name, result in results.items()
        if result is not None
    }


def _publish(grading: Path, place: Path, book: Book, failed: list[str]) -> None:
    """All that people read."""
    atomic_write(place / "grades.csv", table(book))
    atomic_write(place / "summary.md", summary(book, failed))
    atomic_write(place / "class.html", class_page(book, failed))
    pages = {name: page(book, name) for name in book.results}
    for name, text in pages.items():
        target = grading / "feedback" / file_name(name) / f"{book.given.name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(target, text)
    lms.export(place, book, pages)


@contextmanager
def locked(grading: Path) -> Iterator[None]:
    """One run at a time. Raises SettingsError if there is another."""
    with (grading / ".lock").open("ab") as file:
        try:
            import fcntl  # noqa: PLC0415 (not on Windows)

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError:
            raise SettingsError("another run is grading in this checkout; wait until it has ended") from None
        yield


def _attempt(
    one: HandIn, given: Handout, seeds: list[int], limits: Limits, unsafe: bool
) -> tuple[HandIn, dict[str, Any] | str]:
    if one.path is None:
        return one, nothing(one.problem, given)
    try:
        return one, mark(parsed(one.path.read_bytes(), given), given, seeds, limits, unsafe=unsafe)
    except Unreadable as error:
        return one, nothing(str(error), given)
    except Exception as error:  # one submission must not stop the others; it is named, and the exit status says so
        return one, f"{type(error).__name__}: {error}"


def fingerprint(given: Handout, seeds: list[int], limits: Limits, *, unsafe: bool) -> str:
    """A SHA-256 of all that decides a result but the submission: also of course, grader, Python and torch.

    ``given``: the lesson as its learners got it.
    ``seeds``: of the secret inputs.
    ``limits``: what a submission may use.
    ``unsafe``: whether there is no sandbox.
    """
    about = (given, seeds, limits, unsafe, torch.__version__, platform.python_version())
    digest = hashlib.sha256(repr(about).encode())
    for path in sorted(COMPANION.rglob("*")):
        if path.suffix in KINDS and path.is_file():
            digest.update(f"{path.relative_to(COMPANION)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _known(place: Path, one: HandIn, course: str) -> dict[str, Any] | None:
    """What was found out about this very hand-in before, if the lesson and the grader are still the same."""
    try:
        result = json.loads(_kept(place, one.student).read_text(encoding="utf-8"))
        same = result["course"] == course and result["contents"] == one.key
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if same else None


def _kept(place: Path, name: str) -> Path:
    return place / "results" / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"


def _seeds(grading: Path, lesson: str) -> list[int]:
    """The seeds of the inputs on which answers are graded: the same for everybody and every time, but known to the
    staff alone.
    """
    return list(_integers(_secret(grading) + lesson, 6))


def _secret(grading: Path) -> str:
    path = grading / "secret"
    if not path.exists():
        atomic_write(path, secrets.token_hex(16) + "\n")
        path.chmod(0o600)
    return path.read_text(encoding="utf-8").strip()


def _integers(key: str, many: int) -> Iterator[int]:
    for number in range(many):
        yield int.from_bytes(hashlib.sha256(f"{key}/{number}".encode()).digest()[:6], "big")
