"""The tables that an instructor keeps.

grading/roster.csv                    student, and if there are: name, section, canvas_id, moodle_id
grading/NN-topic/overrides.csv        student, question, points, reason
"""

import csv
import math
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from companion.workshop.grading.course.settings import SettingsError
from companion.workshop.grading.notebook.handout import Handout


@dataclass(frozen=True)
class Override:
    """Points that a person gives instead, and why. They stay, however often a submission is marked again."""

    points: float
    reason: str


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """Read what the roster says of each student; empty if there is none."""
    rows = _rows(path, {"student"})
    roster = {row["student"]: row for row in rows}
    if len(roster) != len(rows):
        raise SettingsError(f"{path.name}: a student stands there twice")
    return roster


def read_overrides(path: Path, handout: Handout) -> dict[tuple[str, str], Override]:
    """Points by (student, question)."""
    overrides = {}
    most = {question.id: question.points for question in handout.questions}
    for row in _rows(path, {"student", "question", "points", "reason"}):
        where = f"{path.name}: {row['student']}, {row['question']}"
        if row["question"] not in most:
            raise SettingsError(f"{where}: there is no such question; there is {', '.join(most)}")
        if not row["reason"]:
            raise SettingsError(f"{where}: a reason is missing")
        try:
            points = float(row["points"])
        except ValueError:
            points = math.nan
        if not 0 <= points <= most[row["question"]]:
            raise SettingsError(f"{where}: points = {row['points']!r}; must be from 0 to {most[row['question']]:g}")
        overrides[row["student"], row["question"]] = Override(points, row["reason"])
    return overrides


def _rows(path: Path, needed: set[str]) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if lacking := needed - set(reader.fieldnames or []):
            raise SettingsError(f"{path.name}: the column {', '.join(sorted(lacking))} is missing")
        rows = [
            {key: unicodedata.normalize("NFC", value or "").strip() for key, value in row.items() if key}
            for row in reader
        ]
    return [row for row in rows if row["student"]]
