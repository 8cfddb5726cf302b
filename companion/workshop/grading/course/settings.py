"""What an instructor decides for a course, in ``grading/settings.toml``, without which there are no deadlines.

anonymous = true                       # pseudonyms in the form grader, in the summary and on the class's page
counts = "best"                        # of several versions in time the one with most points; else "last"
timestamps = true                      # believe nbgrader's timestamp.txt: where only its exchange writes it

[deadlines]
"02-in-context-regression" = 2026-11-30T23:59:00+01:00

[late]
grace_minutes = 15
per_day = 0.1                          # of the points, for each day begun
at_most = 0.5                          # what is lost at most; "per_day = 1" takes no late hand-in

[extensions."Anna Berg"]               # a deadline of one's own
"02-in-context-regression" = 2026-12-07T23:59:00+01:00

[assignments]                          # how Canvas' gradebook calls them: with the assignment's id
"02-in-context-regression" = "Lesson 2 (4711)"
"""

import math
import os
import tomllib
import unicodedata
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from companion.core.files import FileError, encoding, read_text

LATENESS = {"grace_minutes": 366 * 24 * 60, "per_day": 1, "at_most": 1}  # what [late] may have, and how much of it
FIRST_YEAR, LAST_YEAR = 1971, 2199
CHOICES = {"anonymous": (True, False), "counts": ("last", "best"), "timestamps": (True, False)}


class SettingsError(FileError):
    """A file of settings, of the class or of overrides that is not as it should be; the message says where."""


@dataclass(frozen=True)
class Settings:
    """Deadlines by lesson, extensions by student and lesson, what lateness costs, and an LMS's names of the lessons."""

    anonymous: bool = False
    counts: str = "last"
    timestamps: bool = False
    deadlines: dict[str, datetime] = field(default_factory=dict)
    extensions: dict[str, dict[str, datetime]] = field(default_factory=dict)
    assignments: dict[str, str] = field(default_factory=dict)
    grace_minutes: float = 0.0
    per_day: float = 0.0
    at_most: float = 1.0

    def deadline(self, student: str, lesson: str) -> datetime | None:
        """Until when this student can hand in this lesson; None if for ever."""
        return self.extensions.get(student, {}).get(lesson, self.deadlines.get(lesson))

    def late_days(self, student: str, lesson: str, when: datetime) -> int:
        """Days begun after the deadline (and the minutes of grace); 0 if in time."""
        due = self.deadline(student, lesson)
        if due is None:
            return 0
        over = when - due - timedelta(minutes=self.grace_minutes)
        return max(0, math.ceil(over / timedelta(days=1)))

    def factor(self, days: int) -> float:
        """Return what is left of the points after so many days."""
        return 1 - min(self.per_day * days, self.at_most)


def read_settings(path: Path) -> Settings:
    """Read the settings in a file; those of no file if there is none. Raises SettingsError, which names the key, its
    value and what is allowed.
    """
    if not os.path.lexists(path):
        return Settings()
    try:
        given = tomllib.loads(unicodedata.normalize("NFC", read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path.name}: {error}") from None
    late = _of_kind(path.name, "late", given.pop("late", {}))
    top = {each.name for each in fields(Settings)} - LATENESS.keys()
    _known(path.name, given, top | {"late"}, "key")
    _known(path.name, late, set(LATENESS), "key in [late]")
    for name, allowed in CHOICES.items():
        if name in given and repr(given[name]) not in map(repr, allowed):  # 1 is not true
            shown = " or ".join(str(each).lower() if isinstance(each, bool) else repr(each) for each in allowed)
            raise SettingsError(f"{path.name}: {name} = {given[name]!r}; must be {shown}")
    for name, most in LATENESS.items():
        if not _in_range(late.get(name, 0), most):
            raise SettingsError(f"{path.name}: {name} = {late[name]!r}; must be a number from 0 to {most}")
    for lesson, when in _of_kind(path.name, "deadlines", given.get("deadlines", {})).items():
        _require_moment(f"{path.name}: the deadline of {lesson}", when)
    for student, own in _of_kind(path.name, "extensions", given.get("extensions", {})).items():
        for lesson, when in _of_kind(path.name, f'extensions."{student}"', own).items():
            _require_moment(f"{path.name}: the extension of {student} for {lesson}", when)
    for lesson, title in _of_kind(path.name, "assignments", given.get("assignments", {})).items():
        if not isinstance(title, str):
            raise SettingsError(f"{path.name}: the assignment of {lesson} = {title!r}; must be a text in quotes")
    return Settings(**given, **late)


def _of_kind(file: str, key: str, value: Any) -> dict[str, Any]:
    """The ``value`` of a key that begins a table."""
    if not isinstance(value, dict):
        raise SettingsError(f"{file}: {key} = {_said(value)}; must be a table: [{key}], and its lines below")
    return value


def _said(value: Any) -> str:
    return str(value) if isinstance(value, date | time) else repr(value)  # as TOML has it


def _known(file: str, given: dict[str, Any], known: set[str], what: str) -> None:
    for key in sorted(given.keys() - known):
        place = " (it belongs below the line [late])" if key in LATENESS else ""
        raise SettingsError(f"{file}: unknown {what} {key!r}{place}; must be one of {', '.join(sorted(known))}")


def _in_range(value: Any, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most  # no nan is


def _require_moment(what: str, when: Any) -> None:
    if not isinstance(when, datetime) or when.tzinfo is None:
        wanted = "a date and time with its zone, such as 2026-11-30T23:59:00+01:00"
        raise SettingsError(f"{what} = {_said(when)}; must be {wanted}")
    if not FIRST_YEAR <= when.year <= LAST_YEAR:
        raise SettingsError(f"{what} = {when}; must be in the years {FIRST_YEAR} to {LAST_YEAR}")


def odd_encoding(path: Path) -> str:
    """Return which encoding a file was taken to have, as a sentence, if it is not UTF-8; else an empty text."""
    found = encoding(path.read_bytes()) if path.exists() else "utf-8"
    name = "" if found.startswith("utf-8") else {"cp1252": "Windows-1252"}.get(found, found.upper())
    return f"{path.name}: is not UTF-8 and was read as {name}; save it as UTF-8 if a name looks wrong" if name else ""


def stamp(when: datetime) -> str:
    """Return a time as it stands in tables and names of files."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H%M%S.%fZ")


def parse_stamp(text: Any) -> datetime:
    """Parse the time that `stamp` wrote."""
    return datetime.strptime(str(text), "%Y-%m-%dT%H%M%S.%fZ").replace(tzinfo=UTC)
