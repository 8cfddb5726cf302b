"""What ``test --processors`` keeps and reports of what it has tried: tables that grow, the course's own, a summary."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from companion.core.files import atomic_write

Row = dict[str, Any]
ANSWERS = ("key", "exercise", "answer", "capability", "cbwr", "threads", "starts", "refused", "said", "bars")


class Kept:
    """A table that grows row by row, each on the disk before the next is measured."""

    def __init__(self, path: Path, columns: Sequence[str]):
        self.path, self.columns = path, columns
        atomic_write(path, csv_text(columns, self.rows()))  # without the half row that a sudden end leaves

    def rows(self) -> list[Row]:
        """Return all whole rows."""
        text = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        rows = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
        return [row for row in rows if list(row) == list(self.columns) and None not in row.values()]

    def add(self, row: Row) -> None:
        """Append a row."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, self.columns, lineterminator="\n").writerow(row)


def is_right(job: Row) -> bool:
    """Return whether a job's or a row's answer is a right one."""
    return not job["answer"].startswith("wrong")


def table_row(row: Row) -> Row:
    """Return a row as the course keeps it: with the worst number that was measured beside each bar."""
    worst = "; ".join(f"{name}: {value:.5g}" for name, _, (_, value), _ in json.loads(row["bars"]))
    return {name: row[name] for name in ANSWERS[1:8]} | {"worst": worst or "-"}


def bar_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield each bar's place: between the worst number of right answers and the best one of those wrong answers that
    miss it. Where a bar moves with the inputs, numbers are given as they would be beside the bar of the worst.
    """
    right: dict[tuple[str, str, int], list[list[float]]] = {}
    wrong: dict[tuple[str, str, int], list[list[float]]] = {}
    for row in rows:
        for name, sense, worst, best in json.loads(row["bars"]):
            found = right if is_right(row) else wrong
            found.setdefault((row["exercise"], name, sense), []).extend([worst, best])
    for (exercise, name, sense), pairs in right.items():
        beyond = [sense * (value - bar) for bar, value in pairs]
        missed = [
            sense * (value - bar)
            for bar, value in wrong.get((exercise, name, sense), ())
            if sense * value < sense * bar
        ]
        bar = pairs[beyond.index(min(beyond))][0]
        yield {
            "exercise": exercise,
            "name": name,
            "sense": "at least" if sense > 0 else "at most",
            "bar": f"{bar:.5g}",
            "worst_right": f"{bar + sense * min(beyond):.5g}",
            "best_wrong": f"{bar + sense * max(missed):.5g}" if missed else "-",
            "best_right": f"{bar + sense * max(beyond):.5g}",
        }


def stands(bar: Row) -> bool:
    """Return whether a bar is farther from the worst right answer than that one is from the best, and as far from the
    best wrong one.
    """
    at, worst, best = (float(bar[name]) for name in ("bar", "worst_right", "best_right"))
    sense = 1 if bar["sense"] == "at least" else -1
    spread = abs(best - worst)
    clear = bar["best_wrong"] == "-" or abs(at - float(bar["best_wrong"])) >= spread
    return sense * (worst - at) > spread and clear


def summary(rows: Sequence[Row], bars: Sequence[Row], ran: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the report."""
    by_exercise: dict[str, list[Row]] = {}
    for row in filter(is_right, rows):
        by_exercise.setdefault(row["exercise"], []).append(row)
    yield "exercise: answers x settings x starts: refused"
    for exercise, own in by_exercise.items():
        answers = {row["answer"] for row in own}
        refused = sum(int(row["refused"]) for row in own)
        yield f"  {exercise}: {len(answers)} x {len(own) // len(answers)} x {own[0]['starts']}: {refused}"
    for row in rows:
        under = f"{row['capability']} {row['cbwr']}".strip()
        if is_right(row) and row["refused"] != "0":
            yield f"Refused: {row['exercise']}, {row['answer']}, {under}, {row['threads']} threads: {row['said']}"
        if not is_right(row) and row["refused"] != row["starts"]:
            yield f"Accepted: {row['exercise']}, {row['answer']}: {row['refused']} of {row['starts']} are refused"
    for bar in bars:
        yield (
            f"Bar: {bar['exercise']}, {bar['name']} {bar['sense']} {bar['bar']}: right {bar['worst_right']} to "
            f"{bar['best_right']}, wrong up to {bar['best_wrong']}" + (" (too near)" * (not stands(bar)))
        )
    for row in ran:
        if row["changed"] != "-":
            yield f"Changed: {row['lesson']}, {row['capability']}, start {row['start']}: {row['changed']}"
    yield f"{len(ran)} runs of lessons: {sum(row['changed'] != '-' for row in ran)} with another outcome"


def put(path: Path, rows: Sequence[Row], by: str, *, whole: bool) -> None:
    """Write ``rows`` as the table ``path``, which the course keeps; unless it is the ``whole`` one, what is there of
    others, ``by`` this column, stays.
    """
    new = {row[by] for row in rows}
    others = [] if whole else [row for row in read_csv(path) if row[by] not in new]
    together = sorted([*others, *rows], key=lambda row: (row[by], row.get("answer", "")))
    if together:
        atomic_write(path, csv_text(list(together[0]), together))


def read_csv(path: Path) -> list[Row]:
    """Read the rows of a table; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def csv_text(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a table as text."""
    text = io.StringIO()
    lines = csv.DictWriter(text, columns, lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue()
