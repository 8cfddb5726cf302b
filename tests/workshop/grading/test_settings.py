"""What an instructor writes, in whatever program: it is read, or a sentence names the file, the key and the value."""

import codecs

import pytest
from workshop.grading.reading import small_handout
from workshop.grading.small_lesson import NAME

from companion.core.files import FileError
from companion.workshop.grading.course.settings import Settings, SettingsError, odd_encoding, read_settings
from companion.workshop.grading.course.tables import Override, read_overrides, read_roster
from companion.workshop.grading.course.unmatched import unmatched

OTHER = "06-other"
DATE = "2026-11-30T12:00:00Z"


@pytest.mark.parametrize(
    "text, message",
    [
        ("deadlines = 3", r"deadlines = 3; must be a table: \[deadlines\]"),
        ("deadlines = []", r"deadlines = \[\]; must be a table"),
        ("extensions = 3", "extensions = 3; must be a table"),
        ("late = 3", "late = 3; must be a table"),
        ("assignments = 'x'", "assignments = 'x'; must be a table"),
        (f"[extensions]\nanna = {DATE}", r'extensions\."anna" = 2026-.*; must be a table: \[extensions\."anna"\]'),
        ('[deadlines]\n"05" = 2026-11-30T12:00:00', "the deadline of 05 = 2026-.*; must be .* with its zone"),
        ('[deadlines]\n"05" = 2026-11-30', "the deadline of 05 = 2026-11-30; must be .* with its zone"),
        ('[deadlines]\n"05" = "soon"', "the deadline of 05 = 'soon'; must be .* with its zone"),
        ('[deadlines]\n"05" = 0001-01-01T00:00:00+14:00', "in the years 1971 to 2199"),
        ('[extensions.anna]\n"05" = 12:00:00', "the extension of anna for 05 = 12:00:00; must be"),
        ("[assignments]\n05 = 4711", "the assignment of 05 = 4711; must be a text in quotes"),
        ("[late]\nper_day = 7", "per_day = 7; must be a number from 0 to 1"),
        ("[late]\nper_day = true", "per_day = True; must be a number"),
        ("[late]\nat_most = -0.1", "at_most = -0.1; must be a number from 0 to 1"),
        ("[late]\ngrace_minutes = '15'", "grace_minutes = '15'; must be a number from 0 to"),
        ("[late]\ngrace_minutes = nan", "grace_minutes = nan; must be a number from 0 to"),
        ("[late]\ngrace_minutes = inf", "grace_minutes = inf; must be a number from 0 to"),
        ("[late]\ngrace_minutes = -1", "grace_minutes = -1; must be a number from 0 to"),
        ("anonymous = 'false'", "anonymous = 'false'; must be true or false"),
        ("counts = 'first'", "counts = 'first'; must be 'last' or 'best'"),
        ("counts = 1", "counts = 1; must be 'last' or 'best'"),
        ("timestamps = 'yes'", "timestamps = 'yes'; must be true or false"),
        ("timestamps = 1", "timestamps = 1; must be true or false"),
        ("[later]\nx = 1", "unknown key 'later'; must be one of anonymous, assignments, .*deadlines, "),
        ("grace_minutes = 15", r"unknown key 'grace_minutes' \(it belongs below the line \[late\]\)"),
        ("[late]\nper_week = 1", r"unknown key in \[late\] 'per_week'; must be one of at_most, grace_minutes, per_day"),
        ("[", "Invalid"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value_and_what_is_allowed(tmp_path, text, message):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=f"^settings.toml: .*{message}"):
        read_settings(path)


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "cp1252"]
READ_AS = {"utf-16": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Windows-1252"}


def saved(path, text, encoding):
    """A file as a spreadsheet or an editor saves it, with its mark."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(codecs.BOM_UTF16_BE * (encoding == "utf-16-be") + text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_are_read_as_spreadsheets_save_them(tmp_path, encoding, delimiter):
    text = "Student,Name,canvas_id\r\nJörg M,Jörg,11\r\n\r\nZoë,,\r\n".replace(",", delimiter)
    roster = saved(tmp_path / "roster.csv", text, encoding)
    assert read_roster(roster) == {
        "Jörg M": {"student": "Jörg M", "name": "Jörg", "canvas_id": "11"},
        "Zoë": {"student": "Zoë", "name": "", "canvas_id": ""},
    }
    row = delimiter.join(["Zoë", "open-question", '"2,5"', "schön"])
    head = delimiter.join(["student", "question", "points", "reason"])
    given = read_overrides(saved(tmp_path / "overrides.csv", f"{head}\n{row}\n", encoding), small_handout())
    assert given == {("Zoë", "open-question"): Override(2.5, "schön")}
    said = f"roster.csv: is not UTF-8 and was read as {READ_AS[encoding]}; " if encoding in READ_AS else ""
    assert odd_encoding(roster).startswith(said) and bool(odd_encoding(roster)) == bool(said)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_settings_are_read_as_editors_save_them(tmp_path, encoding):
    text = f'anonymous = true\r\n[extensions."Zoe\u0308"]\r\n"{NAME}" = {DATE}\r\n'
    text = text.replace("e\u0308", "ë") if encoding == "cp1252" else text
    settings = read_settings(saved(tmp_path / "settings.toml", text, encoding))
    assert settings.anonymous and list(settings.extensions) == ["Zoë"]


@pytest.mark.parametrize(
    "rows, message",
    [
        ("name,canvas_id\nanna,1\n", "the column student is missing; the first line is 'name,canvas_id'"),
        ("", "the column student is missing"),
        ("student,name,student\nanna,x,anna\n", "the first line names student twice"),
        ("student,,\nanna,Anna,\n", "line 2 has a cell in a column that the first line does not name"),
        ("student,name\nanna,Berg, Anna\n", "line 2 has 3 cells; must have 2, as the first line"),
        ("student,name\nanna,Anna\n,Bert\n", "line 3: must have a student"),
        ("student\nanna\nanna\n", "the student anna is listed twice; must"),
        ("student,canvas_id\nanna,11\nbert,11\n", "the canvas_id 11 is listed twice, of anna and of bert"),
        ("student;moodle_id\nanna;21\nbert;22\ncarl;21\n", "the moodle_id 21 is listed twice, of anna and of carl"),
        (b"student\n\x81\n", "is neither UTF-8 nor UTF-16 nor Windows-1252"),
        ("student,name\nanna," + "x" * 200_000 + "\n", "line 2: field larger"),
    ],
)
def test_what_is_wrong_in_a_roster_is_named(tmp_path, rows, message):
    path = tmp_path / "roster.csv"
    path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    with pytest.raises(FileError, match=f"^roster.csv: {message}"):
        read_roster(path)


def test_students_without_an_id_and_empty_lines_are_nobodys_twins(tmp_path):
    (tmp_path / "roster.csv").write_text("student,canvas_id\nanna,\n,\nbert,\n")
    assert list(read_roster(tmp_path / "roster.csv")) == ["anna", "bert"]


@pytest.mark.parametrize(
    "rows, message",
    [
        ("anna,open,1,x", "anna, open: the question must be one of triplet-tokens-check"),
        ("anna,open-question,1,", "must have a reason"),
        ("anna,open-question,5,x", "points = '5'; must be from 0 to 4"),
        ("anna,open-question,nan,x", "points = 'nan'; must be from 0 to 4"),
        (",open-question,1,x", "line 2: must have a student"),
        ("anna,open-question,1,x\nanna,open-question,2,y", "anna, open-question: is listed twice; must be listed once"),
    ],
)
def test_what_is_wrong_in_overrides_is_named(tmp_path, rows, message):
    (tmp_path / "overrides.csv").write_text(f"student,question,points,reason\n{rows}\n")
    with pytest.raises(SettingsError, match=f"^overrides.csv: .*{message}|^overrides.csv: {message}"):
        read_overrides(tmp_path / "overrides.csv", small_handout())


def say(text, overrides=(), roster=(), handed_in=("Anna Berg", "Bert"), folder=None):
    """What is said of these settings."""
    path = folder / "settings.toml"
    path.write_text(text)
    given = {(student, "open-question"): Override(1, "x") for student in overrides}
    people = {"handed_in": handed_in, "roster": roster}
    return unmatched(read_settings(path), given, NAME, lessons=[NAME, OTHER, "06-others"], **people)


def entry(table, lesson):
    """A line of settings.toml, below the head of its table."""
    return f'[{table}]\n"{lesson}" = {DATE}\n'


@pytest.mark.parametrize(
    "text, said",
    [
        (f'{entry("deadlines", NAME)}"{OTHER}" = {DATE}', ""),
        (entry("deadlines", "05"), f"[deadlines]: there is no lesson '05'; there is {NAME}"),
        (entry("deadlines", "06"), "[deadlines]: there is no lesson '06'; there is 06-other, 06-others"),
        ('[assignments]\n"05-smal" = "x"', f"[assignments]: there is no lesson '05-smal'; there is {NAME}"),
        (entry('extensions."Ana Berg"', NAME), "[extensions]: there is no student 'Ana Berg'; there is Anna Berg"),
        (entry('extensions."Ana Berg"', OTHER), ""),
        (entry("extensions.Bert", "05"), f"[extensions] of Bert: there is no lesson '05'; there is {NAME}"),
    ],
)
def test_what_matches_nobody_is_named_with_what_is_like_it(tmp_path, text, said):
    assert say(text, folder=tmp_path) == ([f"settings.toml, {said}"] if said else [])


@pytest.mark.parametrize("student, like", [("bert", "; there is Bert"), ("Zoë", "")])
def test_an_override_that_matches_nobody_is_named_with_what_is_like_it(tmp_path, student, like):
    assert say("", ["Anna Berg", student], folder=tmp_path) == [f"overrides.csv: there is no student '{student}'{like}"]


def test_who_is_on_the_roster_is_known_for_every_lesson(tmp_path):
    text = f'[extensions.Carl]\n"{NAME}" = {DATE}\n[extensions.carla]\n"{OTHER}" = {DATE}\n'
    people = {"roster": ["Carl", "Dora"], "handed_in": ["who"]}
    [said] = say(text, ["Dora", "who"], folder=tmp_path, **people)
    assert said == "settings.toml, [extensions]: there is no student 'carla'; there is Carl"


def test_without_a_file_nothing_is_decided(tmp_path):
    assert read_settings(tmp_path / "settings.toml") == Settings()
    assert read_roster(tmp_path / "roster.csv") == {} and odd_encoding(tmp_path / "roster.csv") == ""
