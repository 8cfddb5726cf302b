"""Zips as Canvas and Moodle make them: what is whose, which notebook counts, and when it was handed in."""

import zipfile
from datetime import UTC, datetime

import pytest
from workshop.grading.small_lesson import NAME

from companion.workshop.grading.course import lms
from companion.workshop.grading.course.handins import collect
from companion.workshop.grading.course.settings import SettingsError, read_settings
from companion.workshop.grading.notebook.files import no_notebook

DOWNLOADED = (2026, 12, 3, 10, 0, 0)  # in every real zip the files have this one time
DUE = datetime(2026, 11, 30, 12, tzinfo=UTC)
FOLDER = "assignsubmission_file"


class Unsaid(zipfile.ZipInfo):
    """A member whose name is UTF-8, without the flag that says so: as Canvas writes it."""

    def _encodeFilenameFlags(self):  # noqa: N802 (zipfile calls it so)
        return self.filename.encode(), self.flag_bits


def archive(path, members, info=zipfile.ZipInfo, when=DOWNLOADED):
    """A zip of these files; each holds its own name, unless it is said what."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in members:
            file.writestr(info(name, when), members[name] if isinstance(members, dict) else name)
    return path


@pytest.fixture
def grading(tmp_path):
    """A folder with a roster and a deadline."""
    folder = tmp_path / "grading"
    folder.mkdir()
    (folder / "roster.csv").write_text("student,canvas_id,moodle_id\nanna,11,21\nwang,12,22\n")
    (folder / "settings.toml").write_text(f'[deadlines]\n"{NAME}" = {DUE.isoformat()}\n[late]\ngrace_minutes = 15\n')
    return folder


def counted(grading):
    """By student: which file counts, or why none can be read, and how many days late it is."""
    versions = collect(grading, NAME, read_settings(grading / "settings.toml"), 1 << 20)
    first = {name: hand_ins[0] for name, hand_ins in versions.items()}
    return {name: (one.path.read_text() if one.path else one.problem, one.days_late) for name, one in first.items()}


CANVAS = {
    f"berganna_11_901_{NAME}.ipynb": ("anna", 0),
    f"berganna_LATE_11_901_{NAME}.ipynb": ("anna", 1),
    f"berganna_late_11_901_{NAME}-1.ipynb": ("anna", 1),
    f"王小明_12_902_{NAME}.ipynb": ("wang", 0),
    "ивановапётр_LATE_77_903_копия тетради (2).ipynb": ("ивановапётр 77", 1),
    "محمدعلي_78_904_x.ipynb": ("محمدعلي 78", 0),
    "o_malley_3_LATE_79_905_a_1_2_b.ipynb": ("o_malley_3 79", 1),
    f"anon_a1B2c_906_{NAME}.ipynb": ("anon a1B2c", 0),
    f"LATE_anon_a1B2c_906_{NAME}.ipynb": ("anon a1B2c", 1),
    f"submissions/berganna_11_901_{NAME}.ipynb": ("anna", 0),
}
MOODLE = {
    f"Anna Berg_21_{FOLDER}/{NAME}.ipynb": "anna",
    f"Anna Berg_21_{FOLDER}_/{NAME}.ipynb": "anna",
    f"Anna Berg_21_{FOLDER}/my work/week 5/{NAME}.ipynb": "anna",
    f"Anna Berg_21_{FOLDER}_{NAME}.ipynb": "anna",
    f"王小明_22_{FOLDER}/{NAME}.ipynb": "wang",
    f"Núria d'Àvila-Roca (3)_30_{FOLDER}/{NAME}.ipynb": "Núria d'Àvila-Roca (3) 30",
    f"Participant_31_{FOLDER}/{NAME}.ipynb": "Participant 31",
    f"05-Group A/Anna Berg_21_{FOLDER}/{NAME}.ipynb": "anna",
}


@pytest.mark.parametrize("info", [zipfile.ZipInfo, Unsaid])
@pytest.mark.parametrize("member", CANVAS)
def test_a_file_of_canvas(grading, tmp_path, member, info):
    student, late = CANVAS[member]
    unpacked = lms.take_in(archive(tmp_path / "c.zip", [member], info), grading, NAME)
    assert unpacked == lms.Taken([student], [student] * late)
    assert counted(grading) == {student: (member, late)}


@pytest.mark.parametrize("member", MOODLE)
def test_a_file_of_moodle(grading, tmp_path, member):
    assert lms.take_in(archive(tmp_path / "m.zip", [member]), grading, NAME).students == [MOODLE[member]]
    assert counted(grading) == {MOODLE[member]: (member, 0)}


@pytest.mark.parametrize(
    "others",
    [
        ["berganna_11_901_scratch.ipynb", "berganna_11_950_zz.ipynb"],
        [f"berganna_11_901_{NAME}.ipynb", "berganna_11_950_scratch.ipynb"],
        [f"__MACOSX/._berganna_11_960_{NAME}.ipynb", "berganna_11_961_notes.txt"],
        [f"Anna Berg_21_{FOLDER}/.ipynb_checkpoints/{NAME}-checkpoint.ipynb"],
        [f"Anna Berg_21_{FOLDER}/other lesson.ipynb", f"Anna Berg_21_{FOLDER}/{NAME}-old.ipynb"],
    ],
)
@pytest.mark.parametrize("name", [f"{NAME}-2.ipynb", f"{NAME} (1).ipynb"])
def test_of_several_notebooks_the_lessons_own_counts(grading, tmp_path, others, name):
    here = f"Anna Berg_21_{FOLDER}/{name}" if FOLDER in others[0] else f"berganna_11_940_{name}"
    lms.take_in(archive(tmp_path / "x.zip", [*others[:1], here, *others[1:]]), grading, NAME)
    assert counted(grading) == {"anna": (here, 0)}


def test_what_was_downloaded_before_the_deadline_and_after(grading, tmp_path):
    """A hand-in of before stays the one that counts, if the later is marked as late."""
    early = f"berganna_11_901_{NAME}.ipynb"
    for member, when in ((early, (2026, 11, 29, 10, 0, 0)), (f"berganna_LATE_11_950_{NAME}-1.ipynb", DOWNLOADED)):
        lms.take_in(archive(tmp_path / "c.zip", [member], when=when), grading, NAME)
    assert counted(grading) == {"anna": (early, 0)}
    lms.take_in(archive(tmp_path / "c.zip", [again := f"berganna_11_940_{NAME}-1.ipynb"]), grading, NAME)
    assert counted(grading) == {"anna": (again, 0)}
    assert len(list((grading / "kept" / "anna" / NAME).iterdir())) == 3


def test_without_a_deadline_the_time_of_download_is_all_there_is(grading, tmp_path):
    (grading / "settings.toml").unlink()
    lms.take_in(archive(tmp_path / "c.zip", [f"berganna_LATE_11_901_{NAME}.ipynb"]), grading, NAME)
    [kept] = (grading / "kept" / "anna" / NAME).iterdir()
    assert kept.name.startswith("2026-12-03T100000")


def test_nothing_of_a_zip_is_written_elsewhere(grading, tmp_path):
    members = [f"../bertb_12_9_{NAME}.ipynb", f"/etc/x_13_9_{NAME}.ipynb", f"a\\..\\y_14_9_{NAME}.ipynb"]
    before = set(tmp_path.rglob("*"))
    assert len(lms.take_in(archive(tmp_path / "c.zip", members), grading, NAME).students) == 3
    new = set(tmp_path.rglob("*")) - before - {tmp_path / "c.zip"}
    assert all(path.is_relative_to(grading / "kept") for path in new)


def test_one_notebook_of_no_date_and_one_that_is_broken_cost_nobody_else_anything(grading, tmp_path):
    names = [f"berganna_11_901_{NAME}.ipynb", f"wang_12_902_{NAME}.ipynb", f"x_13_903_{NAME}.ipynb"]
    path = archive(tmp_path / "c.zip", names)
    data = path.read_bytes().replace(names[1].encode() * 2, names[1].encode() + names[1].upper().encode())
    for head, at in ((b"PK\x03\x04", 10), (b"PK\x01\x02", 12)):  # the date of the first, in both places
        place = data.index(head) + at
        data = data[:place] + bytes(4) + data[place + 4 :]
    path.write_bytes(data)
    assert lms.take_in(path, grading, NAME) == lms.Taken(["anna", "x 13"], [], ["wang"])
    assert counted(grading).keys() == {"anna", "x 13", "wang"}
    assert counted(grading)["wang"] == ("it is damaged in the zip: download that again", 0)


def test_what_is_no_such_zip_is_refused(grading, tmp_path):
    broken = archive(tmp_path / "b.zip", [f"berganna_11_901_{NAME}.ipynb"])
    own = f"berganna_11_901_{NAME}.ipynb".encode()
    broken.write_bytes(broken.read_bytes().replace(own * 2, own + own.upper()))  # not what its checksum says
    for wrong in (archive(tmp_path / "w.zip", ["a.ipynb"]), grading / "roster.csv", broken, tmp_path / "none.zip"):
        with pytest.raises(SettingsError, match=r"cannot be read as a zip archive|holds no notebook"):
            lms.take_in(wrong, grading, NAME)


# -- every file is answered for

ZIPS = {
    "Canvas": lambda name, number, file, late="": f"{name}{late}_{number}_9{number}_{file}",
    "Moodle": lambda name, number, file, late="": f"{name}_{number}_{FOLDER}/{file}",
}


@pytest.mark.parametrize("sent", ["submission.zip", f"{NAME}.html", f"{NAME}.py", f"{NAME}.ipynb.txt"])
@pytest.mark.parametrize("kind", ZIPS)
def test_who_sent_no_notebook_is_named_and_stands_in_the_table(grading, tmp_path, kind, sent):
    name = ZIPS[kind]
    members = {name("bert", 41, f"{NAME}.ipynb"): "{}", name("carl", 42, sent): "x", name("carl", 42, "b.pdf"): "x"}
    taken = lms.take_in(archive(tmp_path / "z.zip", members), grading, NAME)
    assert taken.students == ["bert 41"] and taken.without == {"carl 42": [sent, "b.pdf"]}
    assert f"no notebook from 1: carl 42 ({' and '.join(sorted([sent, 'b.pdf']))})" in str(taken)
    assert counted(grading)["carl 42"] == (no_notebook([sent, "b.pdf"], NAME), 0)  # `test_folders` has the sentences
    again = archive(tmp_path / "y.zip", {name("carl", 42, f"{NAME}.ipynb"): "good"}, when=(2026, 12, 4, 10, 0, 0))
    assert lms.take_in(again, grading, NAME).students == ["carl 42"]
    assert counted(grading)["carl 42"] == ("good", 0)
    versions = collect(grading, NAME, read_settings(grading / "settings.toml"), 1 << 20)["carl 42"]
    assert not versions[0].remarks or "replaces an earlier version" in versions[0].remarks[0]


@pytest.mark.parametrize(
    "member, student",
    [
        ("berganna_11_text.html", "anna"),
        ("berganna_LATE_11_link.html", "anna"),
        ("anon_a1B2c_text.html", "anon a1B2c"),
        ("Anna Berg_21_assignsubmission_onlinetext/onlinetext.html", "anna"),
        ("Anna Berg_21_assignsubmission_onlinetext_onlinetext.html", "anna"),
    ],
)
def test_a_text_that_was_typed_in_is_answered_for(grading, tmp_path, member, student):
    assert [*lms.take_in(archive(tmp_path / "t.zip", [member]), grading, NAME).without] == [student]
    assert "no notebook" in counted(grading)[student][0]


def test_what_is_nobodys_is_named(grading, tmp_path):
    members = [f"berganna_11_901_{NAME}.ipynb", "grades.xlsx", "__MACOSX/x.ipynb", ".DS_Store", "a folder/"]
    taken = lms.take_in(archive(tmp_path / "c.zip", members), grading, NAME)
    assert str(taken) == "notebooks of 1 students; named as no student's file: grades.xlsx"


@pytest.mark.parametrize("kind", ZIPS)
def test_a_notebook_too_large_is_refused_as_in_a_folder(grading, tmp_path, kind):
    members = {ZIPS[kind]("bert", 41, f"{NAME}.ipynb"): "x" * (25 << 20)}
    assert lms.take_in(archive(tmp_path / "z.zip", members), grading, NAME).students == ["bert 41"]
    assert counted(grading)["bert 41"][0].startswith("the notebook has 25 MiB; at most 20 are read")


@pytest.mark.parametrize("kind", ZIPS)
def test_a_solved_copy_beside_an_untouched_notebook(grading, tmp_path, kind):
    files = {f"{NAME}.ipynb": "untouched", f"{NAME}-Copy1.ipynb": "solved", f"{NAME}-further.ipynb": "solved, too"}
    members = {ZIPS[kind]("bert", 41, file): text for file, text in files.items()}
    lms.take_in(archive(tmp_path / "z.zip", members), grading, NAME, lambda data: data.startswith(b"solved"))
    [hand_in] = collect(grading, NAME, read_settings(grading / "settings.toml"), 1 << 20)["bert 41"]
    assert hand_in.path.read_text() == "solved"
    assert f"{NAME}-Copy1.ipynb is marked, because {NAME}.ipynb holds no answers" in hand_in.remarks[0]


@pytest.mark.parametrize("kind", ZIPS)
def test_files_of_python_come_with_the_notebook(grading, tmp_path, kind):
    files = {f"{NAME}.ipynb": "{}", "helpers.py": "x = 1", "more-1.py": "y = 1", f"{NAME}.py": "", "a.pdf": ""}
    members = {ZIPS[kind]("bert", 41, file): text for file, text in files.items()}
    members |= {ZIPS[kind]("carl", 42, "other.py"): "", ZIPS[kind]("carl", 42, f"{NAME}.ipynb"): "{}"}
    lms.take_in(archive(tmp_path / "z.zip", members), grading, NAME)
    versions = collect(grading, NAME, read_settings(grading / "settings.toml"), 1 << 20)
    assert versions["bert 41"][0].helpers() == {"helpers.py": "x = 1", "more.py": "y = 1"}
    assert versions["carl 42"][0].helpers() == {"other.py": ""}
    said = " ".join(versions["bert 41"][0].remarks)
    assert f"not read beside the notebook: {NAME}.py (" in said and "not read beside the notebook: a.pdf" in said


# -- in which order they came


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("kind", ZIPS)
def test_of_two_downloads_after_the_deadline_the_second_counts(grading, tmp_path, kind, again):
    """Both count as in time, since neither says that it was late; taking in the first once more changes nothing."""
    students = range(41, 53)
    for day, text in ((2, "first"), (5, "second"), *([(2, "first")] * again)):
        members = {ZIPS[kind]("s", number, f"{NAME}.ipynb"): f"{text} {number}" for number in students}
        path = archive(tmp_path / f"{day}.zip", members, when=(2026, 12, day, 10, 0, 0))
        lms.take_in(path, grading, NAME)
    assert counted(grading) == {f"s {number}": (f"second {number}", 0) for number in students}
    versions = collect(grading, NAME, read_settings(grading / "settings.toml"), 1 << 20)["s 41"]
    assert [one.path.read_text() for one in versions] == ["second 41", "first 41"]
    assert "is not marked as late, and replaces an earlier version" in versions[0].remarks[0]


def test_of_zips_that_are_taken_in_the_other_way_round_the_later_download_counts(grading, tmp_path):
    for day in (5, 2, 3):
        members = {f"berganna_11_901_{NAME}.ipynb": f"of day {day}"}
        lms.take_in(archive(tmp_path / "z.zip", members, when=(2026, 12, day, 10, 0, 0)), grading, NAME)
    versions = collect(grading, NAME, read_settings(grading / "settings.toml"), 1 << 20)["anna"]
    assert [one.path.read_text() for one in versions] == ["of day 5", "of day 3", "of day 2"]


def test_where_a_zip_says_no_date_the_one_taken_in_later_counts(grading, tmp_path):
    for text in ("first", "second"):
        members = {f"berganna_11_901_{NAME}.ipynb": text}
        lms.take_in(archive(tmp_path / "z.zip", members, when=(1980, 1, 1, 0, 0, 0)), grading, NAME)
    assert counted(grading)["anna"] == ("second", 0)


def test_who_has_gone_back_to_a_first_version_has_handed_in_again(grading, tmp_path):
    for day, text in ((2, "first"), (3, "second"), (4, "first")):
        members = {f"berganna_11_901_{NAME}.ipynb": text}
        lms.take_in(archive(tmp_path / "z.zip", members, when=(2026, 12, day, 10, 0, 0)), grading, NAME)
    assert counted(grading)["anna"] == ("first", 0)


def test_late_is_late_whichever_came_first(grading, tmp_path):
    for day, late, text in ((2, "_LATE", "late"), (5, "_LATE", "later")):
        members = {f"berganna{late}_11_901_{NAME}.ipynb": text}
        lms.take_in(archive(tmp_path / "z.zip", members, when=(2026, 12, day, 10, 0, 0)), grading, NAME)
    assert counted(grading)["anna"] == ("later", 1)
