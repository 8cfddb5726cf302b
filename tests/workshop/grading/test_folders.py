"""Every file in a student's folder is answered for: which notebook is the hand-in, and what is said of the rest."""

import json
import os

import pytest
from workshop.grading.answers import RIGHT
from workshop.grading.handing_in import (
    FIRST,
    OWN,
    SOLVED,
    UNTOUCHED,
    WRITTEN,
    further,
    grade,
    kept,
    put,
    rows,
    said,
)
from workshop.grading.small_lesson import NAME, hand_in, handed_in

from companion.workshop.grading.course import classroom, folders
from companion.workshop.grading.notebook.files import HELP, HELPERS

COPIES = ["{} (1)", "{}-Copy1", "Copy of {}", "{} - Kopie", "{}_final", "my solution", "Kopie von {}"]


@pytest.mark.parametrize("copy", COPIES)
def test_of_an_untouched_notebook_and_a_solved_copy_the_copy_is_marked_and_both_are_named(course, copy):
    copy = copy.format(NAME) + ".ipynb"
    put(course, "anna", {f"{NAME}/{OWN}": UNTOUCHED, f"{NAME}/{copy}": SOLVED})
    why = f"{copy} is marked, because {OWN} holds no answers that can be read: keep one of them"
    assert said(course) == ("6", why)


NONE, ALSO, ONE = "which holds no answers that can be read", "which holds answers, too", "keep one of them"
TURNED = f"b.ipynb is marked, because {OWN} holds no answers that can be read: {ONE}"
MERGED = SOLVED.replace(b'"cells"', b'\n<<<<<<< HEAD\n"cells"\n=======\n"cells"\n>>>>>>> theirs\n', 1)
WORDS = json.dumps(handed_in(RIGHT, "<<<<<<< HEAD\n>>>>>>> ")).encode()
FOLDERS = {  # the files, the points, what is said
    "alone": ({OWN: SOLVED}, "6", ""),
    "alone under another name": ({"mine.ipynb": SOLVED}, "6", ""),
    "twice the same": ({OWN: SOLVED, f"{NAME} (1).ipynb": SOLVED}, "6", ""),
    "an untouched copy": (
        {OWN: SOLVED, f"{NAME} (1).ipynb": UNTOUCHED},
        "6",
        f"{OWN} is marked, and {NAME} (1).ipynb is not, {NONE}",
    ),
    "both with answers": ({OWN: FIRST, "b.ipynb": SOLVED}, "1", f"{OWN} is marked, and b.ipynb is not, {ALSO}: {ONE}"),
    "a written answer alone": ({OWN: UNTOUCHED, "b.ipynb": WRITTEN}, "0", TURNED),
    "one of two without the name": (
        {"a.ipynb": UNTOUCHED, "b.ipynb": SOLVED},
        "6",
        f"b.ipynb is marked, and a.ipynb is not, {NONE}",
    ),
    "damaged beside a solved copy": ({OWN: SOLVED[:900], "b.ipynb": SOLVED}, "6", TURNED),
    "both untouched": (
        {OWN: UNTOUCHED, "b.ipynb": UNTOUCHED + b" "},
        "0",
        f"{OWN} is marked, and b.ipynb is not, {NONE}",
    ),
    "the further one beside it": ({OWN: SOLVED, f"{NAME}-further.ipynb": further()}, "6", ""),
    "a checkpoint beside it": ({OWN: SOLVED, f".ipynb_checkpoints/{NAME}-checkpoint.ipynb": FIRST}, "6", ""),
    "a zip beside it": ({OWN: SOLVED, "all.zip": b"PK"}, "6", "not read: all.zip"),
    "capitals": ({f"{NAME}.IPYNB": SOLVED}, "6", ""),
    "UTF-16": ({OWN: SOLVED.decode().encode("utf-16")}, "6", ""),
    "UTF-16, the other way": ({OWN: b"\xfe\xff" + SOLVED.decode().encode("utf-16-be")}, "6", ""),
    "the words of a conflict in an answer": ({OWN: WORDS}, "6", ""),
}
FURTHER = f"it is {NAME}-further.ipynb, in which nothing earns points: hand in {OWN}"
UNREAD = {  # the files, why they cannot be read
    "two without the name": (
        {"a.ipynb": FIRST, "b.ipynb": SOLVED},
        f"there are 2 notebooks, none named {OWN}, and 2 of them hold answers (a.ipynb and b.ipynb): {ONE}",
    ),
    "two untouched without the name": (
        {"a.ipynb": UNTOUCHED, "b.ipynb": UNTOUCHED + b" "},
        f"there are 2 notebooks, none named {OWN} (a.ipynb and b.ipynb): {ONE}",
    ),
    "untouched beside two with answers": (
        {OWN: UNTOUCHED, "a.ipynb": FIRST, "b.ipynb": SOLVED},
        f"there are 3 notebooks, and 2 of them hold answers ({OWN}, a.ipynb and b.ipynb): {ONE}",
    ),
    "UTF-16, the further one": ({OWN: further().decode().encode("utf-16")}, FURTHER),
    "the further one": ({f"{NAME}-further.ipynb": further()}, FURTHER),
    "the further one in its place": ({OWN: further()}, FURTHER),
    "the further one under another name": ({"mine.ipynb": further()}, FURTHER),
    "a merge conflict": ({OWN: MERGED}, "it is no notebook: git has left a merge conflict in it (line 2)"),
    "nothing": ({"desktop.ini": b"", "figure.png": b""}, "there is no notebook"),
    "a zip": (
        {"submission.zip": b"PK"},
        f"there is submission.zip, no notebook (.ipynb): nothing is unpacked, hand in {OWN} itself",
    ),
    "a notebook that ends in .txt": (
        {f"{OWN}.txt": SOLVED},
        f"there is {OWN}.txt, no notebook (.ipynb): if {OWN}.txt is the notebook, rename it to {OWN}",
    ),
    "an export": (
        {f"{NAME}.html": b"", f"{NAME}.py": b""},
        f"there is {NAME}.html and {NAME}.py, no notebook (.ipynb): hand in {OWN} itself",
    ),
}
FOLDERS |= {name: (files, "0", f"cannot be read: {why}") for name, (files, why) in UNREAD.items()}


@pytest.mark.parametrize("name", FOLDERS)
def test_of_what_lies_in_the_lessons_folder(course, name):
    files, points, reasons = FOLDERS[name]
    put(course, "anna", {f"{NAME}/{file}": data for file, data in files.items()})
    assert said(course) == (points, reasons)


@pytest.mark.parametrize(
    "place",
    [
        f"{NAME}/{NAME}/{OWN}",
        f"{NAME}/submission/my work/{OWN}",
        f"{NAME.upper()}/{OWN}",
        f"{NAME.replace('-', ' ').title()}/mine.ipynb",
        f"{NAME} (1)/{OWN}",
        f"05/{OWN}",
        "5/mine.ipynb",
        f"small/{OWN}",
        f"homework/{OWN}",
        OWN,
        f"{NAME} (1).ipynb",
        f"{NAME}.IPYNB",
    ],
)
def test_a_notebook_that_lies_elsewhere_is_read_and_it_is_said_where(course, place):
    put(course, "anna", {place: SOLVED})
    assert said(course) == ("6", f"{place} was read; it belongs in {NAME}/{OWN}")


def test_an_untouched_notebook_in_its_place_and_a_solved_one_elsewhere(course):
    put(course, "anna", {f"{NAME}/{OWN}": UNTOUCHED, OWN: SOLVED})
    points, reasons = said(course)
    assert points == "6" and f"{OWN} was read; it belongs in {NAME}/{OWN}" in reasons and "keep one" in reasons
    put(course, "bert", {f"{NAME}/{OWN}": SOLVED, OWN: FIRST, f"05/{OWN}": UNTOUCHED})
    assert said(course, "bert")[0] == "6"
    put(course, "carl", {OWN: SOLVED, f"05/{OWN}": FIRST})
    assert "there are 2 notebooks" in said(course, "carl")[1]


@pytest.mark.parametrize(
    "files, names",
    [
        (["submission.zip"], "submission.zip"),
        ([f"{NAME}.html", "notes.pdf"], f"{NAME}.html and notes.pdf"),
        ([f"{OWN}.txt"], f"{OWN}.txt"),
        (["homework/all.docx"], "homework/"),
        (["mine.ipynb"], "mine.ipynb"),
        ([NAME], NAME),
        ([f"{number}.zip" for number in "abcdefgh"], "a.zip, b.zip, c.zip, d.zip, e.zip and 3 more"),
    ],
)
def test_what_may_be_meant_as_a_hand_in_has_its_line(course, files, names):
    put(course, "anna", dict.fromkeys(files, b"x"))
    points, reasons = said(course)
    assert points == "0" and reasons.startswith(f"cannot be read: there is {names}, no notebook")


def test_what_is_another_lessons_or_nobodys_has_none(course):
    (course / "solutions" / "07-other").mkdir()
    others = ["07-other/mine.ipynb", "07.zip", "06-facts/x.ipynb", "07-other.ipynb", ".git/x.zip", "timestamp.txt"]
    put(course, "anna", dict.fromkeys(others, b"x"))
    (course / "grading" / "submitted" / "notes").write_text("")
    grade(course)
    assert rows(course) == {}


def test_a_file_in_no_students_folder_has_its_line(course):
    (course / "grading" / "submitted" / OWN).write_bytes(SOLVED)
    assert said(course, OWN) == ("0", f"cannot be read: it is in no student's folder; it must be in STUDENT/{NAME}/")


def test_a_notebook_too_large_is_refused_and_never_cut(course):
    path = hand_in(course, "anna", SOLVED)
    os.truncate(path, 25 << 20)
    assert said(course) == (
        "0",
        "cannot be read: the notebook has 25 MiB; at most 20 are read: hand it in without its outputs",
    )
    assert not (course / "grading" / "kept").exists()


def test_of_many_notebooks_the_likeliest_are_looked_at(course):
    many = {f"{NAME}/{number}.ipynb": UNTOUCHED + b" " * number for number in range(folders.SEVERAL)}
    put(course, "anna", {f"{NAME}/{OWN}": SOLVED} | many)
    points, reasons = said(course)
    assert points == "6" and f"not looked at: {folders.SEVERAL - 1}.ipynb" in reasons


# -- the files beside it


def test_files_of_python_beside_the_notebook_belong_to_it(course, monkeypatch):
    put(course, "anna", {f"{NAME}/{OWN}": SOLVED, f"{NAME}/helpers.py": b"x = '\xc3\xa9'\n", f"{NAME}/b.py": b""})
    read, parsed = [], classroom.parsed
    monkeypatch.setattr(classroom, "parsed", lambda *given: read.append(given[2:]) or parsed(*given))
    assert said(course) == ("6", "")
    assert ({"helpers.py": "x = 'é'\n", "b.py": ""},) in read
    [hand_in] = kept(course)
    assert hand_in.helpers() == {"helpers.py": "x = 'é'\n", "b.py": ""}
    put(course, "anna", {f"{NAME}/helpers.py": b"x = 2\n"})
    assert [one.helpers()["helpers.py"] for one in kept(course)] == ["x = 2\n", "x = 'é'\n"]


@pytest.mark.parametrize(
    "files, names",
    [
        ({"my helpers.py": b""}, "my helpers.py"),
        ({"class.py": b"", "b-2.py": b""}, "b-2.py and class.py"),
        ({"latin.py": b"x = '\xe9'"}, "latin.py"),
        ({"a.py": b"x" * HELP, "b.py": b"y"}, "b.py"),
        ({"large.py": b"x" * (HELP + 1)}, "large.py"),
        ({f"m{number}.py": b"" for number in range(HELPERS + 1)}, f"m{HELPERS}.py"),
    ],
)
def test_of_other_files_of_python_it_is_said_that_they_are_not_read(course, files, names):
    put(course, "anna", {f"{NAME}/{OWN}": SOLVED} | {f"{NAME}/{name}": data for name, data in files.items()})
    points, reasons = said(course)
    assert points == "6" and reasons.startswith(f"not read beside the notebook: {names} (")


def test_a_linked_file_of_python_is_not_followed(course, tmp_path):
    (tmp_path / "secret.py").write_text("secret = 1")
    put(course, "anna", {f"{NAME}/{OWN}": SOLVED})
    (course / "grading/submitted/anna" / NAME / "helpers.py").symlink_to(tmp_path / "secret.py")
    assert "helpers.py" in said(course)[1] and kept(course)[0].helpers() == {}
