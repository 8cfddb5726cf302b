"""A claim, its published figure, ours, and what to believe.

What a source says lies in ``published/NN-topic.toml``, a table for each claim in the lesson's order, with what decides
its verdict (`companion.lesson.verdicts`), and the sources in ``published/references.bib``. The lesson shows what the
learner has seen beside it; *further* has the whole table:

    claims = Claims("03-lstm-vs-transformer", SCALE)
    claims.saw("lstm-forgets", f"{least:.1f} times")
    claims.believe({"lstm-forgets": "An LSTM loses what it has read long ago."})

    claims.record("lstm-forgets", checkpoint=f"{least:.1f} times", holds=least >= 2)
"""

import csv
import html
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from companion import SCALES
from companion.core.extras import Extra
from companion.core.files import read_toml
from companion.lesson.verdicts import NONE_PUBLISHED, UNASSESSED, Construction, Experiment, decide, too_few

with Extra("lessons"):
    from pybtex.database import BibliographyData, parse_file

MIME = "application/vnd.companion.claims+json"
EVIDENCE = "application/vnd.companion.evidence+json"
PUBLISHED = Path(__file__).parents[1] / "published"
KINDS = {"theorem": Construction, "experiment": Experiment, "course": None, "check": None}  # and what decides of it
EXPECTED, UNEXPECTED = "as expected", "not as expected"
COLUMNS = ("checkpoint", "run")
READ = {
    str: (str, "a text"),
    bool: (bool, "true or false"),
    tuple[str, ...]: (list, "a list of texts"),
    Construction | Experiment | None: (dict, "a table"),
    "tuple[Experiment, ...]": (list, "a list of tables"),
}
MOST = 6  # rows of what to believe
NOT_MEASURED = "not measured: its cell has not run, or has failed"


@dataclass(frozen=True)
class Statement:
    """A claim before anything is measured: a table of ``published/NN-topic.toml``.

    ``kind`` is "theorem" (or a construction) and "experiment" of a source's, "course" for a claim of the course's own,
    "check" for what is no claim: a control, an equality with PyTorch, a calibration. ``published`` is the figure as the
    source prints it, and ``where`` the page, section, table or figure; ``threshold`` says in words what must come out
    of a run. At least one of ``control`` (a negative control, and what it shows), ``interval`` (what is estimated with
    its uncertainty) and ``reference`` (an independent computation) says what could make it fail. ``trained``, of what
    training finds, is the budget for which it is said: "4,000 steps". ``evidence``, of a source's claim alone, is what
    decides its verdict.
    """

    id: str
    kind: str
    statement: str
    source: str
    where: str
    published: str
    threshold: str
    control: str = ""
    interval: str = ""
    reference: str = ""
    trained: str = ""
    evidence: Construction | Experiment | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.default != "" and field.name != "evidence" and not getattr(self, field.name).strip():
                raise ValueError(f"claim {self.id!r}: {field.name} = {getattr(self, field.name)!r}: must not be empty")
        guards = [self.control, self.interval, self.reference]
        if not any(guards) or any(guard.lower().startswith(("none", "-", "todo")) for guard in guards):
            raise ValueError(
                f"claim {self.id!r}: must name a control, an interval or a reference, by which it could fail"
            )
        if self.source not in ("course", *bibliography().entries):
            raise ValueError(
                f"claim {self.id!r}: source = {self.source!r}: must be 'course' or a key of references.bib"
            )
        if "-" in (self.where, self.published) and self.source != "course":
            raise ValueError(
                f"claim {self.id!r}: where = {self.where!r}, published = {self.published!r}: may be '-' only where "
                "source = 'course'"
            )
        if self.kind != "check" and (self.kind == "course") != (self.source == "course"):
            due = "'course'" if self.source == "course" else "'theorem' or 'experiment'"
            said = f"kind = {self.kind!r}: must be {due}, or 'check'"
            raise ValueError(f"claim {self.id!r}: {said}, where source = {self.source!r}")

    def verdict(self) -> str:
        """Return what became of a source's claim, by what is stored; empty for the others, which are not judged."""
        return "" if self.evidence is None else decide(self.evidence)


@dataclass(frozen=True)
class Claim:
    """A row: a `Statement`, its source readable, beside what the shipped checkpoint and this run gave.

    ``expected`` says for each column with a judged figure whether it came out "as expected", by the course's own bar.
    ``verdict`` is the source's, by what is stored (see `companion.lesson.verdicts`), and ``why`` what it rests on.
    """

    id: str
    kind: str
    statement: str
    source: str
    where: str
    published: str
    threshold: str
    control: str
    interval: str
    reference: str
    trained: str
    checkpoint: str
    run: str
    expected: dict[str, str]
    verdict: str
    why: str


class Claims:
    """The claims of a lesson. Displayed as tables; ``verdicts`` prints what is the same on every machine.

    The tables carry their rows along as JSON, from where ``python -m companion run`` collects them.
    At scale "smoke" models are too small to show anything: there nothing is assessed.
    """

    def __init__(self, lesson: str, scale: str = "course") -> None:
        """Read the claims of ``published/<lesson>.toml``, seen at ``scale``: smoke, course or paper."""
        if scale not in SCALES:
            raise ValueError(f"scale = {scale!r}: must be one of {', '.join(SCALES)}")
        self.lesson, self.scale = lesson, scale
        self.statements = statements(lesson)
        self.rows: list[Claim] = []
        self.measured: dict[str, dict[str, list[float]]] = {}

    def evidence(self, id: str, *, beside: int = 0, **measured: Any) -> None:
        """Keep what this run measured for a claim's evidence; tests compare the file with it. Nothing at smoke scale.

        ``id``: the claim's, which either notebook of the lesson records.
        ``beside``: of which of the sizes beside the one that decides, counted from 1; 0 is that one.
        ``measured``: numbers, or whether it holds, by the field of its `Experiment` or `Construction`.

        Raises ValueError for a claim that has no such evidence.
        """
        key = f"{id}/{beside}" if beside else id
        decides = by_size(self.statements).get(key)
        if not measured or not all(hasattr(decides, name) for name in measured):
            raise ValueError(f"id = {key!r}: must be a claim whose evidence has {', '.join(measured) or 'numbers'}")
        if decides is None or decides.stored:
            raise ValueError(f"id = {key!r}: must be a claim whose evidence comes from a run, not from stored tables")
        if self.scale != "smoke":
            for name, value in measured.items():
                self.measured.setdefault(key, {})[name] = [float(each) for each in np.ravel(value)]

    def saw(
        self,
        id: str,
        run: str,
        *,
        exact: bool | np.bool_ | None = None,
        fails: bool | np.bool_ | None = None,
    ) -> None:
        """Append a row of what the learner has seen, for `believe`; a cell that runs again replaces its row.

        ``id``: the claim's, in the lesson's file.
        ``run``: this run's figure, which is not judged.
        ``exact``: of a theorem alone, whether this run agrees with it.
        ``fails``: of a theorem alone, whether the world in which it must fail does.

        Raises ValueError as `record` does, and for ``exact`` of anything but a theorem.
        """
        if exact is not None and id in self.statements and self.statements[id].kind != "theorem":
            raise ValueError(f"claim {id!r}: exact = {exact}: must be None, as this claim is not a theorem")
        self.record(id, run=run, holds=exact, fails=fails)

    def believe(self, words: Mapping[str, str]) -> "Tables":
        """Return the lesson's end, to be displayed: what the paper says, what you saw, what to believe. A claim whose
        cell did not run, or failed, is said to be not measured.

        ``words``: for each claim of the notebook, by id, what to believe, in a sentence.

        Raises ValueError for more than six claims, words without a claim, and a claim that was seen without words.
        """
        seen = {row.id: row for row in self.rows}
        if not set(seen) <= set(words) <= set(self.statements) or len(words) > MOST:
            raise ValueError(
                f"words = {list(words)}: must be for claims of the lesson, among them those that were seen, "
                f"{list(seen)}, at most {MOST}"
            )
        cells = []
        for id in filter(words.__contains__, self.statements):
            run, told = (seen[id].run, self._told(seen[id]).capitalize()) if id in seen else (NOT_MEASURED, "")
            cells.append((_said(self.statements[id]), run, ". ".join(filter(None, (told, words[id])))))
        return Tables({"": (("The paper says", "You saw", "Believe"), cells)}, self.rows, self.measured)

    def _told(self, row: Claim) -> str:
        """Return the verdict, and of what there is too little for another, if there is."""
        evidence = self.statements[row.id].evidence
        few = too_few(evidence) if evidence and self.scale != "smoke" else ""
        return f"{_told(row)} ({few})" if few else _told(row)

    def record(
        self,
        id: str,
        *,
        checkpoint: str = "-",
        run: str = "-",
        holds: bool | np.bool_ | Mapping[str, bool | np.bool_ | None] | None,
        fails: bool | np.bool_ | None = None,
    ) -> None:
        """Append a row: the figures that were measured, as text, and whether they are as expected. A row of the same
        claim is replaced, as a cell may run again.

        ``id``: the claim's, in the lesson's file.
        ``checkpoint``: the shipped model's figure.
        ``run``: this run's.
        ``holds``: whether what is given passes the course's own bar, or a mapping from column to that; None is "not
        assessed". It decides no source's verdict, but a run that contradicts a theorem is told beside it.
        ``fails``: of a theorem alone, whether the world in which it must fail does.

        Raises ValueError for an id that the lesson's file lacks, a claim without a measured figure, and a judgement on
        a column without one.
        """
        if id not in self.statements:
            raise ValueError(f"id = {id!r}: must be one of {', '.join(self.statements)}")
        measured = [name for name, value in zip(COLUMNS, (checkpoint, run), strict=True) if value != "-"]
        if not measured:
            raise ValueError(f"claim {id!r}: must have a measured figure, as checkpoint=... or run=...")
        expected = self._expected(id, measured, holds, fails)
        statement = self.statements[id]
        verdict, why = statement.verdict(), statement.evidence.why() if statement.evidence else ""
        if verdict and self.scale == "smoke":
            verdict, why = UNASSESSED, "smoke scale"
        elif statement.kind == "theorem" and UNEXPECTED in expected.values():
            why = f"but this run contradicts it; {why}"
        texts = {field.name: getattr(statement, field.name) for field in fields(statement) if field.name != "evidence"}
        texts["source"] = cite(statement.source, statement.where)
        row = Claim(**texts, checkpoint=checkpoint, run=run, expected=expected, verdict=verdict, why=why)
        place = next((place for place, before in enumerate(self.rows) if before.id == id), len(self.rows))
        self.rows[place : place + 1] = [row]

    def _expected(self, id: str, measured: list[str], holds: Any, fails: Any) -> dict[str, str]:
        """Return whether the figures are as expected, by column; of a theorem, keep what was found as evidence."""
        if self.statements[id].kind == "theorem" and holds is not None and not isinstance(holds, Mapping):
            holds = self._theorem_holds(id, bool(holds), fails)
        elif fails is not None:
            raise ValueError(
                f"claim {id!r}: fails = {fails}: must be None, except for a theorem with holds = True or False"
            )
        judged = _by_column(id, holds, measured)
        if self.scale == "smoke":
            return {}
        return {name: EXPECTED if passed else UNEXPECTED for name, passed in judged.items() if passed is not None}

    def _theorem_holds(self, id: str, exact: bool, fails: bool | np.bool_ | None) -> bool:
        """Keep as evidence what this run found of a theorem, and return whether it agrees: the theorem is exact, and
        fails in its negative world, if that was tried.
        """
        if fails is None:
            self.evidence(id, exact=exact)
            return exact
        self.evidence(id, exact=exact, fails=fails)
        return exact and bool(fails)

    def verdicts(self) -> None:
        """Print the id of each claim of a source's, and what became of it; where there are none, say so."""
        judged = [f"{row.id}: {_told(row)}" for row in self.rows if row.verdict]
        print("\n".join(judged or [NONE_PUBLISHED]))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        heads = "Published", "Our bar", "Checked by", "Shipped checkpoint", "This run"
        claims = [row for row in self.rows if row.kind != "check"]
        checks = [row for row in self.rows if row.kind == "check"]
        parts = {
            "Claims": (("Claim", "Verdict", *heads), [(_stated(row), _judged(row), *_cells(row)) for row in claims]),
            "Checks": (("Check", *heads), [(_stated(row), *_cells(row)) for row in checks]),
        }
        parts = {title: part for title, part in parts.items() if part[1]}
        return Tables(parts, self.rows, self.measured)._repr_mimebundle_()


def _by_column(id: str, holds: Any, measured: list[str]) -> Mapping[str, bool | np.bool_ | None]:
    """Return ``holds`` as a mapping from column. Raises ValueError for a column without a figure that was measured."""
    if not isinstance(holds, Mapping):
        return dict.fromkeys(measured, holds)
    if not holds or not set(holds) <= set(measured):
        raise ValueError(
            f"claim {id!r}: holds has the columns {sorted(holds)}: must have one or more of those with a figure, "
            f"{measured}"
        )
    return holds


@dataclass(frozen=True)
class Tables:
    """Tables to be displayed, ``parts``: heads and cells, by title; and what they carry along as JSON: ``rows``, and
    what was ``measured``.
    """

    parts: dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]]
    rows: list[Claim]
    measured: dict[str, dict[str, list[float]]]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        lines, pages = [], []
        for title, (heads, cells) in self.parts.items():
            head = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in heads)
            body = "".join(
                "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>"
                for row in cells
            )
            caption = f'<caption style="text-align:left">{title}</caption>' if title else ""
            pages.append(f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
            lines += [*([title] if title else []), *(" | ".join(row) for row in [heads, *cells])]
        carried = {MIME: [asdict(row) for row in self.rows], EVIDENCE: self.measured}
        return {"text/html": "".join(pages), "text/plain": "\n".join(lines), **carried}


def _said(claim: Statement) -> str:
    """Return the claim, its published figure, and whose it is: the source's, or the course's own."""
    said = claim.statement if claim.published == "-" else f"{claim.statement}: {claim.published}"
    whose = "this course's own claim, no paper's" if claim.source == "course" else cite(claim.source, claim.where)
    return f"{said} ({whose})"


def _told(row: Claim) -> str:
    """Return the verdict, and that this run contradicts it, if it does."""
    contradicted = row.kind == "theorem" and UNEXPECTED in row.expected.values()
    return f"{row.verdict}, but this run contradicts it" if contradicted else row.verdict


def _stated(row: Claim) -> str:
    """Return the claim, its source, and how long what it is said of was trained here."""
    return f"{row.statement} ({row.source}{f'; here after {row.trained}' if row.trained else ''})"


def _judged(row: Claim) -> str:
    """Return the verdict and what it rests on; of a claim of the course's own, whose it is."""
    return f"{row.verdict}: {row.why}" if row.verdict else "the course's own"


def _cells(row: Claim) -> tuple[str, ...]:
    """Return the published figure, the threshold, what guards it and what was measured, as they are shown."""
    claim = asdict(row)
    return (row.published, row.threshold, guarded(claim), *(figure(claim, column) for column in COLUMNS))


def figure(claim: Mapping[str, Any], column: str) -> str:
    """Return the figure of a row's column, and beside it whether it is as expected, if it was judged."""
    judged = claim["expected"].get(column)
    return f"{claim[column]} ({judged})" if judged else claim[column]


def guarded(claim: Mapping[str, Any]) -> str:
    """Return what could make a row fail: its control, its interval, its reference."""
    return "; ".join(f"{name}: {claim[name]}" for name in ("control", "interval", "reference") if claim[name])


def statements(lesson: str) -> dict[str, Statement]:
    """Read the statements of ``published/<lesson>.toml``, by id, in order. Raises ValueError, naming the claim."""
    path = PUBLISHED / f"{lesson}.toml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in PUBLISHED.glob("*.toml")))
        raise ValueError(f"lesson = {lesson!r}: must be one of {known}")
    return parse_claims(read_toml(path))


def parse_claims(tables: Mapping[str, Any]) -> dict[str, Statement]:
    """Parse the statements in tables, by id. Raises ValueError for a key that is missing or that no claim has."""
    claims = {}
    for id, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"claim {id!r}: is {table!r}; must be a table: [{id}], and its keys below")
        texts = _read(id, table, Statement)
        if texts["kind"] not in KINDS:
            raise ValueError(f"claim {id!r}: kind = {texts['kind']!r}: must be one of {', '.join(KINDS)}")
        decides = KINDS[texts["kind"]]
        if decides and "evidence" not in texts:
            raise ValueError(
                f"claim {id!r}: must have evidence, from which its verdict is decided, as kind = {texts['kind']!r}"
            )
        if not decides and "evidence" in texts:
            raise ValueError(
                f"claim {id!r}: must have no evidence, as nothing is decided from it where kind = {texts['kind']!r}"
            )
        if decides:
            try:
                texts["evidence"] = decides(**_read(f"{id}.evidence", texts["evidence"], decides))
            except ValueError as error:
                raise error if str(error).startswith("claim") else ValueError(f"claim {id!r}: {error}") from None
        claims[id] = Statement(id, **texts)
    return claims


def _read(id: str, table: dict[str, Any], into: type) -> dict[str, Any]:
    """Return the table as arguments of a dataclass, lists as tuples. Raises ValueError, naming the claim."""
    known = {field.name: field for field in fields(into) if field.name != "id"}
    if unknown := [name for name in table if name not in known]:
        raise ValueError(f"claim {id!r}: has the keys {', '.join(unknown)}: must be among {', '.join(known)}")
    missing = [name for name, field in known.items() if field.default is MISSING and name not in table]
    if missing:
        raise ValueError(f"claim {id!r}: must have {', '.join(missing)}, too")
    for name, value in table.items():
        kinds, word = READ.get(known[name].type, ((int, float, list), "a number or a list of numbers"))
        if not isinstance(value, kinds):
            raise ValueError(f"claim {id!r}: {name} = {value!r}: must be {word}")
    return {
        name: tuple(_sized(id, number) for number in value) if isinstance(value, list) else value
        for name, value in table.items()
    }


def _sized(id: str, value: Any) -> Any:
    """Return a table, which in a list is what was measured at another size, as that; anything else as it is."""
    return Experiment(**_read(f"{id}.beside", value, Experiment)) if isinstance(value, dict) else value


def by_size(claims: Mapping[str, Statement]) -> dict[str, Construction | Experiment]:
    """Return the evidence of claims by id, and that at each size beside it by ``id/1``, ``id/2``.

    It comes from where the first does, unless it names a source of its own.
    """
    evidence = {id: statement.evidence for id, statement in claims.items() if statement.evidence}
    for id, first in list(evidence.items()):
        for place, other in enumerate(getattr(first, "beside", ()), 1):
            named = first if not (other.stored or other.checkpoint or other.run) else other
            evidence[f"{id}/{place}"] = replace(other, stored=named.stored, checkpoint=named.checkpoint, run=named.run)
    return evidence


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
