"""The scoreboard: every claim of every lesson in ``CLAIMS.md``, and in the README a line for each lesson."""

import re
from pathlib import Path

from companion.core.files import atomic_write
from companion.lesson.claims import COLUMNS, figure
from companion.lesson.verdicts import DIFFERENT, tally
from companion.workshop.cli import launch
from companion.workshop.cli.lessons import Lesson, all_lessons, machine_time
from companion.workshop.cli.setup import ROOT
from companion.workshop.site.course import needed

OPEN, CLOSE = "<!-- lessons -->", "<!-- /lessons -->"
PUBLISHED = "| Claim | Source | Published | Our checkpoint | This run | Verdict |\n|---|---|---|---|---|---|"
OWN = "| {} | Our bar | Our checkpoint | This run |\n|---|---|---|---|"


def update(report: dict, root: Path = ROOT) -> None:
    """Write ``CLAIMS.md`` and the README's lines from ``report``. Raises ValueError where the README has no marks."""
    atomic_write(root / "CLAIMS.md", table(report, all_lessons(root)))
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    block = re.compile(f"{re.escape(OPEN)}.*?{re.escape(CLOSE)}", re.DOTALL)
    if not block.search(text):
        raise ValueError(f"{readme}: has no {OPEN} … {CLOSE} to put the lessons in")
    new = f"{OPEN}\n{lines(report, all_lessons(root), launch.repository(root))}\n{CLOSE}"
    atomic_write(readme, block.sub(lambda _: new, text))


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
    for entry in report["lessons"]:
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
    parts = [part for part in parts if part]
    parts.append(f"Made by `python3 -m companion run --readme` ({'; '.join(made)}).")
    return "\n\n".join(parts) + "\n"


def lines(report: dict, lessons: list[Lesson], repository: str) -> str:
    """Return a line of Markdown for each of ``lessons``: its question, its time, the lessons before it; above them, if
    the course has a ``repository``, badges that open the first; below them what became of the published claims.
    """
    found = []
    if badges := [place.badge() for place in launch.places(repository, _path(lessons[0]))]:
        found += [f"Lesson {lessons[0].name[:2]} without installing anything: {' '.join(badges)}", ""]
    for lesson in lessons:
        facts = lesson.facts()
        time = f"{facts['minutes']} min, machine {machine_time(facts['machine_seconds'])}"
        if before := needed(facts):
            time += f", after {' and '.join(before)}"
        found.append(f"- **[{lesson.name[:2]} {facts['title']}]({_path(lesson)})** ({time}). {facts['question']}")
    return "\n".join([*found, "", total(report)])


def total(report: dict) -> str:
    """Return what became of all published claims of the report, in one sentence."""
    return summary([claim for entry in report["lessons"] for claim in entry["claims"]])


def _path(lesson: Lesson) -> str:
    """Where the lesson is for whoever learns."""
    return f"lessons/{lesson.name}/{lesson.name}.ipynb"


def summary(claims: list[dict]) -> str:
    """``Of 3 published claims: 2 reproduced, 0 weaker in the same direction, 1 different, 0 not assessed.``"""
    verdicts = [claim["verdict"] for claim in claims if claim["verdict"]]
    return f"Of {len(verdicts)} published claims: {tally(verdicts)}."


def _figures(claim: dict, *keys: str) -> list[str]:
    """The texts of a claim under ``keys``, and its figures, of the checkpoint and of the run."""
    return [*(claim[key] for key in keys), *(figure(claim, column) for column in COLUMNS)]


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
