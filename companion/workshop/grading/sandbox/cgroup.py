"""A control group for one process, where this one may make it: there the kernel counts all memory that is taken for the
process, its own books included, and ends it before it has more.

It takes version 2 of control groups, and a group whose owner is who grades, as systemd gives to each user for what runs
below ``user@.service``. Anywhere else the limits of `companion.workshop.grading.sandbox.sandbox` do without.
"""

import time
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
PATIENCE = 1.0  # seconds until the kernel has ended what was in a group


def closed_in(pid: int, most: int) -> Path | None:
    """Put a process into a group of its own, for which at most so many bytes are taken from now on; None where no such
    group can be made.
    """
    for place in _places():
        group = place / f"course-{pid}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / "memory.max").write_text(str(most), encoding="utf-8")
            with suppress(OSError):  # a machine without swap need not have it
                (group / "memory.swap.max").write_text("0", encoding="utf-8")
            (group / "cgroup.procs").write_text(str(pid), encoding="utf-8")
        except OSError:
            removed(group)
            continue
        return group
    return None


def overrun(group: Path) -> bool:
    """Return whether the kernel has ended what was in the group, since it had too much."""
    events = _lines(group / "memory.events")
    return bool(events) and "oom_kill 0" not in events


def removed(group: Path) -> None:
    """Remove a group whose processes have been ended; one that is not left in time stays, and is empty later."""
    end = time.monotonic() + PATIENCE
    while group.exists() and time.monotonic() < end:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.01)


def _places() -> list[Path]:
    """Groups below which memory is counted: this process's own, which can be one only if it is the topmost, and the one
    above it.
    """
    names = [line.removeprefix("0::/") for line in _lines(OWN) if line.startswith("0::/") and "/.." not in line]
    own = [GROUPS / name for name in names]
    places = [place for group in own for place in (group, group.parent) if place.is_relative_to(GROUPS)]
    return [place for place in places if "memory" in " ".join(_lines(place / "cgroup.subtree_control")).split()]


def _lines(path: Path) -> list[str]:
    """The lines of a file of the kernel's; none where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
