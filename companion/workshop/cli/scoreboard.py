"""The scoreboard: every claim of every lesson in ``CLAIMS.md``, and in the README a line for each lesson."""

import re
from pathlib import Path

from companion.core.files import atomic_write
from companion.lesson.claims import FAILS, HOLDS, UNASSESSED
from companion.workshop.cli import launch
from companion.workshop.cli.lessons import Lesson, all_lessons, machine_time
from companion.workshop.cli.setup import ROOT
from companion.workshop.site.course import needed

OPEN, CLOSE = "<!-- lessons -->", "<!-- /lessons -->"
HEAD = "| Claim | Source | Published | Our checkpoint | This run | Holds |\n|---|---|---|---|---|---|"
NAMED = 4  # so many of a lesson's claims that do not hold stand in the README; all of them in CLAIMS.md
WORDS = {HOLDS: "yes", FAILS: "**no**", UNASSESSED: "not assessed"}


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
        "What a source says, what the shipped checkpoints give, what one run gives. Thresholds and negative controls "
        "are in `companion/published/`, and in the table at the end of each lesson.",
    ]
    for entry in report["lessons"]:
        name = entry["lesson"]
        rows = [
            [claim[key] for key in ("statement", "source", "published", "checkpoint", "run", "verdict")]
            for claim in entry["claims"]
        ]
        parts.append(f"## {name[:2]} · {titles[name]}")
        parts.append(f"{summary(entry)} [The lesson](lessons/{name}/{name}.ipynb).")
        parts.append("\n".join([HEAD, *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows)]))
    parts.append(f"Made by `python3 -m companion run --readme` ({'; '.join(made)}).")
    return "\n\n".join(parts) + "\n"


def lines(report: dict, lessons: list[Lesson], repository: str) -> str:
    """Return a line of Markdown for each of ``lessons``: its question, its time, the lessons before it, what became of
    its claims; above them, if the course has a ``repository``, badges that open the first.
    """
    entries = {entry["lesson"]: entry for entry in report["lessons"]}
    found = []
    if badges := [place.badge() for place in launch.places(repository, _path(lessons[0]))]:
        found += [f"Lesson {lessons[0].name[:2]} without installing anything: {' '.join(badges)}", ""]
    for lesson in lessons:
        facts = lesson.facts()
        time = f"{facts['minutes']} min, machine {machine_time(facts['machine_seconds'])}"
        if before := needed(facts):
            time += f", after {' and '.join(before)}"
        line = f"- **[{lesson.name[:2]} {facts['title']}]({_path(lesson)})** ({time}). {facts['question']}"
        if lesson.name in entries:
            line += f" {summary(entries[lesson.name], named=True)}"
        found.append(line)
    return "\n".join(found)


def _path(lesson: Lesson) -> str:
    """Where the lesson is for whoever learns."""
    return f"lessons/{lesson.name}/{lesson.name}.ipynb"


def summary(entry: dict, *, named: bool = False) -> str:
    """``18 of 19 claims hold.`` of a lesson's entry in the report; with ``named``, followed by those that do not, the
    first `NAMED` of them.
    """
    claims = entry["claims"]
    failing = [claim["statement"] for claim in claims if claim["verdict"] == FAILS]
    open_ones = sum(claim["verdict"] == UNASSESSED for claim in claims)
    holding = len(claims) - len(failing) - open_ones
    sentence = f"All {holding} claims hold" if holding == len(claims) else f"{holding} of {len(claims)} claims hold"
    if open_ones:
        sentence += f", {open_ones} are not assessed"
    if not (failing and named):
        return sentence + "."
    word = "this one does" if len(failing) == 1 else "these do"
    more = len(failing) - NAMED
    return f"{sentence}; {word} not: {' · '.join([*failing[:NAMED], *([f'and {more} more'] if more > 0 else [])])}."


def _cell(value: str) -> str:
    """One text as it reads in a table: a verdict short, a dash for nothing, nothing that would end the cell."""
    if value == "-":
        return "–"
    return WORDS.get(value, value).replace("|", "\\|").replace("\n", " ")
