"""What an instructor decides for a course, in ``grading/settings.toml``, without which there are no deadlines.

anonymous = true                       # pseudonyms in the form grader, in the summary and on the class's page

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
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any


class SettingsError(ValueError):
    """A file of settings, of the class or of overrides that is not as it should be; the message says where."""


@dataclass(frozen=True)
class Settings:
    """Deadlines by lesson, extensions by student and lesson, what lateness costs, and an LMS's names of the lessons."""

    anonymous: bool = False
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
    """Read the settings in a file; those of no file if there is none. Raises SettingsError."""
    if not path.exists():
        return Settings()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        late = table.pop("late", {})
        settings = Settings(**table, **late)
    except (tomllib.TOMLDecodeError, TypeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name}: {error}") from None
    dates = [*settings.deadlines.items(), *(item for own in settings.extensions.values() for item in own.items())]
    for name, date in dates:
        if not isinstance(date, datetime) or date.tzinfo is None:
            raise SettingsError(
                f"{path.name}: the deadline of {name} must be a date and time with its zone, is {date!r}"
            )
    for name, share in (("per_day", settings.per_day), ("at_most", settings.at_most)):
        if not (isinstance(share, int | float) and 0 <= share <= 1):
            raise SettingsError(f"{path.name}: {name} = {share!r}; must be from 0 to 1")
    return settings


def stamp(when: datetime) -> str:
    """Return a time as it stands in tables and names of files."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H%M%S.%fZ")


def parse_stamp(text: Any) -> datetime:
    """Parse the time that `stamp` wrote."""
    return datetime.strptime(str(text), "%Y-%m-%dT%H%M%S.%fZ").replace(tzinfo=UTC)
