"""The table of near misses, `table.txt`, whose head says what its rows mean."""

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from companion.lesson.near_misses.trees import template

STATEMENTS, ARGUMENTS = ("do", "loop"), ("argument", "arguments", "tensors", "shared")
KINDS = (
    *("call", "axis", "all", "compare", "name", "slice", "list", "value", "size", "number", "constant", "index"),
    *("answer", "start", *STATEMENTS, *ARGUMENTS),
)


@dataclass(frozen=True)
class Row:
    """What stands in the place of a part, at which cost, and the mistake in words.

    ``of_values``: whether that may be said of values alone, too, whatever program gives them.
    """

    text: str
    cost: float
    says: str
    line: int
    of_values: bool


@dataclass(frozen=True)
class Rows:
    """Rows for one form: ``kind`` is one of KINDS, or "" for a pattern."""

    kind: str
    words: tuple[str, ...]
    patterns: tuple[Any, ...] = ()
    rows: list[Row] = field(default_factory=list)


@cache
def near_miss_table() -> list[Rows]:
    """Read the table."""
    blocks: list[Rows] = []
    for number, raw in enumerate(Path(__file__).with_name("table.txt").read_text(encoding="utf-8").splitlines(), 1):
        line = raw.rstrip()
        if line.startswith("@ "):
            first, _, rest = line[2:].partition(" ")
            if first in KINDS:
                patterns = (ast.parse(rest).body[0],) if first == "do" else ()
                blocks.append(Rows(first, tuple(rest.split()), patterns))
            else:
                forms, _, kinds = line[2:].partition(" where ")
                patterns = tuple(template(each) for each in forms.split(" || "))
                blocks.append(Rows("", tuple(kinds.split(", ")) if kinds else (), patterns))
        elif line and not line.startswith("#"):
            parts = re.fullmatch(r"(.*?)\s*\|\s*([\d.]+)(!?)\s*\|\s?(.*)", line)
            text, cost, of_program, says = parts.groups()  # type: ignore[union-attr]
            blocks[-1].rows.append(Row(text.replace("\\n", "\n"), float(cost), says, number, not of_program))
    return blocks
