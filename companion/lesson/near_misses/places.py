"""Near misses of where something goes: a part of a tensor that is written into, and pairs of rows that lie some way apart."""

import ast
import itertools
from collections.abc import Iterator
from typing import Any

from companion.lesson.near_misses.trees import Edit, Path
from companion.lesson.near_misses.words import Words


def place_edits(tree: ast.FunctionDef, words: Words) -> Iterator[Edit]:
    """Edits of the statements that write into a part of a tensor, or take two parts that lie some way apart."""
    for index, line in enumerate(tree.body):
        path: Path = (("body", index),)
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Subscript):
            yield from _written(path, line, words)
        if isinstance(line, ast.Assign | ast.Return) and line.value is not None:
            yield from _lagged(path, line, words)


def _instead(*texts: str) -> Any:
    lines = [line for text in texts for line in ast.parse(text).body]
    return lambda _: lines[0] if len(lines) == 1 else ast.If(ast.Constant(True), lines, [])


def _written(path: Path, line: ast.Assign, words: Words) -> Iterator[Edit]:
    target, value = line.targets[0], ast.unparse(line.value)
    into, put = ast.unparse(target.value), words.noun(line.value)
    parts = [ast.unparse(part) for part in _parts(target.slice)]
    where = next((at for at, part in enumerate(parts) if part != ":"), 0)
    everywhere = f"{into}[{', '.join([*parts[:where], ':', *parts[where + 1 :]])}]"
    for texts, says, cost in (
        (["pass"], f"{put} is missing: it is put nowhere", 1),
        ([f"{everywhere} = {value}"], f"{put} goes to all places; it belongs to a part of them", 1),
        ([f"{ast.unparse(target)} += {value}"], f"{put} is added to what is there; it is to replace it", 1.4),
        (
            [f"{everywhere} = {value} / len({into})"],
            f"{put} is split evenly over all places; it belongs to a part of them",
            1.1,
        ),
    ):
        yield Edit(path, _instead(*texts), says, "place written", cost)
    place = parts[where]
    if place.lstrip("-").isdigit():
        for other, says in (("-1", "last"), ("0", "first"), (str(int(place) + 1), "next")):
            if other != place:
                moved = ast.unparse(target).replace(f"[{', '.join(parts)}]", "")
                new = f"{moved}[{', '.join([*parts[:where], other, *parts[where + 1 :]])}]"
                yield Edit(
                    path,
                    _instead(f"{new} = {value}"),
                    f"{put} goes to the {says} place; it belongs elsewhere",
                    "place written",
                    1,
                )


def _parts(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _ends(line: ast.stmt) -> Iterator[tuple[ast.Subscript, ast.Subscript, int]]:
    """Pairs of [1:] and [:-1], and the axis of their slices."""
    found = [node for node in ast.walk(line) if isinstance(node, ast.Subscript)]
    for first, second in itertools.permutations(found, 2):
        one, other = ([ast.unparse(part) for part in _parts(each.slice)] for each in (first, second))
        axes = [at for at, part in enumerate(one) if part == "1:"]
        if len(axes) == 1 and other == [":-1" if at == axes[0] else part for at, part in enumerate(one)]:
            yield first, second, axes[0]


def _replaced(text: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """Two parts of a text, each replaced; marks keep the first from being replaced twice."""
    marked = text.replace(old[0], "\0late").replace(old[1], "\0early")
    return marked.replace("\0late", new[0]).replace("\0early", new[1])


def _lagged(path: Path, line: ast.stmt, words: Words) -> Iterator[Edit]:
    """Of two parts, one place apart: another distance, the other way, round the end, all that lies between."""
    for late, early, axis in _ends(line):
        both = [ast.unparse(part) for part in _parts(late.slice)]

        def cut(base: ast.Subscript, part: str, both=both, axis=axis) -> str:
            return f"{ast.unparse(base.value)}[{', '.join([*both[:axis], part, *both[axis + 1 :]])}]"

        written = isinstance(late.ctx, ast.Store) or isinstance(early.ctx, ast.Store)
        noun = words.noun(early.value)

        whole, rolled = cut(late, ":"), f"{ast.unparse(early.value)}.roll(1, {axis})[{', '.join([*both[:axis], ':'])}]"
        summed = f"{ast.unparse(early.value)}.cumsum({axis})[{', '.join([*both[:axis], ':-1', *both[axis + 1 :]])}]"
        for new, says, cost in (
            ((cut(late, "2:"), cut(early, ":-2")), f"the shift of {noun} is two places; it is one", 0.9),
            ((cut(late, "3:"), cut(early, ":-3")), f"the shift of {noun} is three places; it is one", 1.3),
            ((cut(late, ":-1"), cut(early, "1:")), f"the shift of {noun} goes the wrong way", 0.9),
            ((whole, cut(early, ":")), f"{noun} is not shifted: each place meets itself, not its neighbour", 0.9),
            (
                (whole, rolled),
                f"the shift of {noun} goes round: what leaves at one end comes in at the other; it should drop out",
                0.9,
            ),
            ((cut(late, "1:"), summed), f"all that comes before is taken of {noun}; one place alone is due", 1),
        ):
            if written and "cumsum" in new[1]:
                continue
            changed = _replaced(ast.unparse(line), (ast.unparse(late), ast.unparse(early)), new)
            yield Edit(path, _instead(changed), says, "shift", cost)
