"""The time in nbgrader's ``timestamp.txt``, whatever zone its exchange writes."""

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from companion.workshop.grading.course.names import student

OLDEST, NEWEST = datetime(1971, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
LONGEST = 80  # letters of a time
# Hours before UTC of what Python writes as %Z and `zoneinfo` does not know, unless it is several zones'
HOURS = {
    "BST": 1, "WEST": 1, "CEST": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12,
    "NZDT": 13, "ADT": -3, "EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7, "PST": -8,
}  # fmt: skip


def read_timestamp(folder: Path) -> str:
    """Return what ``timestamp.txt`` in a folder says; empty if there is none."""
    path = folder / "timestamp.txt"
    if path.is_symlink() or not path.is_file():  # to open a pipe is to wait for somebody who writes
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return student(file.read(LONGEST).strip())
    except OSError as error:
        return f"it cannot be opened ({error.strerror})"


def parse_time(text: str) -> datetime | None:
    """Return a time in UTC, which is said as ``2026-11-20 10:00:00.000000`` and a zone: an offset, a name as
    Europe/Berlin, an abbreviation, or nothing, which is UTC. None where it cannot be read, or is of no day of ours.

    >>> str(parse_time("2026-11-20 10:00:00 Europe/Berlin"))
    '2026-11-20 09:00:00+00:00'
    """
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d[T ][\d:.]+) ?(Z|[+-]\d\d:?\d\d|[A-Za-z][\w/+-]*)?", text.strip())
    if not found:
        return None
    try:
        when = datetime.fromisoformat(found[1])
        name = found[2] or "UTC"
        zone = UTC if name == "Z" else datetime.strptime(name, "%z").tzinfo if name[0] in "+-" else _zone(name)
        when = when.replace(tzinfo=zone)
        return when.astimezone(UTC) if OLDEST <= when <= NEWEST else None
    except (ValueError, OSError, LookupError, OverflowError):
        return None


def _zone(name: str) -> timezone | ZoneInfo:
    return timezone(timedelta(hours=HOURS[name])) if name in HOURS else ZoneInfo(name)
