"""The README's scoreboard: every claim of every lesson, what was published, what ours gives, and whether it holds."""

import re
from pathlib import Path

from companion.claims import FAILS, HOLDS, UNASSESSED

OPEN, CLOSE = "<!-- scoreboard -->", "<!-- /scoreboard -->"
HEAD = "| Lesson | Claim | Source | Published | Our checkpoint | This run | Holds |\n|---|---|---|---|---|---|---|"
WORDS = {HOLDS: "yes", FAILS: "**no**", UNASSESSED: "not assessed"}


def table(report: dict) -> str:
    """The report's claims as a Markdown table, a line under it saying how they were made."""
    rows = [
        [entry["lesson"], *(claim[key] for key in ("statement", "source", "published", "checkpoint", "run", "verdict"))]
        for entry in report["lessons"]
        for claim in entry["claims"]
    ]
    lines = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    made = sorted({f"scale {entry['scale']}, seed {entry['seed']}" for entry in report["lessons"]})
    return "\n".join([HEAD, *lines, "", f"Made by `python3 -m companion run --readme` ({'; '.join(made)})."])


def _cell(value: str) -> str:
    """One text as it reads in a table: a verdict short, a dash for nothing, nothing that would end the cell."""
    if value == "-":
        return "–"
    return WORDS.get(value, value).replace("|", "\\|").replace("\n", " ")


def update(report: dict, readme: Path) -> None:
    """Put the table of ``report`` between the marks of ``readme``. Raises ValueError where there are no marks."""
    text = readme.read_text(encoding="utf-8")
    block = re.compile(f"{re.escape(OPEN)}.*?{re.escape(CLOSE)}", re.DOTALL)
    if not block.search(text):
        raise ValueError(f"{readme}: has no {OPEN} … {CLOSE} to put the scoreboard in")
    new = f"{OPEN}\n{table(report)}\n{CLOSE}"
    readme.write_text(block.sub(lambda _: new, text), encoding="utf-8", newline="\n")
