"""What a row may ask for by a name in braces, as {S}, a size: everything that can stand there, with words and cost."""

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.scene import Scene, Site, indices, tags_of, value_of
from companion.lesson.near_misses.table import axis
from companion.lesson.near_misses.trees import BEFORE, template
from companion.lesson.near_misses.words import COMPARISONS, RELATIONS, along
from companion.lesson.seen import ORDINALS

SMALL = (2, 3, 4, 5, 6, 8, 10, 20, 100)  # sizes that people type in
FAR, FARTHER = 0.12, 0.2  # how much less likely a variable is for another: one on the way, one of another shape
AXES = {0: "first", 1: "second", 2: "third", -1: "last", -2: "last but one"}
PARTS = {
    ":": "all", "1:": "all but the first", ":-1": "all but the last", "2:": "all but the first two",
    ":-2": "all but the last two", "1:-1": "all but both ends", ":1": "only the first", "-1:": "only the last",
}  # fmt: skip
Filling = tuple[Any, dict[str, str], float]


def _own_axis(site: Site, *_: Any) -> Iterator[Filling]:
    if (own := axis(site.node)) is not None:
        yield ast.Constant(own), {}, 0


def _each_axis(site: Site, *_: Any) -> Iterator[Filling]:
    for dim in range(site.value.ndim if isinstance(site.value, Tensor) else 0):
        yield ast.Constant(dim), {"along": along("its", dim, site.value.ndim)}, 0


def _other_axes(site: Site, *_: Any) -> Iterator[Filling]:
    own = axis(site.node)
    for dim, where in AXES.items():
        if dim != own:
            yield ast.Constant(dim), {"axis": where, "own": AXES.get(own, "other")}, 0 if dim >= 0 else 0.05


def _sizes(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
    for size, said in scene.sizes:
        if site.node is None or ast.unparse(site.node) != size:
            yield template(size), {"size": said}, 0


def _arguments(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
    dtype = site.value.dtype if isinstance(site.value, Tensor) else torch.float64
    for name in scene.words.parameters:
        if isinstance(given := scene.variables.get(name), Tensor) and given.dtype == dtype:
            yield ast.Name(BEFORE + name if BEFORE + name in scene.variables else name, ast.Load()), {"P": name}, 0


def _small_numbers(*_: Any) -> Iterator[Filling]:
    for number in SMALL:
        yield ast.Constant(number), {"C": str(number)}, 0


def _other_comparisons(site: Site, *_: Any) -> Iterator[Filling]:
    for kind, operator in COMPARISONS.items():
        if not isinstance(site.node.ops[0], kind):
            yield operator, {"op": RELATIONS[operator]}, 0


def _other_variables(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
    """Yield each variable of the same kind."""
    name, words = site.node.id, scene.words
    own, said = scene.variables.get(name), words.noun(site.node)
    for other, value in scene.variables.items():
        tensors = isinstance(own, Tensor) and isinstance(value, Tensor)
        numbers = isinstance(own, int | float) and isinstance(value, int | float) and not isinstance(value, bool)
        alike = tensors and (own.ndim, own.dtype) == (value.ndim, value.dtype)
        if other == name or not (alike or numbers):
            continue
        old = other.startswith(BEFORE)
        near = old or (alike and own.shape == value.shape)
        more = FARTHER if not near else FAR if other not in words.parameters and not old else 0
        noun = words.noun(ast.Name(other))
        yield ast.Name(other, ast.Load()), {"other": noun if noun != said else "another value", "whose": said}, more


def _other_tensors(_: Site, held: dict[str, Any], scene: Scene) -> Iterator[Filling]:
    """Yield each tensor of real numbers, where a variable's mean, or the like, is taken."""
    for other, value in scene.variables.items() if isinstance(held["X"], ast.Name) else ():
        if other != held["X"].id and isinstance(value, Tensor) and value.is_floating_point():
            yield ast.Name(other, ast.Load()), {"other": scene.words.noun(ast.Name(other))}, 0


def _masks(_: Site, held: dict[str, Any], scene: Scene) -> Iterator[Filling]:
    """Yield the conditions that chose what a value is made of, looking one variable back."""
    for each in ast.walk(held["X"]):
        made_of = scene.words.defined.get(each.id, each) if isinstance(each, ast.Name) else each
        for part in indices(made_of) if isinstance(made_of, ast.Subscript) else ():
            if "bool" in tags_of(value_of(part, scene)):
                yield part, {}, 0


def _other_parts(_: Site, held: dict[str, Any], __: Scene) -> Iterator[Filling]:
    text = ast.unparse(held["R"])
    for other, taken in PARTS.items():
        if other != text:
            words = {"taken": taken, "due": PARTS.get(text, "another part")}
            yield ast.Constant(other), words, 0 if other == ":" else FARTHER


def _steps(_: Site, __: Any, scene: Scene) -> Iterator[Filling]:
    for name in scene.words.defined:
        if not name.startswith(BEFORE):
            yield ast.Name(name, ast.Load()), {"step": scene.words.noun(ast.Name(name, ast.Load()))}, 0


def _order(letter: str) -> Callable[[Site, Any, Scene], Iterator[Filling]]:
    """Return what yields the entries of a list exchanged (X), one twice (Y), all turned on (Z), one left out (L)."""

    def orders(site: Site, _: Any, scene: Scene) -> Iterator[Filling]:
        said = [scene.words.noun(each) for each in site.node.elts]
        n = len(said)
        turned = [[1, 2, 0], [2, 0, 1]] if (letter, n) == ("Z", 3) else []
        found = [(order, 0, 0) for order in turned]
        for i, j in itertools.permutations(range(n), 2):
            if letter == "X" and i < j:
                found.append(([{i: j, j: i}.get(k, k) for k in range(n)], i, j))
            if letter == "Y":
                found.append(([i if k == j else k for k in range(n)], i, j))
        found += [([k for k in range(n) if k != i], i, i) for i in range(n) if letter == "L"]
        for order, i, j in found:
            yield ", ".join(map(str, order)), {"one": said[i], "two": said[j]}, 0

    return orders


EACH: dict[str, Callable[..., Iterator[Filling]]] = {
    "D": _own_axis,  # a call's own axis
    "E": _each_axis,  # each axis of what is there
    "K": _other_axes,  # each axis but a call's own
    "S": _sizes,  # each size
    "P": _arguments,  # each argument of the same dtype
    "C": _small_numbers,  # numbers that people type in
    "op": _other_comparisons,
    "V": _other_variables,
    "T": _other_tensors,
    "M": _masks,
    "R": _other_parts,
    "W": _steps,  # each variable on the way
    **{letter: _order(letter) for letter in "XYZL"},
}  # fmt: skip


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
        for new, words, more in EACH[asked[1]](site, held, scene):
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
