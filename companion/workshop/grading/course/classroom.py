"""Marks what was handed in, in sandboxes and in parallel, and writes grades, feedback, a summary and nbgrader's
gradebook.

grading/submitted/STUDENT/NN-topic/NN-topic.ipynb    handed in; each is kept (`handins`)
grading/settings.toml, roster.csv                    deadlines and who is in the class (`settings`, `roster`)
grading/NN-topic/grades.csv                          the class; grows as results come
grading/NN-topic/summary.md                          how each exercise was answered, and what needs a person
grading/NN-topic/canvas.csv, moodle.csv              points for an LMS (`lms`)
grading/NN-topic/overrides.csv                       points that you give instead, with a reason
grading/NN-topic/results/                            what is known of each version; only what changed is marked again
grading/NN-topic/reference.json                      where the course's own answers passed (`reference`)
grading/feedback/STUDENT/NN-topic.html               for the student; all of them in grading/NN-topic/feedback.zip
grading/autograded/, gradebook.db                    for nbgrader's form grader, where the written answers are marked
grading/secret                                       the inputs' seeds come from it: keep it, and keep it to yourself
"""

import hashlib
import json
import platform
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from companion.core.files import atomic_write
from companion.workshop.grading.alone import alone
from companion.workshop.grading.course import formgrader, handins, lms, reference
from companion.workshop.grading.course.book import Book
from companion.workshop.grading.course.feedback import page, summary, table
from companion.workshop.grading.course.handins import HandIn
from companion.workshop.grading.course.marking import WRONG, mark, nothing, prepare
from companion.workshop.grading.course.names import file_name, one_line
from companion.workshop.grading.course.settings import SettingsError, odd_encoding, read_settings
from companion.workshop.grading.course.tables import read_overrides, read_roster
from companion.workshop.grading.course.unmatched import unmatched
from companion.workshop.grading.notebook.files import Unreadable
from companion.workshop.grading.notebook.handout import Handout
from companion.workshop.grading.notebook.submissions import parsed
from companion.workshop.grading.sandbox.sandbox import Limits

COMPANION = Path(__file__).resolve().parents[3]
KINDS = {".py", ".csv", ".toml", ".txt"}  # what decides a result
OFTEN = 2.0  # seconds between two writings of grades.csv
MEMORY = 4 << 30  # bytes for comparing one submission's answers
wrong: set[str] = set()  # questions that somebody got wrong: what helps to say why is made once, not for each


def grade(
    handout: Handout,
    source: Path,
    root: Path,
    *,
    jobs: int | None = None,
    unsafe: bool = False,
    limits: Limits | None = None,
    only: str = "",
    force: bool = False,
) -> list[str]:
    """Grade the submissions of one lesson (its ``handout`` and, for the form grader, its ``source``) in the checkout
    ``root``, ``jobs`` at a time, without a sandbox if ``unsafe``; return the names of those that could not be marked,
    because the sandbox failed. ``only`` names the one student whose hand-in is marked, ``force`` marks again what is
    known, and ``limits`` is what each may use. Raises SettingsError, ReferenceFails where the course's own answers do
    not pass (`reference`), and GradebookError where nbgrader's gradebook cannot be read or written.

    Submissions are marked through joblib: ``joblib.parallel_config(backend="dask")`` around this call spreads them over
    a cluster whose machines share the disk. Results are kept and the gradebook is written here, by one process.
    """
    grading, limits = root / "grading", limits or Limits()
    folder = grading / handout.name
    (folder / "results").mkdir(parents=True, exist_ok=True)
    with locked(grading):
        settings, seeds = read_settings(grading / "settings.toml"), _seeds(grading, handout.name)
        roster, overrides = read_roster(grading / "roster.csv"), read_overrides(folder / "overrides.csv", handout)
        answered = partial(handins.answered, handout=handout)
        hand_ins = handins.collect(grading, handout.name, settings, limits.notebook, answered)
        if only and only not in hand_ins:
            raise SettingsError(
                f"--student {only!r}: must be one who has handed in: {', '.join(hand_ins) or 'nobody yet'}"
            )
        course = fingerprint(handout, seeds, limits, unsafe=unsafe)
        chosen = {only} if only else hand_ins.keys()
        results: dict[str, dict[str, Any]] = {
            name: {one.key: None if force and name in chosen else _known(folder, one, course) for one in versions}
            for name, versions in hand_ins.items()
        }

        def new() -> list[HandIn]:
            return [one for name in chosen for one in handins.unmarked(hand_ins[name], results[name], settings)]

        def counted(name: str) -> dict[str, dict[str, Any]]:
            hand_in = handins.hand_in_that_counts(hand_ins[name], results[name], settings)
            return {name: results[name][hand_in.key] | hand_in.dated} if hand_in else {}

        if new():
            of_the_course = partial(_result, source, handout, seeds, limits, unsafe)
            reference.require(of_the_course, handout, source, folder, course, again=force)
        book = Book(
            handout,
            settings,
            roster,
            overrides,
            handins.folders(grading, hand_ins),
            key=_secret(grading),
            persons=formgrader.persons(grading, handout),
        )
        book.remarks += _remarks(root, book, hand_ins.keys())
        for name in hand_ins:
            book.results |= counted(name)
        failed, marked = [], set()
        while calls := new():  # again where one cannot be read, and the version before it counts
            calls = [delayed(_attempt)(hand_in, handout, seeds, limits, unsafe) for hand_in in calls]
            attempts = Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")(calls)
            for hand_in, result in tqdm(attempts, total=len(calls), desc=f"{handout.name}: marking"):
                name = hand_in.student
                marked.add(name)
                results[name][hand_in.key] = result
                if isinstance(result, str):
                    failed += [] if name in failed else [name]
                    tqdm.write(one_line(f"{name}: not marked: {result}"))
                    continue
                result |= {"course": course, "contents": hand_in.key, "student": name}
                atomic_write(_kept(folder, hand_in), json.dumps(result, indent=1) + "\n")
                book.results |= counted(name)
                if time.monotonic() - book.written > OFTEN:
                    atomic_write(folder / "grades.csv", table(book))
                    book.written = time.monotonic()
        try:
            book.persons = formgrader.record(grading, handout, source, book, marked)
        except formgrader.GradebookError:
            _publish(grading, folder, book, failed)
            raise
        _publish(grading, folder, book, failed)
    many = f"{len(marked) - len(failed)} marked, {len(hand_ins) - len(marked)} as before"
    told = f"{many}{f', {len(failed)} NOT marked' if failed else ''}; see {folder.relative_to(root)}"
    nobody = f"Nobody has handed in: there is no grading/submitted/STUDENT/{handout.name}/*.ipynb"
    print(f"{summary(book, failed)}\n{told if hand_ins else nobody}")
    return failed


def _remarks(root: Path, book: Book, handed_in: Collection[str]) -> list[str]:
    """What an instructor should know of the course's own files: how they were read, and what matches nobody."""
    grading, lesson = root / "grading", book.handout.name
    files = (grading / "settings.toml", grading / "roster.csv", grading / lesson / "overrides.csv")
    lessons = {lesson, *(path.stem for path in (root / "solutions").glob("*/*.ipynb") if path.stem == path.parent.name)}
    students = {"handed_in": handed_in, "roster": book.roster.keys()}
    return [
        *filter(None, map(odd_encoding, files)),
        *unmatched(book.settings, book.overrides, lesson, lessons=lessons, **students),
    ]


def _publish(grading: Path, folder: Path, book: Book, failed: list[str]) -> None:
    """All that people read."""
    atomic_write(folder / "grades.csv", table(book))
    atomic_write(folder / "summary.md", summary(book, failed))
    pages = {name: page(book, name) for name in book.results}
    for name, text in pages.items():
        target = grading / "feedback" / book.folders.get(name, file_name(name)) / f"{book.handout.name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(target, text)
    lms.export(folder, book, pages)


@contextmanager
def locked(grading: Path) -> Iterator[None]:
    """Allow one run at a time. Raises SettingsError if there is another."""
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
    hand_in: HandIn, handout: Handout, seeds: list[int], limits: Limits, unsafe: bool
) -> tuple[HandIn, dict[str, Any] | str]:
    """The hand-in with its result, or with what kept it from being marked."""
    if hand_in.path is None:
        return hand_in, nothing(hand_in.problem, handout)
    return hand_in, _result(hand_in.path, handout, seeds, limits, unsafe, hand_in.helpers())


def _result(
    path: Path,
    handout: Handout,
    seeds: list[int],
    limits: Limits,
    unsafe: bool,
    files: dict[str, str] | None = None,
) -> dict[str, Any] | str:
    """The result of the notebook in ``path`` with the ``files`` beside it, or what kept it from being marked."""
    try:
        submission = parsed(path.read_bytes(), handout, files)
        within = {"seconds": limits.wall, "memory": MEMORY, "prepare": partial(prepare, handout, frozenset(wrong))}
        result = alone(partial(mark, unsafe=unsafe), submission, handout, seeds, limits, **within)
        wrong.update(name for name, entry in result["exercises"].items() if entry["outcome"] == WRONG)
        return result
    except (Unreadable, TimeoutError) as error:
        return nothing(str(error), handout)
    except Exception as error:  # one submission must not stop the others; it is named, and the exit status says so
        return f"{type(error).__name__}: {error}"


def fingerprint(handout: Handout, seeds: list[int], limits: Limits, *, unsafe: bool) -> str:
    """Return a SHA-256 of all that decides a result but the submission: of lesson (``handout``), secret inputs
    (``seeds``), ``limits`` and whether there is a sandbox (``unsafe``), of course, grader, Python and torch.
    """
    about = (handout, seeds, limits, unsafe, torch.__version__, platform.python_version())
    digest = hashlib.sha256(repr(about).encode())
    for path in sorted(COMPANION.rglob("*")):
        if path.suffix in KINDS and path.is_file():
            digest.update(f"{path.relative_to(COMPANION)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _known(folder: Path, hand_in: HandIn, course: str) -> dict[str, Any] | None:
    """What was found out about this very hand-in before, if the lesson and the grader are still the same."""
    try:
        result = json.loads(_kept(folder, hand_in).read_text(encoding="utf-8"))
        same = result["course"] == course and result["contents"] == hand_in.key
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if same else None


def _kept(folder: Path, hand_in: HandIn) -> Path:
    about = f"{hand_in.student}\0{hand_in.key}"
    return folder / "results" / f"{hashlib.sha256(about.encode()).hexdigest()[:24]}.json"


def _seeds(grading: Path, lesson: str) -> list[int]:
    """The seeds of the inputs on which answers are graded: the same for everybody and every time, but known to the
    staff alone.
    """
    keys = (f"{_secret(grading)}{lesson}/{number}" for number in range(6))
    return [int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big") for key in keys]


def _secret(grading: Path) -> str:
    path = grading / "secret"
    if not path.exists():
        atomic_write(path, secrets.token_hex(16) + "\n")
        path.chmod(0o600)
    return path.read_text(encoding="utf-8").strip()
