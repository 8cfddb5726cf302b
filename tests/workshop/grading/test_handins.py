"""Every file that came in is answered for: which notebook of a student's folder counts, when, and what of the rest."""

import html
import json
import os
import unicodedata
from datetime import UTC, datetime

import nbformat
import pytest
from workshop.grading.reading import small_handout
from workshop.grading.sharing import here, unless_stubs
from workshop.grading.small_lesson import NAME, RIGHT, cell, checkout, hand_in, handed_in, solved, stub
from workshop.grading.test_classroom import at, further, grade, rows

from companion.workshop.grading.course import classroom, folders, handins
from companion.workshop.grading.course.names import file_name
from companion.workshop.grading.course.settings import SettingsError, read_settings
from companion.workshop.grading.course.stamps import parse_time
from companion.workshop.grading.notebook.files import HELP, HELPERS

OWN = f"{NAME}.ipynb"
DUE = f'[deadlines]\n"{NAME}" = 2026-11-20T12:00:00Z\n[late]\nper_day = 0.1\n'
SOLVED, UNTOUCHED, FIRST, WRITTEN = (
    json.dumps(notebook).encode()
    for notebook in (
        solved(),
        handed_in({}),
        handed_in({"triplet-tokens": RIGHT["triplet-tokens"]}),
        handed_in({}, "There is none."),
    )
)
MARKED = "to be marked: open-question"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout; everything that is handed in as anything but a stub is right."""
    monkeypatch.setattr(classroom, "mark", unless_stubs)
    monkeypatch.setattr(classroom, "alone", here)
    return checkout(tmp_path)


def put(course, name, files):
    """Files by their place in a student's folder."""
    for file, data in files.items():
        path = course / "grading" / "submitted" / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def said(course, name="anna"):
    """A student's points and what else the table says, once it was graded twice alike; the page says that, too."""
    grade(course)
    first, files = rows(course), sorted((course / "grading" / "kept").rglob("*"))
    grade(course)
    assert rows(course) == first and sorted((course / "grading" / "kept").rglob("*")) == files
    row = first[name]
    page = (course / "grading/feedback" / file_name(name) / f"{NAME}.html").read_text(encoding="utf-8")
    page = html.unescape(page)
    reasons = [reason for reason in row["needs_a_person"].split("; ") if reason not in ("", MARKED)]
    for reason in reasons:
        assert reason.removeprefix("cannot be read: ") in page, page
    return row["points"], "; ".join(reasons)


COPIES = ["{} (1)", "{}-Copy1", "Copy of {}", "{} - Kopie", "{}_final", "my solution", "Kopie von {}"]


@pytest.mark.parametrize("copy", COPIES)
def test_of_an_untouched_notebook_and_a_solved_copy_the_copy_is_marked_and_both_are_named(course, copy):
    copy = copy.format(NAME) + ".ipynb"
    put(course, "anna", {f"{NAME}/{OWN}": UNTOUCHED, f"{NAME}/{copy}": SOLVED})
    why = f"{copy} is marked, because {OWN} holds no answers that can be read: keep one of them"
    assert said(course) == ("6", why)


FOLDERS = {
    "alone": ({OWN: SOLVED}, "6", ""),
    "alone under another name": ({"mine.ipynb": SOLVED}, "6", ""),
    "twice the same": ({OWN: SOLVED, f"{NAME} (1).ipynb": SOLVED}, "6", ""),
    "an untouched copy": (
        {OWN: SOLVED, f"{NAME} (1).ipynb": UNTOUCHED},
        "6",
        f"{OWN} is marked, and {NAME} (1).ipynb is not, which holds no answers that can be read",
    ),
    "both with answers": (
        {OWN: FIRST, "b.ipynb": SOLVED},
        "1",
        f"{OWN} is marked, and b.ipynb is not, which holds answers, too: keep one of them",
    ),
    "a written answer alone": (
        {OWN: UNTOUCHED, "b.ipynb": WRITTEN},
        "0",
        f"b.ipynb is marked, because {OWN} holds no answers that can be read: keep one of them",
    ),
    "one of two without the name": (
        {"a.ipynb": UNTOUCHED, "b.ipynb": SOLVED},
        "6",
        "b.ipynb is marked, and a.ipynb is not, which holds no answers that can be read",
    ),
    "two without the name": (
        {"a.ipynb": FIRST, "b.ipynb": SOLVED},
        "0",
        f"cannot be read: there are 2 notebooks, none named {OWN}, and 2 of them hold answers (a.ipynb and b.ipynb): "
        "keep one of them",
    ),
    "two untouched without the name": (
        {"a.ipynb": UNTOUCHED, "b.ipynb": UNTOUCHED + b" "},
        "0",
        f"cannot be read: there are 2 notebooks, none named {OWN} (a.ipynb and b.ipynb): keep one of them",
    ),
    "untouched beside two with answers": (
        {OWN: UNTOUCHED, "a.ipynb": FIRST, "b.ipynb": SOLVED},
        "0",
        f"cannot be read: there are 3 notebooks, and 2 of them hold answers ({OWN}, a.ipynb and b.ipynb): "
        "keep one of them",
    ),
    "damaged beside a solved copy": (
        {OWN: SOLVED[:900], "b.ipynb": SOLVED},
        "6",
        f"b.ipynb is marked, because {OWN} holds no answers that can be read: keep one of them",
    ),
    "both untouched": (
        {OWN: UNTOUCHED, "b.ipynb": UNTOUCHED + b" "},
        "0",
        f"{OWN} is marked, and b.ipynb is not, which holds no answers that can be read",
    ),
    "the further one beside it": ({OWN: SOLVED, f"{NAME}-further.ipynb": further()}, "6", ""),
    "a checkpoint beside it": ({OWN: SOLVED, f".ipynb_checkpoints/{NAME}-checkpoint.ipynb": FIRST}, "6", ""),
    "a zip beside it": ({OWN: SOLVED, "all.zip": b"PK"}, "6", "not read: all.zip"),
    "capitals": ({f"{NAME}.IPYNB": SOLVED}, "6", ""),
    "UTF-16": ({OWN: SOLVED.decode().encode("utf-16")}, "6", ""),
    "UTF-16, the other way": ({OWN: b"\xfe\xff" + SOLVED.decode().encode("utf-16-be")}, "6", ""),
    "UTF-16, the further one": (
        {OWN: further().decode().encode("utf-16")},
        "0",
        f"cannot be read: it is {NAME}-further.ipynb, in which nothing earns points: hand in {OWN}",
    ),
    "a merge conflict": (
        {OWN: SOLVED.replace(b'"cells"', b'\n<<<<<<< HEAD\n"cells"\n=======\n"cells"\n>>>>>>> theirs\n', 1)},
        "0",
        "cannot be read: it holds the marks of a merge conflict (<<<<<<<): settle it, and hand in what opens again",
    ),
    "the words of a conflict in an answer": (
        {OWN: json.dumps(handed_in(RIGHT, "<<<<<<< HEAD\n>>>>>>> ")).encode()},
        "6",
        "",
    ),
    "nothing": ({"desktop.ini": b"", "figure.png": b""}, "0", "cannot be read: there is no notebook"),
    "a zip": (
        {"submission.zip": b"PK"},
        "0",
        f"cannot be read: there is submission.zip, no notebook (.ipynb): nothing is unpacked, hand in {OWN} itself",
    ),
    "a notebook that ends in .txt": (
        {f"{OWN}.txt": SOLVED},
        "0",
        f"cannot be read: there is {OWN}.txt, no notebook (.ipynb): if {OWN}.txt is the notebook, rename it to {OWN}",
    ),
    "an export": (
        {f"{NAME}.html": b"", f"{NAME}.py": b""},
        "0",
        f"cannot be read: there is {NAME}.html and {NAME}.py, no notebook (.ipynb): hand in {OWN} itself",
    ),
}


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
    assert said(course, OWN) == ("0", f"cannot be read: it lies in no student's folder, which would be STUDENT/{NAME}/")


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


def kept(course, name="anna"):
    """What counts, as it is handed on to marking."""
    settings = read_settings(course / "grading" / "settings.toml")
    return handins.collect(course / "grading", NAME, settings, 20 << 20)[name]


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


# -- when


def version(course, data, when, name="anna"):
    """Hand in once more, over what is there, and grade."""
    path = course / "grading" / "submitted" / name / NAME / OWN
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    at(path, when)
    grade(course)
    return rows(course)[name]


def test_another_file_is_later_whatever_it_says(course):
    (course / "grading" / "settings.toml").write_text(DUE)
    version(course, FIRST, "2026-11-19T12:00:00Z")
    assert version(course, SOLVED, "2026-11-10T12:00:00Z")["points"] == "6"
    row = rows(course)["anna"]
    assert row["handed_in"] == "2026-11-19 12:00:00Z"
    assert "its file says 10 November 2026, 12:00 UTC, and an earlier version was seen after that" in said(course)[1]
    assert version(course, FIRST, "2026-11-19T12:00:00Z")["points"] == "1", "the first once more"
    assert "3 versions" not in row["needs_a_person"]
    assert "2 versions were handed in" in (course / f"grading/feedback/anna/{NAME}.html").read_text()


def test_a_file_from_the_future_holds_up_nobody(course):
    (course / "grading" / "settings.toml").write_text(DUE)
    version(course, FIRST, "2190-11-19T12:00:00Z")
    row = version(course, SOLVED, "2026-11-10T12:00:00Z")
    assert row["handed_in"] < "2190"


def test_what_was_kept_before_there_was_a_log_stays_as_it_is(course):
    """Its order is that of its times; the file that lies in the folder is one of them, and not a new one."""
    for data, when in ((FIRST, "2026-11-18T12:00:00Z"), (SOLVED, "2026-11-19T12:00:00Z")):
        version(course, data, when)
    folder = course / "grading/kept/anna"
    names = sorted(path.name for path in (folder / NAME).iterdir())
    for data, when in ((SOLVED, "2026-11-19T12:00:00Z"), (FIRST, "2026-11-18T12:00:00Z")):
        for log in ("", "["):
            (folder / f"{NAME}.json").unlink()
            if log:
                (folder / f"{NAME}.json").write_text(log)
            version(course, data, when)
            assert said(course) == ("6", "")
            assert sorted(path.name for path in (folder / NAME).iterdir()) == names


def test_a_later_version_that_cannot_be_read_takes_nothing_away(course):
    (course / "grading" / "settings.toml").write_text(DUE)
    version(course, SOLVED, "2026-11-18T12:00:00Z")
    version(course, b"{", "2026-11-19T12:00:00Z")
    assert said(course) == (
        "6",
        "a later version cannot be read (it is no notebook (of format 4)), so that of 18 November 2026, 12:00 UTC "
        "counts",
    )
    (course / "grading/submitted/anna" / NAME / OWN).unlink()
    put(course, "anna", {f"{NAME}/all.zip": b""})
    assert "what was handed in after it cannot be read: there is all.zip" in kept(course)[0].remarks[0]


BEST = "of 2 versions that were marked the best counts, which is of {} November 2026, 12:00 UTC"


def test_the_last_counts_or_the_best_as_the_settings_say(course):
    grading = course / "grading"
    (grading / "settings.toml").write_text(DUE)
    for data, when in ((SOLVED, "2026-11-18T12:00:00Z"), (FIRST, "2026-11-19T12:00:00Z"), (b"{", "2026-11-25T12:00Z")):
        version(course, data, when)
    assert rows(course)["anna"]["points"] == "1"
    (grading / "settings.toml").write_text('counts = "best"\n' + DUE)
    assert said(course) == (
        "6",
        BEST.format(18),
    )
    version(course, SOLVED, "2026-11-22T12:00:00Z", "bert")
    version(course, SOLVED + b" ", "2026-11-30T12:00:00Z", "bert")
    assert said(course, "bert") == (
        "4.8",
        BEST.format(22),
    )
    version(course, SOLVED, "2026-11-18T12:00:00Z", "carl")
    version(course, SOLVED + b" ", "2026-11-19T12:00:00Z", "carl")
    assert "of 19 November" in said(course, "carl")[1], "the later of equals"
    assert said(course, "anna")[0] == "6"


def shown(course):
    """What the form grader shows of anna's second answer."""
    return cell(nbformat.read(course / "grading/autograded/anna" / NAME / OWN, 4), "newton-step").source


def test_the_form_grader_shows_the_version_that_counts(course):
    settings = course / "grading" / "settings.toml"
    for data, when in ((SOLVED, "2026-11-18T12:00:00Z"), (FIRST, "2026-11-19T12:00:00Z")):
        version(course, data, when)
    for counts, source in (("last", stub("newton-step")), ("best", RIGHT["newton-step"])) * 2:
        settings.write_text(f'counts = "{counts}"\n')
        grade(course)
        assert shown(course) == source


@pytest.mark.parametrize("text", ['counts = "first"', "counts = 1", 'timestamps = "yes"', "timestamps = 1"])
def test_a_setting_of_what_counts_that_is_none_is_named(tmp_path, text):
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"settings.toml: (counts|timestamps) = .* must be"):
        read_settings(tmp_path / "settings.toml")


@pytest.mark.parametrize(
    "text, hour",
    [
        ("2026-11-20 10:00:00.000000 UTC", 10),
        ("2026-11-20 10:00:00.000000 CET", 9),
        ("2026-11-20 10:00:00 Europe/Berlin", 9),
        ("2026-11-20 10:00:00 +0100", 9),
        ("2026-11-20 10:00:00+01:00", 9),
        ("2026-11-20T10:00:00Z", 10),
        ("2026-11-20 10:00:00", 10),
        ("2026-11-20 10:00:00 EST", 15),
        ("2026-11-20 10:00:00 PST", 18),
        ("2026-11-20 10:00:00 America/Argentina/Buenos_Aires", 13),
        ("2026-11-20 10:00:00 CEST", 8),
    ],
)
def test_the_zones_of_a_timestamp(text, hour):
    assert parse_time(text).astimezone(UTC) == datetime(2026, 11, 20, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "",
        "2026-11-20 10:00 ../../etc/passwd",
        "2026-11-20 10:00:00 /etc/localtime",
        "2026-11-20 10:00:00 Mars",
        "2026-13-20 10:00:00 UTC",
        "0001-01-01 00:00:00 +1400",
        "9999-12-31 23:59:59 -1200",
    ],
)
def test_a_timestamp_that_cannot_be_read(text):
    assert parse_time(text) is None


STATED = "2026-11-19 10:00:00.000000 CET"


def test_a_students_timestamp_is_believed_only_where_the_settings_say_so(course):
    settings = course / "grading" / "settings.toml"
    settings.write_text(DUE)
    put(course, "anna", {f"{NAME}/timestamp.txt": STATED.encode()})
    row = version(course, SOLVED, "2026-11-21T13:00:00Z")
    assert (row["points"], row["days_late"]) == ("4.8", "2")
    assert "timestamp.txt says 19 November 2026, 09:00 UTC, which is not believed" in said(course)[1]
    settings.write_text("timestamps = true\n" + DUE)
    assert said(course) == ("6", "")
    assert rows(course)["anna"]["handed_in"] == "2026-11-19 09:00:00Z"
    put(course, "anna", {f"{NAME}/timestamp.txt": b"yesterday \x1b[31m"})
    points, reasons = said(course)
    assert points == "4.8" and reasons.startswith("timestamp.txt cannot be read ('yesterday")
    settings.write_text(DUE)
    assert said(course) == ("4.8", "")


# -- names


def test_two_names_that_would_share_a_folder_are_kept_apart(course):
    twin = file_name("..anna")
    assert twin.startswith("anna-")
    hand_in(course, "..anna", SOLVED)
    hand_in(course, twin, FIRST)
    for _ in range(3):
        grade(course)
        assert {name: row["points"] for name, row in rows(course).items()} == {"..anna": "6", twin: "1"}
    pages = sorted((course / "grading/feedback").rglob("*.html"))
    assert len(pages) == 2 and len({path.read_text() for path in pages}) == 2
    assert len(list((course / "grading/autograded").iterdir())) == 2
    hand_in(course, "bert", SOLVED)
    grade(course)
    assert len(rows(course)) == 3


def test_one_name_in_two_spellings_is_one_student_and_grows_no_log(course):
    for form, data in (("NFC", FIRST), ("NFD", SOLVED)):
        hand_in(course, unicodedata.normalize(form, "Zoë"), data)
    grade(course)
    if len(list((course / "grading/submitted").iterdir())) == 2:
        assert said(course, "Zoë")[0] in ("1", "6") and len(kept(course, "Zoë")) == 2


def test_whether_a_notebook_holds_answers():
    handout = small_handout()
    assert [handins.answered(data, handout) for data in (SOLVED, FIRST, WRITTEN)] == [True] * 3
    assert [handins.answered(data, handout) for data in (UNTOUCHED, b"{", further())] == [False] * 3
