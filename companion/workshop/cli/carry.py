"""What a learner has written in an older copy of a lesson, carried over into the lesson as it is now. Standard library
only; nothing is run.

A cell is the lesson's if its `fingerprint` is among those of the lesson as it was copied; or it is a learner's. Copies
have a record of that (`work`); those of version 0.3 do not, and ``cells-0.3.txt`` has them all.
"""

import copy
import functools
import hashlib
import re
from collections.abc import Set
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from companion.workshop.grading.notebook import versions

DEFINED = re.compile(r"^def (\w+)\(", re.MULTILINE)
CHECKED = re.compile(r"\.check\((\w+)\)")
FENCE = re.compile(r"`{3,}")


@dataclass
class Carried:
    """A lesson's ``notebook`` with what a learner has written: how many ``answers`` and ``others`` (cells of the
    learner's own, and such of the lesson that were changed) have a place in it, and how many, at its end, have none.
    """

    notebook: dict
    answers: int = 0
    others: int = 0
    kept: int = 0

    def __str__(self) -> str:
        many = {"answers": self.answers, "other cells": self.others, "without a place, at its end": self.kept}
        return ", ".join(f"{number} {what}" for what, number in many.items() if number) or "nothing"


def text(cell: dict) -> str:
    """Return a cell's source, in whichever form of the format it is written."""
    return "".join(cell["source"])


def fingerprint(cell: dict) -> str:
    """Return eight hexadecimal digits that tell a cell's kind and text from others."""
    return hashlib.sha256(f"{cell['cell_type']}\n{text(cell).strip()}".encode()).hexdigest()[:8]


@functools.cache
def of_version_0_3() -> frozenset[str]:
    """Return the fingerprint of every cell that version 0.3 had in its lessons."""
    lines = Path(__file__).with_name("cells-0.3.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def carry(old: dict, new: dict, known: Set[str], version: str) -> Carried:
    """Return the lesson ``new`` with what a learner has written in ``old``, a copy of an earlier one, made with the
    course's ``version`` (empty if it does not say). Raises KeyError or TypeError where ``old`` is no notebook.

    ``known``: the fingerprints of the cells that the earlier lesson had.

    An answer goes to the cell of the same exercise, a changed cell of the lesson to its place if the lesson has not
    changed it, too, and a cell of the learner's own below the one that it stood below. What has no place any more is
    kept at the end, as text, with a sentence. Where a cell says what it said, its outputs stay.
    """
    carried = Carried(copy.deepcopy(new))
    cells, places = carried.notebook["cells"], _places(old["cells"], new["cells"])
    own: dict[int, list[dict]] = {}
    kept: list[dict] = []
    missing, above = set(), -1
    for cell, place in zip(old["cells"], places, strict=True):
        above = above if place is None else place
        theirs = fingerprint(cell) not in known and text(cell).strip() != ""
        if place is None:
            if theirs and _marks(cell).get("solution"):
                kept += _kept(cell, "is not in this lesson any more")
            elif theirs:
                own.setdefault(above, []).append(_own(cell))
            continue
        lesson, answer = new["cells"][place], _marks(new["cells"][place]).get("solution")
        if theirs and fingerprint(cell) != fingerprint(lesson):
            reason = _unfit(cell, lesson, version) if answer else ""
            if not answer and fingerprint(lesson) not in known:
                reason = "is a cell of the lesson, which has changed it, too"
            if reason:
                kept += _kept(cell, reason)
                missing |= set(DEFINED.findall(text(lesson)))
                continue
            cells[place] |= {key: cell[key] for key in ("source", "attachments") if key in cell}
            carried.answers, carried.others = carried.answers + bool(answer), carried.others + (not answer)
        if cell["cell_type"] == "code" and fingerprint(cell) == fingerprint(cells[place]):
            cells[place] |= {"outputs": cell.get("outputs", []), "execution_count": cell.get("execution_count")}
    for cell in cells:
        if missing & set(CHECKED.findall(text(cell))):
            cell |= {"outputs": [], "execution_count": None}
    carried.others += sum(map(len, own.values()))
    carried.kept = len(kept)
    head = [_markdown("# What has no place in this lesson any more\n\nIt is from your copy of before.")] * bool(kept)
    _name([*(cell for cells in own.values() for cell in cells), *head, *kept], {cell["id"] for cell in cells})
    carried.notebook["cells"] = [
        *own.get(-1, []),
        *(each for number, cell in enumerate(cells) for each in (cell, *own.get(number, []))),
        *head,
        *kept,
    ]
    return carried


def _places(old: list[dict], new: list[dict]) -> list[int | None]:
    """For each cell of ``old`` the number of that of ``new`` in whose place it stands, if there is one: the same
    exercise's, by nbgrader's name or by its function, or the cell of the same id, or of the same text.
    """
    exercises = {_marks(cell)["grade_id"]: number for number, cell in enumerate(new) if _marks(cell).get("solution")}
    ids = {cell["id"]: number for number, cell in enumerate(new)}
    texts = {fingerprint(cell): number for number, cell in enumerate(new)}
    named = {name: number for number in exercises.values() for name in _names(new[number])}
    places: list[int | None] = [None] * len(old)
    ways = (
        lambda cell: exercises.get(_marks(cell).get("grade_id")),
        lambda cell: ids.get(cell.get("id", cell.get("metadata", {}).get("id"))),
        lambda cell: texts.get(fingerprint(cell)),
        lambda cell: next((named[name] for name in _names(cell) if name in named), None),
    )
    for way in ways:
        for number, cell in enumerate(old):
            place = way(cell) if places[number] is None else None
            if place is not None and place not in places and cell["cell_type"] == new[place]["cell_type"]:
                places[number] = place
    return places


def _names(cell: dict) -> list[str]:
    """By what an exercise is known: the functions that its cell defines, a written one's first line."""
    if cell["cell_type"] == "code":
        return DEFINED.findall(text(cell))
    return text(cell).strip().splitlines()[:1]


def _marks(cell: dict) -> dict:
    return cell.get("metadata", {}).get("nbgrader", {})


def _unfit(cell: dict, lesson: dict, version: str) -> str:
    """Why an answer is none to the exercise as it is now; empty if it is one."""
    answer, stub = text(cell), text(lesson)
    since = versions.since(lesson["metadata"])
    for name in DEFINED.findall(stub) or [""]:
        if name and name not in DEFINED.findall(answer):
            return f"asks for a function {name} now"
        if reason := versions.unfit(answer, stub, name, since=since, version=version):
            return reason
    return ""


def _own(cell: dict) -> dict:
    """A cell of the learner's, which nbgrader knows nothing of."""
    cell = copy.deepcopy(cell)
    cell["metadata"] = {key: value for key, value in cell.get("metadata", {}).items() if key != "nbgrader"}
    return cell


def _kept(cell: dict, reason: str) -> list[dict]:
    """A cell as text, which Run All does not run, below a sentence that says where it is from."""
    name = ", ".join(DEFINED.findall(text(cell))) or _marks(cell).get("grade_id") or "What follows"
    body = text(cell).strip()
    if cell["cell_type"] == "code":
        fence = "`" * max([3, *(len(found) + 1 for found in FENCE.findall(body))])
        body = f"{fence}python\n{body}\n{fence}"
    made = _markdown(f"*{name} {reason}. As you had it:*\n\n{body}")
    return [made | {"attachments": cell["attachments"]} if "attachments" in cell else made]


def _markdown(source: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _name(cells: list[dict], taken: Set[str]) -> None:
    """Give each of ``cells`` an id that is not ``taken``; its own, if it has one."""
    taken = set(taken)
    for cell in cells:
        if cell.get("id", "") in taken | {""}:
            cell["id"] = next(id for number in count(1) if (id := f"carried-{number}") not in taken)
        taken.add(cell["id"])
