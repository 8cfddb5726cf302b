"""A control group is made where one can be, and only there. The tree is made up: the machine's own is left alone."""

from companion.workshop.grading.sandbox import cgroups


def tree(folder, controllers="cpu memory"):
    """A tree of groups, and the file that says where this process is in it."""
    parent = folder / "tree" / "user.slice" / "app.slice"
    (parent / "session.scope").mkdir(parents=True)
    (parent / "cgroup.subtree_control").write_text(controllers)
    (parent / "cgroup.procs").write_text("")
    own = folder / "own"
    own.write_text("1:name=systemd:/\n0::/user.slice/app.slice/session.scope\n")
    return parent, {"tree": folder / "tree", "own": own}


def test_a_group_limits_memory_beside_our_own(tmp_path):
    parent, where = tree(tmp_path)
    assert cgroups.place(**where) == parent
    group = cgroups.around(123, 1 << 30, parent)
    assert (group / "memory.max").read_text() == str(1 << 30)
    assert (group / "memory.swap.max").read_text() == "0" and (group / "cgroup.procs").read_text() == "123"
    cgroups.leave(group)  # in a made-up tree it has files and stays


def test_without_a_place_there_is_none(tmp_path):
    _, where = tree(tmp_path, "cpu")
    assert cgroups.place(**where) is None
    assert cgroups.place(tmp_path, tmp_path / "nothing") is None
    assert cgroups.around(123, 1, None) is None
    assert cgroups.around(123, 1, tmp_path / "nothing") is None
    cgroups.leave(None)
