"""A class with deadlines, a roster and an LMS; what the sandbox would find is made up here."""

import csv
import html
import json
import os
import re
import zipfile
from collections import Counter

import pytest
import torch
from workshop.grading.handing_in import at, further, grade, rows
from workshop.grading.reading import small_handout
from workshop.grading.small_lesson import AUTOMATIC, NAME, cell, edited, hand_in, handed_in, page, solved

from companion.workshop.grading.course import classroom, marking
from companion.workshop.grading.course.feedback import markdown
from companion.workshop.grading.course.names import file_name, student
from companion.workshop.grading.course.reference import ReferenceFails
from companion.workshop.grading.course.settings import SettingsError
from companion.workshop.grading.sandbox import bubblewrap
from companion.workshop.grading.sandbox.sandbox import Limits

DUE = "2026-11-30T12:00:00+00:00"


@pytest.fixture
def tried(course, monkeypatch):
    """How often each notebook was marked, the course's own by the name "reference"."""
    counts, result = Counter(), classroom._result

    def counting(path, *rest):
        counts["reference" if "solutions" in path.parts else path.parts[-3]] += 1
        return result(path, *rest)

    monkeypatch.setattr(classroom, "_result", counting)
    return counts


def test_the_courses_own_answers_are_tried_once_in_each_environment(course, tried, monkeypatch):
    for name in bubblewrap.HANDED_IN:
        monkeypatch.delenv(name, raising=False)
    grade(course)
    assert not tried, "nobody has handed in"
    for name, times in (("anna", 1), ("bert", 1)):
        hand_in(course, name, solved())
        grade(course)
        assert tried["reference"] == times and tried[name] == 1
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    grade(course)
    assert tried["reference"] == 1, "nothing is new"
    for name in ("carl", "dora"):
        hand_in(course, name, solved())
        grade(course)
        assert tried["reference"] == 2
    monkeypatch.delenv("MKL_CBWR")
    hand_in(course, "emil", solved())
    grade(course)
    assert tried["reference"] == 2, "both environments are remembered"
    grade(course, force=True)
    assert tried["reference"] == 3
    source = course / "solutions" / NAME / f"{NAME}.ipynb"
    source.write_text(source.read_text().replace("return 2 * M", "return M + M"))
    hand_in(course, "who", solved())
    grade(course)
    assert tried["reference"] == 4, "it is another answer"
    (course / "grading" / NAME / "reference.json").write_text("[")
    hand_in(course, "zoe", solved())
    grade(course)
    assert tried == {"reference": 5, "anna": 2, "bert": 2, "carl": 2, "dora": 2, "emil": 2, "who": 1, "zoe": 1}


@pytest.mark.parametrize("build", ["2.13.0+cu130", "2.13.0+cpu"])
def test_another_build_of_torch_asks_again(course, tried, monkeypatch, build):
    hand_in(course, "anna", solved())
    grade(course)
    monkeypatch.setattr(torch.__config__, "show", lambda: build)
    hand_in(course, "bert", solved())
    grade(course)
    assert tried == {"reference": 2, "anna": 1, "bert": 1}


def test_a_lesson_whose_own_answers_fail_is_not_marked_and_they_are_tried_until_they_pass(course, tried, monkeypatch):
    marks = classroom.mark

    def fails(submission, handout, *rest, **named):
        result = marks(submission, handout, *rest, **named)
        result["exercises"][AUTOMATIC[1]] = marking.entry(0.0, marking.STOPPED, "the process ended itself")
        return result

    monkeypatch.setattr(classroom, "mark", fails)
    hand_in(course, "anna", solved())
    for times in (1, 2):
        with pytest.raises(ReferenceFails, match=r"nothing was marked: .*: newton_step: stopped \(the process ended"):
            grade(course)
        assert tried == {"reference": times}
    monkeypatch.setattr(classroom, "mark", marks)
    grade(course)
    assert tried == {"reference": 3, "anna": 1} and rows(course)["anna"]["points"] == "6"


def test_deadlines_roster_overrides_and_what_goes_to_an_lms(course):
    grading = course / "grading"
    (grading / "settings.toml").write_text(
        f'[deadlines]\n"{NAME}" = {DUE}\n[late]\nper_day = 0.1\nat_most = 0.5\n'
        f'[extensions."dora"]\n"{NAME}" = 2026-12-24T12:00:00+00:00\n[assignments]\n"{NAME}" = "Small (4711)"\n'
    )
    (grading / "roster.csv").write_text(
        "student,name,canvas_id,moodle_id\nanna,Anna Berg,11,21\nbert,=Bert,12,22\n"
        "carl,Carl,13,\ndora,Dora,14,\nemil,Emil,15,25\n"
    )
    (grading / NAME).mkdir()
    (grading / NAME / "overrides.csv").write_text(
        "student,question,points,reason\nanna,open-question,4,spoke of it well\n"
    )
    first = at(hand_in(course, "anna", solved()), "2026-11-30T11:00:00+00:00")
    late = at(hand_in(course, "bert", solved()), "2026-12-01T13:00:00+00:00")
    at(hand_in(course, "dora", handed_in({})), "2026-12-20T13:00:00+00:00")
    at(hand_in(course, "who", solved()), "2026-11-01T13:00:00+00:00")
    assert grade(course) == []
    before = rows(course)
    points = {"anna": "10", "bert": "4.8", "carl": "0", "dora": "0", "emil": "0", "who": "6"}
    assert {name: row["points"] for name, row in before.items()} == points
    assert before["bert"]["days_late"] == "2" and before["dora"]["days_late"] == "0"
    assert before["carl"]["needs_a_person"] == "handed in nothing"
    assert "not on the roster" in before["who"]["needs_a_person"]
    assert "20 % of the points are lost" in page(course, "bert")
    assert "given by a person: spoke of it well" in page(course, "anna")

    # a later, worse hand-in after the deadline does not count; every one is kept
    first.write_text(json.dumps(handed_in({})))
    at(first, "2026-12-02T11:00:00+00:00")
    late.write_text("not a notebook")
    grade(course)
    assert rows(course)["anna"] == before["anna"]
    assert len(list((grading / "kept" / "anna" / NAME).iterdir())) == 2
    assert len(list((grading / "kept" / "bert" / NAME).iterdir())) == 2

    canvas = list(csv.reader((grading / NAME / "canvas.csv").read_text().splitlines()))
    assert canvas[:4] == [  # Canvas refuses a head without Section, or of fewer columns
        ["Student", "ID", "Section", "Small (4711)"],
        ["    Points Possible", "", "", "10"],
        ["Anna Berg", "11", "", "10"],
        ["'=Bert", "12", "", rows(course)["bert"]["points"]],
    ]
    moodle = list(csv.DictReader((grading / NAME / "moodle.csv").read_text().splitlines()))
    assert moodle[0] == {  # Moodle refuses one without the first and the last two
        "Identifier": "Participant 21",
        "Full name": "Anna Berg",
        "Maximum Grade": "10",
        "Grade": "10",
        "Last modified (grade)": "-",
    }
    with zipfile.ZipFile(grading / NAME / "feedback.zip") as archive:
        assert f"Anna Berg_21_assignsubmission_file/{NAME}.html" in archive.namelist()

    # again, byte for byte
    kept = {path: path.read_bytes() for path in sorted((grading / NAME).glob("*.*"))}
    grade(course, force=True)
    assert kept == {path: path.read_bytes() for path in sorted((grading / NAME).glob("*.*"))}


ONE_OF_OURS = "2026-11-01T120000.000000Z-0123456789abcdef.ipynb"
TIMES = [b"0001-01-01 00:00:00+14:00", b"0999-01-01 00:00:00 UTC", b"9999-12-31 23:59:59-12:00"]
TIMES += [b"soon", b"\xff", b"2" * 99]


def odd_files(folder, kept):
    """What may lie in a student's folders, and is no hand-in."""
    folder.mkdir(parents=True)
    (folder / "._x.ipynb").write_bytes(b"")
    (kept / f"{NAME}").mkdir(parents=True)
    for name in ("copy of it.ipynb", f"._{ONE_OF_OURS}", "9" + ONE_OF_OURS):
        (kept / NAME / name).write_bytes(b"{}")
    (kept / NAME / ONE_OF_OURS).mkdir()


@pytest.mark.parametrize("text", TIMES)
def test_nobody_elses_grade_depends_on_what_is_in_a_students_folder(course, monkeypatch, text):
    grading = course / "grading"
    (grading / "settings.toml").write_text(f'[deadlines]\n"{NAME}" = {DUE}\n')
    at(hand_in(course, "anna", solved()), "2026-11-30T11:00:00+00:00")
    path = at(hand_in(course, "bert", solved()), "2026-11-30T11:00:00+00:00")
    (path.parent / "timestamp.txt").write_bytes(text)
    at(hand_in(course, "carl", solved()), "2026-11-30T11:00:00+00:00")
    os.utime(path, (1e11, 1e11) if text == b"soon" else None)
    odd_files(grading / "submitted" / "emil" / NAME, grading / "kept" / "emil")
    (grading / "submitted" / "a file").write_bytes(b"")
    finds = classroom.handins.find

    def forbidden(place, *rest):
        if place.name == "carl":
            raise PermissionError(13, "Permission denied")
        return finds(place, *rest)

    monkeypatch.setattr(classroom.handins, "find", forbidden)
    for _ in range(2):
        assert grade(course) == []
        found = {name: (row["points"], row["needs_a_person"]) for name, row in rows(course).items()}
        assert found["anna"] == ("6", "to be marked: open-question") and found["bert"][0] == "6"
        assert "it cannot be opened or kept (Permission denied)" in found["carl"][1]
        assert "there is no notebook" in found["emil"][1]


def test_what_is_handed_in_again_counts_again(course):
    first, then = json.dumps(solved()), json.dumps(handed_in({}))
    path = at(hand_in(course, "anna", first.encode()), "2026-11-01T12:00:00+00:00")
    for day, text, points in ((2, then, "0"), (3, first, "6"), (3, first, "6")):
        grade(course)
        path.write_text(text)
        at(path, f"2026-11-0{day}T12:00:00+00:00")
        grade(course)
        assert rows(course)["anna"]["points"] == points
    assert len(list((course / "grading/kept/anna" / NAME).iterdir())) == 3


def test_what_the_instructors_files_say_of_nobody_stands_in_the_summary(course, capsys):
    grading = course / "grading"
    hand_in(course, "Bert", solved())
    hand_in(course, "Anna Berg", solved())
    (grading / NAME).mkdir()
    text = "student,question,points,reason\nbert,newton-step-check,0,copied from Zoë\n"
    (grading / NAME / "overrides.csv").write_bytes(text.encode("cp1252"))
    (grading / "settings.toml").write_text(
        f'[deadlines]\n"05" = {DUE}\n[late]\nper_day = 1\n[extensions."Ana Berg"]\n"{NAME}" = {DUE}\n'
    )
    assert grade(course) == []
    said = (grading / NAME / "summary.md").read_text().partition("## What needs a person")[2].splitlines()
    assert [line for line in said if line] == [
        "- overrides.csv: is not UTF\\-8 and was read as Windows\\-1252; save it as UTF\\-8 if a name looks wrong",
        "- settings.toml, \\[deadlines\\]: there is no lesson '05'; there is 05\\-small",
        "- settings.toml, \\[extensions\\]: there is no student 'Ana Berg'; there is Anna Berg",
        "- overrides.csv: there is no student 'bert'; there is Bert",
    ]
    assert "\n".join(said) in capsys.readouterr().out


def test_one_student_alone_a_lock_and_pseudonyms(course, capsys):
    grading = course / "grading"
    (grading / "settings.toml").write_text("anonymous = true\n")
    hand_in(course, "anna", solved())
    hand_in(course, "bert", edited(lambda notebook: notebook.cells.remove(cell(notebook, AUTOMATIC[0]))))
    grade(course, only="anna")
    assert rows(course).keys() == {"anna"}
    grade(course)
    assert rows(course).keys() == {"anna", "bert"}
    said = (grading / NAME / "summary.md").read_text()
    assert "bert" not in said and "participant\\-" in said
    assert sorted(path.name[:12] for path in (grading / "autograded").iterdir()) == ["participant-"] * 2
    with pytest.raises(SettingsError, match="must be one who has handed in: anna, bert"):
        grade(course, only="carl")
    with classroom.locked(grading), pytest.raises(SettingsError, match="another run"):
        grade(course)


def test_grades_are_there_before_all_are_marked(course, monkeypatch):
    monkeypatch.setattr(classroom, "OFTEN", 0.0)
    for name in ("anna", "bert", "carl"):
        hand_in(course, name, solved())
    seen = []
    marks = classroom.mark

    def looking(*words, **named):
        path = course / "grading" / NAME / "grades.csv"
        seen.append(len(path.read_text().splitlines()) - 1 if path.exists() else 0)
        return marks(*words, **named)

    monkeypatch.setattr(classroom, "mark", looking)
    grade(course)
    assert seen == [0, 0, 1, 2], "the first are the course's own answers"


@pytest.mark.parametrize(
    "folder, name",
    [
        ("Zoë", "Zoë"),
        ("Zoe\u0308", "Zoë"),
        ("王小明", "王小明"),
        ("می\u200cنویسم", "می\u200cنویسم"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("a\u202eb", "a\\u202eb"),
        (os.fsdecode(b"\xff"), "\\xff"),
        ("\\xff", "\\\\xff"),
    ],
)
def test_a_name_in_any_script_plays_no_tricks(folder, name):
    assert student(folder) == name


def test_a_long_name_has_a_file():
    name = student(os.fsdecode(b"\xff" * 64))
    assert len(name) == 256 and len(file_name(name).encode()) < 120
    assert file_name("Zoë Łukasz 王小明") == "Zoë Łukasz 王小明" and file_name("..") != ".."
    assert file_name("a/b") != file_name("a\\b")


def test_a_change_in_the_course_or_in_torch_makes_results_old(tmp_path, monkeypatch):
    for name in ("topics/attention/probes.py", "workshop/grading/course/marking.py", "topics/bigrams/names.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(classroom, "COMPANION", tmp_path)
    known = set()

    def many():
        known.add(classroom.fingerprint(small_handout(), [1], Limits(), unsafe=False))
        return len(known)

    assert many() == many() == 1
    (tmp_path / "topics/attention/probes.py").write_text("x = 2\n")
    assert many() == 2
    (tmp_path / "topics/bigrams/names.csv").rename(tmp_path / "topics/bigrams/other.csv")
    assert many() == 3
    monkeypatch.setattr(classroom.torch, "__version__", "0.0")
    assert many() == 4
    (tmp_path / "topics/notes.md").write_text("prose")
    assert many() == 4


@pytest.mark.parametrize(
    "text",
    [
        r"\[x](http://evil.example)",
        r"\\[x](http://evil.example) ![y](http://evil.example)",
        "<http://evil.example> http://evil.example www.evil.example a@evil.example",
        "[x][r]\n\n[r]: http://evil.example",
        "<a href='http://evil.example'>x</a> `<b>`",
        "| a | b |\n|---|---|\n# head",
    ],
)
def test_what_a_learner_says_is_no_markup_in_the_summary(text):
    from mistune import create_markdown

    shown = create_markdown(escape=False, plugins=["url", "table", "strikethrough"])(markdown(text))
    assert re.findall(r"<\w+", shown) == ["<p"], shown
    assert html.unescape(shown).strip() == f"<p>{' '.join(text.split())}</p>"


def test_the_second_notebook_takes_nothing_from_the_lesson(course):
    at(hand_in(course, "anna", solved(), f"{NAME}/mine.ipynb"), "2026-11-01T12:00:00+00:00")
    hand_in(course, "anna", further(), f"{NAME}/{NAME}-further.ipynb")
    at(hand_in(course, "bert", solved()), "2026-11-01T12:00:00+00:00")
    grade(course)
    assert [row["points"] for row in rows(course).values()] == ["6", "6"]
    at(hand_in(course, "bert", further()), "2026-11-02T12:00:00+00:00")
    grade(course)
    assert rows(course)["bert"]["points"] == "6", "what was handed in before still counts"
