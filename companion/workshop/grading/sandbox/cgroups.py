"""A control group with a memory limit around a sandboxed process, where this user may make one: cgroup version 2, in a
part of the tree that was handed over (systemd does so for a user's session). Elsewhere the process's own limits hold.
"""

import itertools
import os
from pathlib import Path

TREE = Path("/sys/fs/cgroup")
NUMBERS = itertools.count()


def place(tree: Path = TREE, own: Path = Path("/proc/self/cgroup")) -> Path | None:
    """Return the folder in which groups with a memory limit can be made; None if there is none. It is the parent of
    this process's own group: a group that limits memory may hold no process itself.
    """
    try:
        line = next(line for line in own.read_text().splitlines() if line.startswith("0::/"))
        parent = (tree / line.removeprefix("0::/")).parent
        limits = "memory" in (parent / "cgroup.subtree_control").read_text().split()
    except (OSError, StopIteration):
        return None
    may = all(os.access(path, os.W_OK) for path in (parent, parent / "cgroup.procs"))
    return parent if limits and may and parent.is_relative_to(tree) else None


def around(pid: int, memory: int, parent: Path | None) -> Path | None:
    """Put a process and all that it starts into a new group of ``memory`` bytes, swap included; the group."""
    if parent is None:
        return None
    group = parent / f"grading-{os.getpid()}-{next(NUMBERS)}"
    try:
        group.mkdir()
        (group / "memory.max").write_text(str(memory))
        (group / "memory.swap.max").write_text("0")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        leave(group)
        return None
    return group


def leave(group: Path | None) -> None:
    """Remove a group whose processes have ended."""
    try:
        if group:
            group.rmdir()
    except OSError:  # the kernel is not done with it, or nothing was made: an empty group costs nothing
        pass
