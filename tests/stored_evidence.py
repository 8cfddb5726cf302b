"""Evidence that stands in measured tables, and whether a test would see another figure in its place."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sources import EVIDENCE, fields, invented

from companion.lesson.claims import statements
from companion.lesson.verdicts import Experiment

ADDITION, MEMORIES, MULTIHEAD = APART = (  # whose tests have files of their own
    "04-fourier-addition",
    "05-associative-memory",
    "09-pac-learning",
)


def evidence(lesson: str, id: str, *tables: str) -> Experiment:
    """The evidence of a claim, which names the tables that it is of: from there the atlas knows its commands."""
    found = statements(lesson)[id].evidence
    assert set(found.stored) == set(tables)
    return found


def of_tables(chosen: Callable[[str], bool]) -> list[tuple[str, str, str]]:
    """Each field of the evidence of these lessons that stands in tables."""
    return fields((lesson, id) for (lesson, id), each in EVIDENCE.items() if each.stored and chosen(lesson))


def _calls(tests: dict[str, Any], id: str) -> Iterator[tuple[Callable[..., None], dict[str, Any]]]:
    """The tests of tables that may be of a claim, with their arguments."""
    for name, test in tests.copy().items():
        marks = {mark.name: mark.args for mark in getattr(test, "pytestmark", [])}
        if name.startswith("test_") and "invented" not in name and "weekly" not in marks:
            names, values = marks.get("parametrize", ((), [()]))
            for each in values:
                arguments = {names: each} if isinstance(names, str) else dict(zip(names, each, strict=True))
                if id in arguments.values() or f'"{id}"' in inspect.getsource(test):
                    yield test, arguments


def seen(tests: dict[str, Any], lesson: str, id: str, field: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many of a file's ``tests`` fail when a figure of a claim is invented."""
    read, true = statements, statements(lesson)
    id, _, place = id.partition("/")
    false = true[id].evidence
    if place:
        sizes = [*false.beside]
        sizes[int(place) - 1] = invented(sizes[int(place) - 1], field)
        false = replace(false, beside=tuple(sizes))
    else:
        false = invented(false, field)
    all_of_them = true | {id: replace(true[id], evidence=false)}
    monkeypatch.setitem(globals(), "statements", lambda name: all_of_them if name == lesson else read(name))
    failed = 0
    for test, arguments in _calls(tests, id):
        try:
            test(**arguments)
        except AssertionError:
            failed += 1
    return failed
