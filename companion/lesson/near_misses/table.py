"""The table of near misses, `table.txt`: blocks, each a heading that says where its rows apply, and its rows.

The README beside it says how a row is read and how one is added.
"""

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from companion.lesson.near_misses.trees import template

OF_TWO_INPUTS = ("arguments", "tensors", "shared")
KINDS = (
    *("call", "axis", "all", "compare", "name", "slice", "list", "value", "size", "number", "constant", "index"),
    *("answer", "start", "do", "loop", "argument", *OF_TWO_INPUTS),
)
ROW = re.compile(r"(?P<text>.*?)\s*\|\s*(?P<cost>[\d.]+)(?P<of_program>!?)\s*\|\s?(?P<mistake>.*)")


@dataclass(frozen=True)
class Row:
    """A mistake: the code that stands in place of what the heading describes, and the mistake in words.

    ``text``: the code.
    ``cost``: the lower, the likelier.
    ``mistake``: the words.
    ``line``: its number in the table.
    ``of_values``: whether the words hold for values alone, too, whatever program gives them.
    """

    text: str
    cost: float
    mistake: str
    line: int
    of_values: bool


@dataclass(frozen=True)
class TableBlock:
    """A heading and its rows.

    ``kind``: one of `KINDS`, or "" for a pattern.
    ``words``: what follows the kind: names of functions, or tags of a value.
    ``patterns``: the forms of a statement or an expression.
    ``conditions``: pairs of a letter of the pattern and a tag that its value must have.
    """

    kind: str
    words: tuple[str, ...] = ()
    patterns: tuple[Any, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    rows: list[Row] = field(default_factory=list)


@cache
def near_miss_table() -> list[TableBlock]:
    """Read the table. Raises ValueError for a line that is no row, with its number."""
    blocks: list[TableBlock] = []
    lines = Path(__file__).with_name("table.txt").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(map(str.rstrip, lines), 1):
        if line.startswith("@ "):
            blocks.append(_block(line.removeprefix("@ ")))
        elif line and not line.startswith("#"):
            blocks[-1].rows.append(_row(line, number))
    return blocks


def _block(heading: str) -> TableBlock:
    """Read a heading: a kind with its words, or patterns with their conditions."""
    kind, _, rest = heading.partition(" ")
    if kind == "do":
        return TableBlock(kind, patterns=(ast.parse(rest).body[0],))
    if kind in KINDS:
        return TableBlock(kind, tuple(rest.split()))
    patterns, _, conditions = heading.partition(" where ")
    pairs = [condition.split() for condition in conditions.split(", ") if condition]
    return TableBlock(
        "",
        patterns=tuple(template(pattern) for pattern in patterns.split(" || ")),
        conditions=tuple((letter, tag) for letter, tag in pairs),
    )


def _row(line: str, number: int) -> Row:
    found = ROW.fullmatch(line)
    if found is None:
        raise ValueError(f"table.txt, line {number}: {line!r} must be: code | cost | the mistake in words")
    text = found["text"].replace("\\n", "\n")
    return Row(text, float(found["cost"]), found["mistake"], number, not found["of_program"])
