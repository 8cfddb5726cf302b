"""What was handed in is kept in the order in which it came, and the right version of each student's counts."""

import unicodedata
from datetime import UTC, datetime

import nbformat
import pytest
from workshop.grading.answers import RIGHT
from workshop.grading.handing_in import (
    DUE,
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
    version,
)
from workshop.grading.reading import small_handout
from workshop.grading.small_lesson import NAME, cell, hand_in, page, stub

from companion.workshop.grading.course import handins
from companion.workshop.grading.course.names import file_name
from companion.workshop.grading.course.stamps import parse_time


def test_another_file_is_later_whatever_it_says(course):
    (course / "grading" / "settings.toml").write_text(DUE)
    version(course, FIRST, "2026-11-19T12:00:00Z")
    assert version(course, SOLVED, "2026-11-10T12:00:00Z")["points"] == "6"
    row = rows(course)["anna"]
    assert row["handed_in"] == "2026-11-19 12:00:00Z"
    assert "its file says 10 November 2026, 12:00 UTC, which is before the version that came first" in said(course)[1]
    assert version(course, FIRST, "2026-11-19T12:00:00Z")["points"] == "1", "the first once more"
    assert "3 versions" not in row["needs_a_person"]
    assert "2 versions were handed in" in page(course, "anna")


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
        "a later version cannot be read (it is no notebook: it breaks off (line 1)), so that of 18 November 2026, "
        "12:00 UTC counts",
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
    assert said(course) == ("6", BEST.format(18))
    version(course, SOLVED, "2026-11-22T12:00:00Z", "bert")
    version(course, SOLVED + b" ", "2026-11-30T12:00:00Z", "bert")
    assert said(course, "bert") == ("4.8", BEST.format(22))
    version(course, SOLVED, "2026-11-18T12:00:00Z", "carl")
    version(course, SOLVED + b" ", "2026-11-19T12:00:00Z", "carl")
    assert "of 19 November" in said(course, "carl")[1], "the later of equals"
    assert said(course, "anna")[0] == "6"
    version(course, b"{", "2026-11-18T12:00:00Z", "dora")
    version(course, SOLVED, "2026-11-21T13:00:00Z", "dora")
    assert said(course, "dora")[0] == "4.8", "the one in time cannot be read"


def test_a_run_that_is_ended_before_it_writes_the_log_changes_no_order(course, monkeypatch):
    version(course, FIRST, "2026-11-19T12:00:00Z")
    log = course / "grading/kept/anna" / f"{NAME}.json"
    before = log.read_text()
    version(course, SOLVED, "2026-11-19T12:00:00Z")
    log.write_text(before)
    assert said(course) == ("6", "")
    assert [one.path.read_bytes() for one in kept(course)] == [SOLVED, FIRST]


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
