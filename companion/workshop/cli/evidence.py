"""What runs measured of the evidence for claims, in a table with which tests compare ``companion/published``."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from companion.core.files import atomic_write
from companion.lesson.claims import by_size, statements
from companion.workshop.cli.setup import ROOT

TABLE = Path("tests/measured/runs.csv")
COLUMNS = "lesson", "claim", "seed", "ours", "interval", "fit", "rival", "exact", "fails"


def add(entries: Iterable[dict], root: Path = ROOT) -> None:
    """Write what each entry of a report measured in the place of what the table had of its lesson and seed."""
    rows = table_of_runs(root)
    for entry in entries:
        rows = [row for row in rows if (row["lesson"], row["seed"]) != (entry["lesson"], str(entry["seed"]))]
        rows += _measured(entry)
    rows.sort(key=lambda row: (row["lesson"], row["claim"], int(row["seed"])))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(root / TABLE, text.getvalue())


def table_of_runs(root: Path = ROOT) -> list[dict[str, str]]:
    """Return the rows of the table; none where there is none."""
    if not (root / TABLE).is_file():
        return []
    with (root / TABLE).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _measured(entry: dict) -> list[dict[str, str]]:
    """The rows of a run: of seed 0 all, of another only what each run measures for its own training seed."""
    known, rows = by_size(statements(entry["lesson"])), []
    for id, numbers in entry["evidence"].items():
        by_seed = len(numbers.get("ours", ())) == 1 < len(getattr(known[id], "ours", ()))
        if by_seed or entry["seed"] == 0:
            told = {name: " ".join(f"{number:.6g}" for number in values) for name, values in numbers.items()}
            rows.append({"lesson": entry["lesson"], "claim": id, "seed": str(entry["seed"])} | told)
    return rows
