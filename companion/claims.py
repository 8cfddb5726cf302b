"""A claim, its published figure, ours, and whether it holds: the table at the end of every lesson."""

import csv
import html
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

MIME = "application/vnd.companion.claims+json"
PUBLISHED = Path(__file__).parent / "published"


@dataclass(frozen=True)
class Claim:
    """One row. ``published``, ``checkpoint`` and ``run`` are figures as text: the source's, the shipped model's, this run's.

    ``holds`` must come out of a comparison of measured numbers.
    """

    id: str
    statement: str
    source: str
    published: str
    checkpoint: str
    run: str
    holds: bool


class Claims:
    """The claims of a lesson. Displayed as a table; ``verdicts`` prints what is the same on every machine.

    The table carries its rows along as JSON, from where ``python -m companion run`` collects them.
    """

    def __init__(self) -> None:
        self.rows: list[Claim] = []

    def add(
        self, id: str, statement: str, *, source: str, published: str, checkpoint: str = "-", run: str = "-", holds: bool | np.bool_
    ) -> None:
        """Append a row. Raises ValueError for an id that is taken, or a claim without a measured figure."""
        if any(row.id == id for row in self.rows):
            raise ValueError(f"id = {id!r}: there is such a claim already")
        if checkpoint == "-" and run == "-":
            raise ValueError(f"claim {id!r}: needs a measured figure, of the checkpoint or of this run")
        self.rows.append(Claim(id, statement, source, published, checkpoint, run, bool(holds)))

    def verdicts(self) -> None:
        """Print each claim's id and whether it holds."""
        for row in self.rows:
            print(f"{row.id}: {'holds' if row.holds else 'does not hold'}")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        heads = ("Claim", "Published", "Shipped checkpoint", "This run", "Holds")
        cells = [
            (f"{row.statement} ({row.source})", row.published, row.checkpoint, row.run, "yes" if row.holds else "no") for row in self.rows
        ]
        head = "".join(f'<th style="text-align:left">{name}</th>' for name in heads)
        body = "".join("<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>" for row in cells)
        return {
            "text/html": f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
            "text/plain": "\n".join(" | ".join(row) for row in [heads, *cells]),
            MIME: [asdict(row) for row in self.rows],
        }


def published_table(name: str) -> tuple[list[int], np.ndarray]:
    """A published table of similarities: its steps, and an array (steps, layers), NaN where the source is illegible.

    Raises ValueError, naming what there is, for an unknown name.
    """
    path = PUBLISHED / f"{name}.csv"
    if not path.is_file():
        raise ValueError(f"name = {name!r}: must be one of {', '.join(sorted(file.stem for file in PUBLISHED.glob('*.csv')))}")
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [int(row[0]) for row in rows], np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows])
