"""The scoreboard: every claim of every lesson in ``CLAIMS.md``, and in the README their total."""

from pathlib import Path

from companion.core.files import atomic_write
from companion.lesson.claims import COLUMNS, cite, figure
from companion.lesson.verdicts import DIFFERENT, in_all
from companion.workshop.cli.lessons import Lesson, all_lessons, put_part
from companion.workshop.cli.setup import ROOT
from companion.workshop.talks import outcomes_in_all, talks, verdicts_of

PUBLISHED = "| Claim | Source | Published | Our checkpoint | This run | Verdict |\n|---|---|---|---|---|---|"
TALKS = "# The talks, claim by claim"
TALK = "| Claim | Lessons | What became of it |\n|---|---|---|"
OWN = "| {} | Our bar | Our checkpoint | This run |\n|---|---|---|---|"


def update(report: dict, root: Path = ROOT) -> None:
    """Write ``CLAIMS.md`` and the README's total from ``report``. Raises ValueError where the README has no marks."""
    atomic_write(root / "CLAIMS.md", table(report, all_lessons(root)))
    put_part(root / "README.md", "claims", f"{total(report)} [Every one of them](CLAIMS.md).")


def table(report: dict, lessons: list[Lesson]) -> str:
    """Return the report's claims in Markdown, a table for each of ``lessons``."""
    titles = {lesson.name: lesson.facts()["title"] for lesson in lessons}
    made = sorted({f"scale {entry['scale']}, seed {entry['seed']}" for entry in report["lessons"]})
    parts = [
        "# Claims, and what became of them",
        "What a source says, what the shipped checkpoints give, what one run gives. The verdict on a published claim "
        "is decided by one rule (`companion/lesson/verdicts.py`) from what `companion/published/` stores; whether "
        "a run is as expected, by the course's own bars, decides none. " + total(report),
    ]
    for entry in (entry for entry in report["lessons"] if entry["lesson"] in titles):
        name, claims = entry["lesson"], entry["claims"]
        parts.append(f"## {name[:2]} · {titles[name]}")
        parts.append(f"{summary(claims)} [The lesson](lessons/{name}/{name}.ipynb).")
        told = [
            [*_figures(claim, "statement", "source", "published"), _verdict(claim)]
            for claim in claims
            if claim["verdict"]
        ]
        parts.append(_rows(PUBLISHED, told))
        for kind, word in (("course", "The course's own"), ("check", "Check")):
            own = [_figures(claim, "statement", "threshold") for claim in claims if claim["kind"] == kind]
            parts.append(_rows(OWN.format(word), own))
    parts += by_talk(report, lessons)
    parts = [part for part in parts if part]
    parts.append(f"Made by `python3 -m companion run --readme` ({'; '.join(made)}).")
    return "\n\n".join(parts) + "\n"


def by_talk(report: dict, lessons: list[Lesson]) -> list[str]:
    """Return the claims of the talks that the course began with in Markdown, a table for each talk."""
    pages = {lesson.name[:2]: f"[{lesson.name[:2]}](lessons/{lesson.name}/{lesson.name}.ipynb)" for lesson in lessons}
    verdicts, parts = verdicts_of(report), [TALKS]
    for key, claims in talks().items():
        rows = []
        for claim in claims:
            judged = claim.judged(verdicts)
            told = f"{claim.outcome(verdicts)}{': ' + '; '.join(judged) if len(judged) > 1 else ''}"
            where = ", ".join(pages.get(number, number) for number in claim.lessons)
            rows.append([claim.claim, where, f"{told}. {claim.note}".strip()])
        parts += [f"## {cite(key)}", outcomes_in_all(claims, verdicts), _rows(TALK, rows)]
    return parts


def total(report: dict) -> str:
    """Return what became of all published claims of the report, in one sentence."""
    return summary([claim for entry in report["lessons"] for claim in entry["claims"]])


def summary(claims: list[dict]) -> str:
    """``Of 3 published claims: 2 reproduced; 0 same direction, weaker; 1 different; 0 not assessed.``"""
    return in_all([claim["verdict"] for claim in claims if claim["verdict"]])


def _figures(claim: dict, *keys: str) -> list[str]:
    """The texts of a claim under ``keys``, and its figures, of the checkpoint and of the run."""
    budget = f" (here after {claim['trained']})" if claim.get("trained") else ""  # reports of version 0.4 have none
    said = claim | {"statement": claim["statement"] + budget}
    return [*(said[key] for key in keys), *(figure(claim, column) for column in COLUMNS)]


def _verdict(claim: dict) -> str:
    """The verdict, and what it rests on."""
    word = f"**{claim['verdict']}**" if claim["verdict"] == DIFFERENT else claim["verdict"]
    return f"{word} ({claim['why']})" if claim["why"] else word


def _rows(head: str, rows: list[list[str]]) -> str:
    """A table in Markdown; nothing without rows."""
    return "\n".join([head, *("| " + " | ".join(map(_cell, row)) + " |" for row in rows)]) if rows else ""


def _cell(value: str) -> str:
    """One text as it reads in a table: a dash for nothing, nothing that would end the cell."""
    if value == "-":
        return "–"
    return value.replace("|", "\\|").replace("\n", " ")
