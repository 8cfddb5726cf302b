"""Zips as Canvas and Moodle make them: whose notebook is whose, which one counts, and when it was handed in."""

import zipfile
from datetime import UTC, datetime

import pytest
from workshop.grading.small_lesson import NAME

from companion.workshop.grading.course import lms
from companion.workshop.grading.course.handins import collect
from companion.workshop.grading.course.settings import SettingsError, read_settings

DOWNLOADED = (2026, 12, 3, 10, 0, 0)  # in every real zip the files have this one time
DUE = datetime(2026, 11, 30, 12, tzinfo=UTC)
FOLDER = "assignsubmission_file"


class Unsaid(zipfile.ZipInfo):
    """A member whose name is UTF-8, without the flag that says so: as Canvas writes it."""

    def _encodeFilenameFlags(self):  # noqa: N802 (zipfile calls it so)
        return self.filename.encode(), self.flag_bits


def archive(path, members, info=zipfile.ZipInfo, when=DOWNLOADED):
    """A zip of these files; each holds its own name."""
    with zipfile.ZipFile(path, "w") as file:
        for name in members:
            file.writestr(info(name, when), name)
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
    """By student: which file counts, and how many days late it is."""
    hand_ins = collect(grading, NAME, read_settings(grading / "settings.toml"), 1 << 20)
    return {name: (hand_in.path.read_text(), hand_in.days_late) for name, hand_in in hand_ins.items()}


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
    assert counted(grading).keys() == {"anna", "x 13"}


def test_what_is_no_such_zip_is_refused(grading, tmp_path):
    broken = archive(tmp_path / "b.zip", [f"berganna_11_901_{NAME}.ipynb"])
    own = f"berganna_11_901_{NAME}.ipynb".encode()
    broken.write_bytes(broken.read_bytes().replace(own * 2, own + own.upper()))  # not what its checksum says
    for wrong in (archive(tmp_path / "w.zip", ["a.ipynb"]), grading / "roster.csv", broken, tmp_path / "none.zip"):
        with pytest.raises(SettingsError, match=r"no zip that can be read|holds no notebook"):
            lms.take_in(wrong, grading, NAME)
