"""What a run saw of its claims, beside what ``CLAIMS.md`` says of it: the words are the same, the numbers nearly."""

import re

from companion.workshop.cli import scoreboard
from companion.workshop.cli.lessons import Lesson
from companion.workshop.cli.setup import ROOT

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
ROUNDING = 1e-3  # an error below it is one of arithmetic: its order is compared, not its digits


def differences(lesson: Lesson, claims: list[dict], written: str | None = None) -> list[str]:
    """Each row that ``claims`` of the lesson's run would give, where ``written`` (that of ``CLAIMS.md``, unless told)
    has another one in its place, or none.
    """
    written = (ROOT / "CLAIMS.md").read_text(encoding="utf-8") if written is None else written
    there = {_claim(row): row for row in _rows(written)}
    report = {"lessons": [{"lesson": lesson.name, "scale": "course", "seed": 0, "claims": claims}]}
    found = []
    for row in _rows(scoreboard.table(report, [lesson])):
        stored = there.get(_claim(row), "no such row")
        if not alike(row, stored):
            found.append(f"run:     {row}\nwritten: {stored}")
    return found


def alike(ours: str, theirs: str) -> bool:
    """Whether two texts have the same words, and numbers that another machine's rounding may make of each other."""
    if NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    return all(_near(*(float(number.replace(",", "")) for number in pair)) for pair in pairs)


def _near(ours: float, theirs: float) -> bool:
    largest = max(abs(ours), abs(theirs))
    if largest < ROUNDING:
        return 100 * min(abs(ours), abs(theirs)) >= largest
    return abs(ours - theirs) <= 0.03 + 0.1 * largest


def _rows(text: str) -> list[str]:
    return [line for line in text.partition(scoreboard.TALKS)[0].splitlines() if line.startswith("| ")]


def _claim(row: str) -> str:
    return row.split(" | ", maxsplit=1)[0]
