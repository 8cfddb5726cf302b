"""A control group is used where one can be made, and only there."""

import subprocess
import sys

import pytest

from companion.workshop.grading.sandbox import cgroup


@pytest.fixture
def user(monkeypatch, tmp_path):
    """A user's groups, as systemd makes them, in a folder."""
    slices = tmp_path / "groups/user.slice/user@1000.service/app.slice"
    (slices / "shell.scope").mkdir(parents=True)
    (slices / "cgroup.subtree_control").write_text("cpu memory pids\n", encoding="utf-8")
    (slices / "shell.scope/cgroup.subtree_control").write_text("", encoding="utf-8")
    own = tmp_path / "own"
    own.write_text("0::/user.slice/user@1000.service/app.slice/shell.scope\n", encoding="utf-8")
    monkeypatch.setattr(cgroup, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(cgroup, "OWN", own)
    monkeypatch.setattr(cgroup, "PATIENCE", 0.05)
    return slices


def test_a_process_is_put_beside_the_group_of_this_one(user):
    group = cgroup.closed_in(123, 5 << 20)
    assert group == user / "course-123"
    written = {path.name: path.read_text(encoding="utf-8") for path in group.iterdir()}
    assert written == {"memory.max": str(5 << 20), "memory.swap.max": "0", "cgroup.procs": "123"}


def test_what_had_too_much_is_known_by_the_kernels_word(tmp_path):
    assert not cgroup.overrun(tmp_path), "it is gone"
    for kills in (0, 1):
        (tmp_path / "memory.events").write_text(f"low 0\noom 1\noom_kill {kills}\noom_group_kill 0\n", "utf-8")
        assert cgroup.overrun(tmp_path) is bool(kills)


def test_an_ended_processs_group_is_removed(user):
    group = user / "course-123"
    group.mkdir()
    cgroup.removed(group)
    assert not group.exists()
    cgroup.removed(group)
    (group / "left").mkdir(parents=True)
    cgroup.removed(group)
    assert group.exists(), "it is in use, and stays"


def test_without_the_right_to_make_one_there_is_none(user, monkeypatch):
    user.joinpath("cgroup.subtree_control").write_text("cpu", encoding="utf-8")
    assert cgroup.closed_in(123, 1) is None, "memory is not counted there"
    user.joinpath("cgroup.subtree_control").write_text("memory", encoding="utf-8")

    def refused(*_, **__):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(cgroup.Path, "mkdir", refused)
        assert cgroup.closed_in(123, 1) is None
    with monkeypatch.context() as patch:
        patch.setattr(cgroup.Path, "write_text", refused)
        assert cgroup.closed_in(123, 1) is None
    assert not (user / "course-123").exists()
    for lines in ("", "9:memory:/a\n", "0::/../b\n", "0::/\n"):
        cgroup.OWN.write_text(lines, encoding="utf-8")
        assert cgroup.closed_in(123, 1) is None
    cgroup.OWN.unlink()
    assert cgroup.closed_in(123, 1) is None


GROWS = "import sys; input(); print(len(bytearray(b'x') * (256 << 20)))"


def test_the_kernel_ends_what_takes_too_much():
    child = subprocess.Popen([sys.executable, "-c", GROWS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    group = cgroup.closed_in(child.pid, 64 << 20)
    said, _ = child.communicate(b"\n")
    if group is None:
        pytest.skip("no group can be made here")
    overrun = cgroup.overrun(group)
    cgroup.removed(group)
    assert said == b"" and overrun and not group.exists()
