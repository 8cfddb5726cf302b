"""Tables with a row for each exercise, made anew for some of them alone: another machine's rounding moves others."""

import csv
from collections.abc import Iterable
from pathlib import Path


def row_of(path: Path, exercise: str, made_by: str) -> dict[str, str]:
    """Return an exercise's row. AssertionError, with the command ``made_by`` that writes it, where there is none."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["exercise"] == exercise]
    assert len(rows) == 1, (
        f"{path.name} has {len(rows)} rows of {exercise}; PYTHONPATH=.:tests .venv/bin/python {made_by} {exercise}"
    )
    return rows[0]


def put_rows(path: Path, rows: Iterable[dict], there: Iterable[str]) -> None:
    """Write ``rows`` over those of their exercises, in the order of the exercises that are ``there``."""
    with path.open() as file:
        reader = csv.DictReader(file)
        known, columns = {row["exercise"]: row for row in reader}, reader.fieldnames
    known |= {row["exercise"]: row for row in rows}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[name] for name in there if name in known)
