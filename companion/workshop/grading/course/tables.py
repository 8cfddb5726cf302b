"""The tables that an instructor keeps.

grading/roster.csv                    student, and if there are: name, section, canvas_id, moodle_id
grading/NN-topic/overrides.csv        student, question, points, reason

They are read as a spreadsheet saves them: with commas, semicolons or tabs, in the encodings of `settings.decoded`.
"""

import csv
import io
import math
import os
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from companion.core.files import read_text
from companion.workshop.grading.course.settings import SettingsError
from companion.workshop.grading.notebook.handout import Handout

DELIMITERS = ",;\t"  # a spreadsheet takes the second where numbers have decimal commas, the third for "Unicode text"


@dataclass(frozen=True)
class Override:
    """Points that a person gives instead, and why. They stay, however often a submission is marked again."""

    points: float
    reason: str


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """Read what the roster says of each student; empty if there is none. Raises SettingsError, also where two students
    have one id of an LMS.
    """
    rows = _rows(path, ("student",))
    for kind in ("student", "canvas_id", "moodle_id"):
        whose: dict[str, str] = {}
        for row in rows:
            student, value = row["student"], row.get(kind)
            if value and value in whose:
                both = "" if kind == "student" else f", of {whose[value]} and of {student}"
                raise SettingsError(f"{path.name}: the {kind} {value} is listed twice{both}; must be listed once")
            whose[value or ""] = student
    return {row["student"]: row for row in rows}


def read_overrides(path: Path, handout: Handout) -> dict[tuple[str, str], Override]:
    """Points by (student, question). Raises SettingsError."""
    overrides: dict[tuple[str, str], Override] = {}
    most = {question.id: question.points for question in handout.questions}
    for row in _rows(path, ("student", "question", "points", "reason")):
        where = f"{path.name}: {row['student']}, {row['question']}"
        if row["question"] not in most:
            raise SettingsError(f"{where}: the question must be one of {', '.join(most)}")
        if (row["student"], row["question"]) in overrides:
            raise SettingsError(f"{where}: is listed twice; must be listed once, as only one can count")
        if not row["reason"]:
            raise SettingsError(f"{where}: must have a reason")
        try:
            points = float(row["points"].replace(",", "."))
        except ValueError:
            points = math.nan
        if not 0 <= points <= most[row["question"]]:
            raise SettingsError(f"{where}: points = {row['points']!r}; must be from 0 to {most[row['question']]:g}")
        overrides[row["student"], row["question"]] = Override(points, row["reason"])
    return overrides


def _rows(path: Path, needed: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a table in which all ``needed`` columns and all students are named."""
    if not os.path.lexists(path):
        return []
    lines = io.StringIO(unicodedata.normalize("NFC", read_text(path)), newline="")
    columns, delimiter = _head(path.name, lines.readline(), needed)
    reader, rows = csv.reader(lines, delimiter=delimiter), []
    try:
        for row in reader:
            where, cells = f"{path.name}: line {reader.line_num + 1}", [cell.strip() for cell in row]
            if any(cells[len(columns) :]):
                raise SettingsError(f"{where} has {len(cells)} cells; must have {len(columns)}, as the first line")
            named = list(zip_longest(columns, cells[: len(columns)], fillvalue=""))
            if any(cell for column, cell in named if not column):
                raise SettingsError(f"{where} has a cell in a column that the first line does not name")
            if any(cells) and not dict(named)["student"]:
                raise SettingsError(f"{where}: must have a student")
            rows.append(dict(named))
    except csv.Error as error:
        raise SettingsError(f"{path.name}: line {reader.line_num + 1}: {error}") from None
    return [row for row in rows if row["student"]]


def _head(file: str, line: str, needed: tuple[str, ...]) -> tuple[list[str], str]:
    """The columns that the first line names, and what stands between them: the first of DELIMITERS that gives all."""
    found = [[cell.strip().lower() for cell in next(csv.reader([line], delimiter=each), [])] for each in DELIMITERS]
    columns, delimiter = max(zip(found, DELIMITERS, strict=True), key=lambda each: len({*needed} & {*each[0]}))
    if lacking := [name for name in needed if name not in columns]:
        raise SettingsError(f"{file}: the column {', '.join(lacking)} is missing; the first line is {line.strip()!r}")
    if twice := [name for name, times in Counter(filter(None, columns)).items() if times > 1]:
        raise SettingsError(f"{file}: the first line names {', '.join(twice)} twice; must name each column once")
    return columns, delimiter
