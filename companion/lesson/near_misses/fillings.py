"""All that can stand where a row of the table asks for it by a name in braces."""

import ast
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.places import Scene, Site
from companion.lesson.near_misses.syntax import axis
from companion.lesson.near_misses.trees import BEFORE, template
from companion.lesson.near_misses.words import COMPARISONS, RELATIONS
from companion.lesson.seen import ORDINALS

SMALL = (2, 3, 4, 5, 6, 8, 10, 20, 100)  # sizes that people type in
FAR, FARTHER = 0.12, 0.2  # how much less likely a variable is for another: one on the way, one of another shape
AXES = {0: "first", 1: "second", 2: "third", -1: "last", -2: "last but one"}
PARTS = {
    ":": "all", "1:": "all but the first", ":-1": "all but the last", "2:": "all but the first two",
    ":-2": "all but the last two", "1:-1": "all but both ends", ":1": "only the first", "-1:": "only the last",
}  # fmt: skip


def fillings(asked: str, site: Site, held: dict[str, Any], scene: Scene) -> Iterator[tuple[Any, dict[str, Any], float]]:
    """Yield all that can stand where a row asks for it by a letter, with the words for it, or the nodes that are to be
    put into words, and its further cost.

    ``asked``: the letter, or "op".
    ``site``: the place in the answer.
    ``held``: what the row's letters stand for there.
    ``scene``: the answer.
    """
    node, value, words, variables = site.node, site.value, scene.words, scene.variables
    match asked:
        case "D":  # a call's own axis
            if (own := axis(node)) is not None:
                yield ast.Constant(own), {}, 0
        case "E":  # each axis of what is there
            for dim in range(getattr(value, "ndim", 0)):
                yield ast.Constant(dim), {"along": f" along its {ORDINALS[dim]} axis" if value.ndim > 1 else ""}, 0
        case "K":  # each axis but a call's own
            for dim, where in AXES.items():
                if dim != axis(node):
                    yield ast.Constant(dim), {"axis": where, "own": AXES.get(axis(node), "other")}, 0.05 * (dim < 0)
        case "S":  # each size
            for size, said in scene.sizes:
                if node is None or ast.unparse(node) != size:
                    yield template(size), {"size": said}, 0
        case "P":  # each argument of the same dtype
            for name in words.parameters:
                if getattr(variables.get(name), "dtype", None) == getattr(value, "dtype", torch.float64):
                    yield template(BEFORE + name if BEFORE + name in variables else name), {"P": name}, 0
        case "C":  # numbers that people type in
            for number in SMALL:
                yield ast.Constant(number), {"C": str(number)}, 0
        case "op":  # each other comparison
            for kind, operator in COMPARISONS.items():
                if not isinstance(node.ops[0], kind):
                    yield operator, {"op": RELATIONS[operator]}, 0
        case "V":  # each variable of the same kind
            own = variables.get(node.id)
            for other, there in variables.items():
                both = isinstance(own, Tensor) and isinstance(there, Tensor)
                alike = both and (own.ndim, own.dtype) == (there.ndim, there.dtype)
                numbers = isinstance(own, int | float) and type(there) in (int, float)
                if other != node.id and (alike or numbers):
                    old, alike = other.startswith(BEFORE), alike and own.shape == there.shape
                    more = 0 if old else FARTHER if not alike else FAR if other not in words.parameters else 0
                    yield template(other), {"other": template(other), "whose": node}, more
        case "R":  # each other part
            text = ast.unparse(held["R"])
            for other, taken in PARTS.items():
                if other != text:
                    said = {"taken": taken, "due": PARTS.get(text, "another part")}
                    yield ast.Constant(other), said, 0 if other == ":" else FARTHER
        case "X":  # the entries of a list, two of them exchanged
            for i, j in itertools.combinations(range(len(node.elts)), 2):
                order = [{i: j, j: i}.get(k, k) for k in range(len(node.elts))]
                yield str(order)[1:-1], {"one": node.elts[i], "two": node.elts[j]}, 0
        case "M":  # the entries of a list, one of them moved past several others
            for i, j in itertools.permutations(range(n := len(node.elts)), 2):
                if abs(i - j) > 1:
                    order = [k for k in range(n) if k != i]
                    order.insert(j, i)
                    yield str(order)[1:-1], {"one": node.elts[i], "there": _place(j, n), "here": _place(i, n)}, 0
        case "L":  # all entries of a list but one
            for i, one in enumerate(node.elts):
                yield str([k for k in range(len(node.elts)) if k != i])[1:-1], {"one": one}, 0


def _place(at: int, n: int) -> str:
    return "last" if at == n - 1 else ORDINALS[at]
