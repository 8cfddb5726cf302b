"""Files are never half written, and a reader in the way is waited for."""

import os

import pytest

from companion.core import files


@pytest.fixture
def in_the_way(monkeypatch):
    """Make the first so many replacements fail as they do while another program has the file open."""
    pauses, real = [], os.replace
    monkeypatch.setattr(files.time, "sleep", pauses.append)

    def begin(times: int) -> list[float]:
        def replace(beside, path):
            nonlocal times
            times -= 1
            if times >= 0:
                raise PermissionError(13, "The process cannot access the file")
            real(beside, path)

        monkeypatch.setattr(files.os, "replace", replace)
        return pauses

    return begin


def test_the_folder_is_made_and_nothing_stays_beside(tmp_path):
    files.atomic_write(tmp_path / "new/a.txt", "größer\n")
    files.atomic_write(tmp_path / "new/a.txt", "größer\nnoch\n")
    assert (tmp_path / "new/a.txt").read_bytes() == "größer\nnoch\n".encode(), "UTF-8, and no \\r, everywhere"
    with pytest.raises(UnicodeEncodeError):
        files.atomic_write(tmp_path / "new/a.txt", "\udcff")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.txt"]


def test_a_reader_is_waited_for(tmp_path, in_the_way):
    pauses = in_the_way(3)
    files.atomic_write(tmp_path / "a.txt", "new")
    assert pauses == list(files.PAUSES[:3])
    assert (tmp_path / "a.txt").read_bytes() == b"new"


@pytest.mark.parametrize(("ours", "waits"), [(True, len(files.PAUSES)), (False, 0)], ids=["held", "not ours"])
def test_a_right_that_is_lacking_is_told(tmp_path, in_the_way, monkeypatch, ours, waits):
    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(files.os, "access", lambda place, right: ours)
    pauses = in_the_way(99)
    with pytest.raises(PermissionError):
        files.atomic_write(tmp_path / "a.txt", "new")
    assert len(pauses) == waits
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.txt": b"old"}
