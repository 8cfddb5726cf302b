"""What a row may ask for by a name in braces, as {S}, a size: everything that can stand there, with words and cost."""

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.scene import Scene, Site
from companion.lesson.near_misses.table import axis
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


def fillings(asked: str, site: Site, held: dict[str, Any], scene: Scene) -> Iterator[tuple[Any, dict[str, str], float]]:
    """Yield all that can stand where a row asks for it by a letter, with the words for it and its further cost.

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
            own, said = variables.get(node.id), words.noun(node)
            for other, there in variables.items():
                both = isinstance(own, Tensor) and isinstance(there, Tensor)
                alike = both and (own.ndim, own.dtype) == (there.ndim, there.dtype)
                numbers = isinstance(own, int | float) and type(there) in (int, float)
                if other != node.id and (alike or numbers):
                    old, alike = other.startswith(BEFORE), alike and own.shape == there.shape
                    more = 0 if old else FARTHER if not alike else FAR if other not in words.parameters else 0
                    noun = words.noun(template(other))
                    yield template(other), {"other": noun if noun != said else "another value", "whose": said}, more
        case "R":  # each other part
            text = ast.unparse(held["R"])
            for other, taken in PARTS.items():
                if other != text:
                    said = {"taken": taken, "due": PARTS.get(text, "another part")}
                    yield ast.Constant(other), said, 0 if other == ":" else FARTHER
        case "X":  # the entries of a list, two of them exchanged
            for i, j in itertools.combinations(range(len(node.elts)), 2):
                order = [{i: j, j: i}.get(k, k) for k in range(len(node.elts))]
                yield str(order)[1:-1], {"one": words.noun(node.elts[i]), "two": words.noun(node.elts[j])}, 0
        case "L":  # all entries of a list but one
            for i, one in enumerate(node.elts):
                yield str([k for k in range(len(node.elts)) if k != i])[1:-1], {"one": words.noun(one)}, 0


def filled(
    text: str, says: str, site: Site, held: dict[str, Any], scene: Scene
) -> Iterator[tuple[str, str, dict[str, Any], float]]:
    """Yield a row's text, sentence, node and further cost, for each that it asks for: of its ``text`` and of what it
    ``says``, at a ``site`` of the answer, with what its pattern ``held`` there, in the ``scene`` of the exercise.
    """
    text = f"X = {text}" if "argument" in site.kinds else text
    if "{new}" in says:
        try:
            number = eval(text, {"X": site.node.value})  # a row's own text, of a number
        except ZeroDivisionError:
            return
        number = int(number) if type(site.node.value) is int and number == int(number) else number
        if number != site.node.value:
            yield repr(number), says.replace("{new}", f"{number:g}"), {}, 0
    elif "places" in held:
        yield f"cut({text!r})", _of_places(says, held["places"], scene.inputs), {}, 0
    elif asked := re.search(r"\{(\w+)\}", text):
        for new, words, more in fillings(asked[1], site, held, scene):
            said = says
            for name, word in words.items():
                said = said.replace(f"{{{name}}}", word)
            hole = "HOLE" if isinstance(new, ast.AST) else new
            yield text.replace(asked[0], hole), said, {"HOLE": new} if hole == "HOLE" else {}, more
    else:
        yield text, says, {}, 0


def _of_places(says: str, places: list[tuple[str, int]], inputs: dict[str, Any]) -> str:
    """Say what is cut: entries, rows or columns of all arguments that share an axis."""
    (name, dim), *_ = places
    last = inputs[name].ndim - 1
    shared = " and ".join(dict.fromkeys(name for name, _ in places))
    kinds = ("entry", "entries") if not last else ("row", "rows") if not dim else ("column", "columns")
    if dim not in (0, last):
        kinds, shared = ("place", "places"), f"{shared} along the {ORDINALS[dim]} axis"
    return says.format(one=f"{kinds[0]} of {shared}", many=f"{kinds[1]} of {shared}")
