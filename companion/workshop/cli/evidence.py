"""What runs measured of the evidence for claims, in a table with which tests compare ``companion/published``; and what
became of claims where everything was trained longer.
"""

from collections.abc import Iterable
from pathlib import Path

import nbformat

from companion.core.files import atomic_write
from companion.core.measuring import MEASURED
from companion.core.recipe import kept_in, recipes, times
from companion.lesson.claims import by_size, statements
from companion.workshop.cli.lessons import select_lessons
from companion.workshop.cli.outcomes import csv_text, read_csv
from companion.workshop.cli.setup import ROOT
from companion.workshop.site.again import rests_on

TABLE = Path("tests/measured/runs.csv")
COLUMNS = "lesson", "claim", "seed", "ours", "interval", "fit", "rival", "exact", "fails"
LONGER = Path("tests/measured/longer.csv")
BUDGET = "lesson", "claim", "times", "seed", "expected", "checkpoint", "run"


def add(entries: Iterable[dict], root: Path = ROOT) -> None:
    """Write what each entry of a report measured in the place of what the table had of its lesson and seed. Where
    everything was trained longer (`companion.core.recipe.times`), another table gets what became of the claims, each in
    its own place: those that rest on loops of a notebook's own come from ``tests/loops.py``.
    """
    path, columns, found = (TABLE, COLUMNS, _measured) if times() == 1 else (LONGER, BUDGET, _longer)
    rows = table_of_runs(root, path)
    for entry in entries:
        run, new = (entry["lesson"], str(entry["seed"]), str(times())), found(entry)
        replaced = {row["claim"] for row in (rows if times() == 1 else new)}
        rows = [
            row
            for row in rows
            if (row["lesson"], row["seed"], row.get("times", "1")) != run or row["claim"] not in replaced
        ] + new
    put(rows, path, columns, root)


def put(rows: list[dict[str, str]], path: Path, columns: tuple[str, ...], root: Path = ROOT) -> None:
    """Write a table's rows in the order of lessons and claims.

    ``rows``: its rows, from column to text.
    ``path``: which table.
    ``columns``: its columns.
    ``root``: the course's folder.
    """
    rows.sort(key=lambda row: (row["lesson"], row["claim"], int(row.get("times", "1")), int(row["seed"])))
    atomic_write(root / path, csv_text(columns, rows))


def table_of_runs(root: Path = ROOT, path: Path = TABLE) -> list[dict[str, str]]:
    """Return the rows of a table; none where there is none."""
    return read_csv(root / path)


def _longer(entry: dict) -> list[dict[str, str]]:
    """What became of each claim on training in a run with everything trained longer: of one that comes from recipes and
    from tables that were measured longer, and from none that was not. Tables over budgets have longer training in them.
    """
    known, lesson = statements(entry["lesson"]), select_lessons([entry["lesson"]])[0]
    tables = {path.stem for path in MEASURED.glob("*.csv") if not path.stem.endswith("-budgets")}
    longer = {path.stem for path in kept_in(MEASURED).glob("*.csv")} | set(recipes())
    rests = [rests_on(nbformat.read(path, as_version=4), tables | longer) for path in lesson.notebooks]
    found = {id: set().union(*(each.get(id, ()) for each in rests)) for id in known}
    found = {id for id, names in found.items() if names & longer and not names & (tables - longer)}
    head = {"lesson": entry["lesson"], "times": str(times()), "seed": str(entry["seed"])}
    return [head | became(claim) for claim in entry["claims"] if known[claim["id"]].trained and claim["id"] in found]


def became(claim: dict) -> dict[str, str]:
    """Return what became of a claim, by its row in a report."""
    figures = {name: claim[name] for name in ("checkpoint", "run") if claim[name] != "-"}
    return {"claim": claim["id"], "expected": " ".join(sorted(set(claim["expected"].values())))} | figures


def _measured(entry: dict) -> list[dict[str, str]]:
    """The rows of a run: of seed 0 all, of another only what each run measures for its own training seed."""
    known, rows = by_size(statements(entry["lesson"])), []
    for id, numbers in entry["evidence"].items():
        by_seed = len(numbers.get("ours", ())) == 1 < len(getattr(known[id], "ours", ()))
        if by_seed or entry["seed"] == 0:
            told = {name: " ".join(f"{number:.6g}" for number in values) for name, values in numbers.items()}
            rows.append({"lesson": entry["lesson"], "claim": id, "seed": str(entry["seed"])} | told)
    return rows
