"""How much memory a program may still take: what the machine has free, and what its control groups leave it; and memory
that is given back.
"""

import ctypes
import gc
import sys
from contextlib import suppress
from pathlib import Path

from companion.core.extras import Extra

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
FILES = (  # limit, use, the line of memory.stat with what the kernel gives back when it is asked: version 2, then 1
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_memory() -> int:
    """Return the bytes that this process may still take; a container or a hub may allow less than the machine has."""
    with Extra("pretrained"):
        import psutil  # noqa: PLC0415
    return max(0, min([psutil.virtual_memory().available, *_left_by_groups()]))


def give_back_memory() -> None:
    """Give the system back what this process needs no longer, as a model that was deleted: on Linux, too, where glibc
    keeps it for what comes.
    """
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def _left_by_groups() -> list[int]:
    """What each limited group around this process leaves; none where there are no groups."""
    try:
        lines = OWN.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    left = []
    for line in lines:  # version 2: "0::/user.slice/..", version 1: "9:memory:/docker/.."
        _, controllers, own = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = GROUPS / controllers
        group = root / own.lstrip("/")
        for place in (group, *group.parents):
            if place.is_relative_to(root):
                left += [found for names in FILES if (found := _left(place, *names)) is not None]
    return left


def _left(group: Path, limit: str, use: str, given_back: str) -> int | None:
    """The limit of a group, less what it uses and cannot give back; None where it has none."""
    try:
        most, used = (int((group / name).read_text(encoding="utf-8")) for name in (limit, use))
        stat = dict(line.split() for line in (group / "memory.stat").read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):  # no such file, or no limit: "max"
        return None
    return most - used + int(stat.get(given_back, 0))
