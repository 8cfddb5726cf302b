"""A claim, its published figure, ours, and whether it holds: the table at the end of every lesson.

What a source says lies in ``published/NN-topic.toml``, a table for each claim in the lesson's order, and the sources in
``published/references.bib``. A lesson adds what it measured, and judges it, in one line:

    claims = Claims("03-lstm-vs-transformer", SCALE)
    claims.record("lstm-forgets", checkpoint=f"{least:.1f} times", holds=least >= 2)
"""

import csv
import html
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pybtex.database import BibliographyData, parse_file

from companion import SCALES

MIME = "application/vnd.companion.claims+json"
PUBLISHED = Path(__file__).parents[1] / "published"
HOLDS, FAILS, UNASSESSED = "holds", "does not hold", "not assessed"
COLUMNS = ("checkpoint", "run")


@dataclass(frozen=True)
class Statement:
    """A claim before anything is measured: a table of ``published/NN-topic.toml``.

    ``published`` is the figure as the source prints it, and ``where`` the page, section, table or figure; ``threshold``
    says in words what must come out. At least one of ``control`` (a negative control, and what it shows), ``interval``
    (what is estimated with its uncertainty) and ``reference`` (an independent computation) says what could make it
    fail.
    """

    id: str
    statement: str
    source: str
    where: str
    published: str
    threshold: str
    control: str = ""
    interval: str = ""
    reference: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.default != "" and not getattr(self, field.name).strip():
                raise ValueError(f"claim {self.id!r}: {field.name} must not be empty")
        guards = [self.control, self.interval, self.reference]
        if not any(guards) or any(guard.lower().startswith(("none", "-", "todo")) for guard in guards):
            raise ValueError(f"claim {self.id!r}: needs a control, an interval or a reference that could make it fail")
        if self.source not in ("course", *bibliography().entries):
            raise ValueError(f"claim {self.id!r}: source = {self.source!r}: is no key of references.bib")
        if "-" in (self.where, self.published) and self.source != "course":
            raise ValueError(f"claim {self.id!r}: where and published may be '-' for a claim of the course's own alone")


@dataclass(frozen=True)
class Claim:
    """A row of the table: a `Statement`, its source readable, beside what the shipped checkpoint and this run gave.

    ``verdict`` is one of "holds", "does not hold", "not assessed"; ``verdicts`` has one for each column with a figure.
    """

    id: str
    statement: str
    source: str
    where: str
    published: str
    threshold: str
    control: str
    interval: str
    reference: str
    checkpoint: str
    run: str
    verdict: str
    verdicts: dict[str, str]


class Claims:
    """The claims of a lesson. Displayed as a table; ``verdicts`` prints what is the same on every machine.

    The table carries its rows along as JSON, from where ``python -m companion run`` collects them.
    At scale "smoke" models are too small to show anything: there every verdict is "not assessed".
    """

    def __init__(self, lesson: str, scale: str = "course") -> None:
        """The claims of ``published/<lesson>.toml``, judged at ``scale``: smoke, course or paper."""
        if scale not in SCALES:
            raise ValueError(f"scale = {scale!r}: must be one of {', '.join(SCALES)}")
        self.lesson, self.scale = lesson, scale
        self.statements = statements(lesson)
        self.rows: list[Claim] = []

    def record(
        self,
        id: str,
        *,
        checkpoint: str = "-",
        run: str = "-",
        holds: bool | np.bool_ | Mapping[str, bool | np.bool_ | None] | None,
    ) -> None:
        """Append a row: the figures that were measured, as text, and what a comparison of the numbers gave.

        ``id``: the claim's, in the lesson's file.
        ``checkpoint``: the shipped model's figure.
        ``run``: this run's.
        ``holds``: judges what is given, or is a mapping from column to verdict; None is "not assessed".

        Raises ValueError for an id that the lesson's file lacks or that is taken, a claim without a measured figure,
        and a verdict on a column without one.
        """
        if id not in self.statements:
            raise ValueError(f"id = {id!r}: must be one of {', '.join(self.statements)}")
        if any(row.id == id for row in self.rows):
            raise ValueError(f"id = {id!r}: there is such a claim already")
        measured = {name: value for name, value in zip(COLUMNS, (checkpoint, run), strict=True) if value != "-"}
        if not measured:
            raise ValueError(f"claim {id!r}: needs a measured figure, of the checkpoint or of this run")
        if isinstance(holds, Mapping):
            if not holds or not set(holds) <= set(measured):
                raise ValueError(f"claim {id!r}: holds judges {sorted(holds)}; there are figures in {list(measured)}")
            judged = [self._verdict(value) for value in holds.values()]
            overall = next((verdict for verdict in (FAILS, UNASSESSED) if verdict in judged), HOLDS)
            verdicts = {name: self._verdict(holds.get(name)) for name in measured}
        else:
            overall = self._verdict(holds)
            verdicts = dict.fromkeys(measured, overall)
        statement = asdict(self.statements[id])
        statement["source"] = cite(statement["source"], statement["where"])
        self.rows.append(Claim(**statement, checkpoint=checkpoint, run=run, verdict=overall, verdicts=verdicts))

    def _verdict(self, holds: bool | np.bool_ | None) -> str:
        if holds is None or self.scale == "smoke":
            return UNASSESSED
        return HOLDS if holds else FAILS

    def verdicts(self) -> None:
        """Print each claim's id and its verdict."""
        for row in self.rows:
            print(f"{row.id}: {row.verdict}")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        heads = ("Claim", "Published", "Holds if", "Checked by", "Shipped checkpoint", "This run", "Verdict")
        cells = [_cells(row) for row in self.rows]
        head = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in heads)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>"
            for row in cells
        )
        return {
            "text/html": f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
            "text/plain": "\n".join(" | ".join(row) for row in [heads, *cells]),
            MIME: [asdict(row) for row in self.rows],
        }


def _cells(row: Claim) -> tuple[str, ...]:
    """A row as it is shown. A column whose verdict is not the row's says so beside its figure."""
    guards = [(row.control, "control"), (row.interval, "interval"), (row.reference, "reference")]
    figures = [
        f"{value} ({row.verdicts[name]})" if row.verdicts.get(name, row.verdict) != row.verdict else value
        for name, value in zip(COLUMNS, (row.checkpoint, row.run), strict=True)
    ]
    return (
        f"{row.statement} ({row.source})",
        row.published,
        row.threshold,
        "; ".join(f"{name}: {text}" for text, name in guards if text),
        *figures,
        row.verdict,
    )


def statements(lesson: str) -> dict[str, Statement]:
    """Read the statements of ``published/<lesson>.toml``, by id, in order. Raises ValueError, naming the claim."""
    path = PUBLISHED / f"{lesson}.toml"
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in PUBLISHED.glob("*.toml")))
        raise ValueError(f"lesson = {lesson!r}: must be one of {there}")
    return parse_claims(path.read_text(encoding="utf-8"))


def parse_claims(text: str) -> dict[str, Statement]:
    """Parse the statements of a TOML text, by id. Raises ValueError for a key that is missing or that no claim has."""
    found = {}
    for id, table in tomllib.loads(text).items():
        known = {field.name: field.default == "" for field in fields(Statement) if field.name != "id"}
        if not isinstance(table, dict):
            raise ValueError(f"claim {id!r}: is no table")
        if not set(table) <= set(known):
            raise ValueError(f"claim {id!r}: has the keys {', '.join(table)}; there are {', '.join(known)}")
        missing = [name for name, optional in known.items() if not optional and name not in table]
        if missing:
            raise ValueError(f"claim {id!r}: lacks {', '.join(missing)}")
        for name, value in table.items():
            if not isinstance(value, str):
                raise ValueError(f"claim {id!r}: {name} = {value!r}: must be a text")
        found[id] = Statement(id, **table)
    return found


@cache
def bibliography() -> BibliographyData:
    """Read what the course cites: ``published/references.bib``."""
    return parse_file(PUBLISHED / "references.bib", bib_format="bibtex")


def cite(key: str, where: str = "-") -> str:
    """Return a source as the text names it: ``cite("fu2024", "figure 2")`` is "Fu et al. 2024, figure 2"."""
    if key == "course":
        name = "this course"
    else:
        entry = bibliography().entries[key]
        people = [" ".join(person.prelast_names + person.last_names) for person in entry.persons["author"]]
        short = " and ".join(people) if len(people) <= 2 else f"{people[0]} et al."
        name = f"{short} {entry.fields['year']}"
    return name if where == "-" else f"{name}, {where}"


def published_table(name: str) -> tuple[list[int], np.ndarray]:
    """Read a published table: its first column, whole numbers such as steps, and an array (rows, further columns), NaN
    where the source has no figure or an illegible one.

    Raises ValueError, naming what there is, for an unknown name.
    """
    path = PUBLISHED / f"{name}.csv"
    if not path.is_file():
        raise ValueError(
            f"name = {name!r}: must be one of {', '.join(sorted(file.stem for file in PUBLISHED.glob('*.csv')))}"
        )
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return [int(row[0]) for row in rows], np.array(
        [[float(cell) if cell else np.nan for cell in row[1:]] for row in rows]
    )
