"""A class in which everybody gets what was earned: honest answers their exact score, hostile ones not a point more."""

import os
import socket

import nbformat
import psutil
import pytest
from workshop.grading.honest import CLASS, unreadable
from workshop.grading.hostile import DOES, NEWTON, WHOLE, at_a_place
from workshop.grading.sharing import all_in, one_process
from workshop.grading.small_lesson import AUTOMATIC, NAME, cell, checkout, hand_in, page, rows, solved

from companion.workshop.cli import grade
from companion.workshop.cli.lessons import select_lessons
from companion.workshop.grading.sandbox.sandbox import Limits

pytestmark = pytest.mark.needs("sandbox")
# Little time for those who never end, and enough for the search that finds what is said of a wrong answer: it makes
# dozens of calls, and on a busy machine each of them waits
QUICK = Limits(exercise=0.5, search=60, searches=600, reading=1.5)
STUDENTS = [*CLASS, *unreadable(), *NEWTON, *WHOLE]

ODD_NAMES = ["\\xff\\xfe", "<b>new\\x0aline"]


class Graded:
    """The class after two runs of ``grade``: those who do harm, each in a process of its own, and then the others."""

    def __init__(self, root):
        self.root = checkout(root)
        self.students = CLASS | unreadable() | WHOLE
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        port = self.listener.getsockname()[1]
        self.students |= {name: at_a_place(student, str(root), port) for name, student in NEWTON.items()}
        self.hand_in(*DOES)
        [self.lesson] = select_lessons([NAME], root)
        self.before, self.folders = self.files(), self.listed()
        self.failed = grade.grade(self.lesson, root, jobs=2, limits=QUICK)
        self.changed = self.files() != self.before
        self.hand_in(*self.students.keys() - DOES)
        self.places()
        self.before = self.files()
        with one_process(QUICK, course=True) as process, all_in(process):
            self.failed += grade.grade(self.lesson, root, jobs=1, limits=QUICK)
        self.rows = {name.removeprefix("'"): row for name, row in rows(root).items()}

    def hand_in(self, *names):
        for name in names:
            student = self.students[name]
            path = hand_in(self.root, name, student.handed_in, f"{NAME}/{student.file}")
            if student.size:
                os.truncate(path, student.size)

    def places(self):
        """Submissions that are not files."""
        submitted = self.root / "grading" / "submitted"
        victim = submitted / "all right" / NAME / f"{NAME}.ipynb"
        folders = "linked file", "a pipe", "a folder", "no notebook", "two notebooks"
        for name in folders:
            (submitted / name / NAME).mkdir(parents=True)
        (submitted / "linked file" / NAME / f"{NAME}.ipynb").symlink_to(victim)
        os.mkfifo(submitted / "a pipe" / NAME / f"{NAME}.ipynb")
        (submitted / "a folder" / NAME / f"{NAME}.ipynb").mkdir()
        (submitted / "linked folder").mkdir()
        (submitted / "linked folder" / NAME).symlink_to(victim.parent)
        (submitted / "linked student").symlink_to(victim.parents[1])
        first = hand_in(self.root, "two", solved(), f"{NAME}/a.ipynb")
        first.with_name("b.ipynb").write_bytes(first.read_bytes() + b"\n")  # which of them is meant?
        for name in (b"\xff\xfe", b"<b>new\nline"):
            hand_in(self.root, os.fsdecode(name), solved())
        self.odd = [*folders, "linked folder", "linked student", "two"]

    def files(self):
        paths = [path for path in self.root.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
        return {path: path.read_bytes() for path in paths if "submitted" in path.parts or "solutions" in path.parts}

    def listed(self):
        return {place: set(os.listdir(place)) for place in ("/", "/dev", "/dev/shm") if os.path.isdir(place)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    graded = Graded(tmp_path_factory.mktemp("course"))
    with graded.listener:
        yield graded


@pytest.mark.parametrize("name", STUDENTS)
def test_everybody_gets_what_was_earned(graded, name):
    student, row = graded.students[name], graded.rows[name]
    assert {check: float(row[check]) for check in AUTOMATIC} == student.points, row
    assert student.says in page(graded.root, name)
    if student.flag:
        assert student.flag in row["needs_a_person"]
    elif name in CLASS:
        assert "suspicious" not in row["needs_a_person"]


def test_the_run_was_not_stopped_and_everybody_is_there(graded):
    assert graded.failed == []
    assert graded.rows.keys() == graded.students.keys() | {*graded.odd, *ODD_NAMES}
    assert all(float(graded.rows[name]["points"]) == 6 for name in ODD_NAMES)


def test_what_is_no_file_earns_nothing_and_is_said(graded):
    for name in graded.odd:
        assert float(graded.rows[name]["points"]) == 0
        assert "cannot be read" in graded.rows[name]["needs_a_person"]


def test_nobody_changed_a_file_or_left_one(graded):
    assert not graded.changed and graded.files() == graded.before
    assert not list(graded.root.rglob("planted*"))
    for place, names in graded.folders.items():
        assert not [name for name in set(os.listdir(place)) - names if "planted" in name]


def test_nobody_reached_the_network(graded):
    with pytest.raises(BlockingIOError):
        graded.listener.accept()


def test_nobody_left_a_process_behind(graded):
    commands = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    worker = "companion.workshop.grading.sandbox.worker"
    assert not [command for command in commands if worker in command and str(graded.root) in command]
    assert not [child for child in psutil.Process().children(recursive=True) if "bwrap" in child.name()]


def test_written_answers_wait_for_a_person(graded):
    assert graded.rows["all right"]["open-question"] == ""
    assert graded.rows["unsolved"]["open-question"] == "0"
    notebook = nbformat.read(graded.root / "grading/autograded/written only" / NAME / f"{NAME}.ipynb", 4)
    shown = cell(notebook, "open-question")
    assert shown.source.startswith("<pre") and "&lt;script&gt;" in shown.source and "\n\n" not in shown.source


def test_no_page_runs_anything(graded):
    for path in (graded.root / "grading" / "feedback").rglob("*.html"):
        assert "<script" not in path.read_text(encoding="utf-8")


def test_nearly_every_cheat_is_shown_to_a_person(graded):
    reasons = {name: graded.rows[name]["needs_a_person"].replace("to be marked: open-question", "") for name in NEWTON}
    unseen = [name for name, reason in reasons.items() if not reason]
    assert len(unseen) <= len(NEWTON) / 10, unseen


def test_the_summary_has_the_class(graded):
    text = (graded.root / "grading" / NAME / "summary.md").read_text(encoding="utf-8")
    assert f"{len(graded.rows)} submissions" in text
    assert "the course's own answer: suspicious: calls the course's own code" in text
    assert "\n- newton-step-check, " in text and "<script" not in text
