"""What the names in braces in a row's code, as {each_size}, stand for: everything that can be put there."""

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.matching import Parts
from companion.lesson.near_misses.places import AnswerPlace, Context
from companion.lesson.near_misses.syntax import axis
from companion.lesson.near_misses.trees import BEFORE, template
from companion.lesson.near_misses.words import COMPARISONS, RELATIONS
from companion.lesson.seen import ORDINALS

SMALL_NUMBERS = (2, 3, 4, 5, 6, 8, 10, 20, 100)  # that people type in
ANOTHER, OF_ANOTHER_SHAPE = 0.12, 0.2  # how much less likely: a variable that is computed, one of another shape
AXES = {0: "first", 1: "second", 2: "third", -1: "last", -2: "last but one"}
LIMITS = {
    ":": "all", "1:": "all but the first", ":-1": "all but the last", "2:": "all but the first two",
    ":-2": "all but the last two", "1:-1": "all but both ends", ":1": "only the first", "-1:": "only the last",
}  # fmt: skip


@dataclass(frozen=True)
class Filling:
    """One thing that can stand in place of a name in braces.

    ``code``: a node, or text.
    ``words``: what stands for names in braces in the sentence.
    ``parts``: nodes that stand for such names and are put into words themselves.
    ``cost``: how much less likely it is than the row.
    """

    code: ast.AST | str
    words: dict[str, str] = field(default_factory=dict)
    parts: dict[str, ast.AST] = field(default_factory=dict)
    cost: float = 0


def own_axis(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield the axis that a call names, if it names one."""
    if (own := axis(place.node)) is not None:
        yield Filling(ast.Constant(own))


def each_axis(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield each axis of the value."""
    ndim = getattr(place.value, "ndim", 0)
    for dim in range(ndim):
        yield Filling(ast.Constant(dim), {"along": f" along its {ORDINALS[dim]} axis" if ndim > 1 else ""})


def other_axis(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield each axis but the one that a call names."""
    own = axis(place.node)
    for dim, ordinal in AXES.items():
        if dim != own:
            words = {"other_axis": ordinal, "own_axis": AXES.get(own, "other")}  # type: ignore[arg-type]
            yield Filling(ast.Constant(dim), words, cost=0.05 * (dim < 0))


def each_size(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield each size of the arguments but the one that stands there."""
    for code, words in context.sizes:
        if place.node is None or ast.unparse(place.node) != code:
            yield Filling(template(code), {"each_size": words})


def argument(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield each argument of the same dtype, as it was in the beginning."""
    dtype = getattr(place.value, "dtype", torch.float64)
    for name in context.words.parameters:
        if getattr(context.variables.get(name), "dtype", None) == dtype:
            unchanged = BEFORE + name if BEFORE + name in context.variables else name
            yield Filling(template(unchanged), {"argument": name})


def small_number(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield numbers that people type in."""
    for number in SMALL_NUMBERS:
        yield Filling(ast.Constant(number), {"small_number": str(number)})


def other_comparison(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield each comparison but the one that stands there."""
    for operator in COMPARISONS.values():
        if operator != place.comparison:
            yield Filling(operator, {"other_comparison": RELATIONS[operator]})


def other_variable(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield each variable that could stand for the one that stands there: a number for a number, a tensor for a tensor
    of as many axes and the same dtype.
    """
    own = context.variables.get(place.node.id)
    for name, value in context.variables.items():
        if name != place.node.id and _exchangeable(own, value):
            cost = 0.0
            if not name.startswith(BEFORE):
                same_shape = isinstance(own, Tensor) and own.shape == value.shape
                computed = name not in context.words.parameters
                cost = OF_ANOTHER_SHAPE if not same_shape else ANOTHER if computed else 0
            yield Filling(template(name), parts={"other": template(name), "whose": place.node}, cost=cost)


def _exchangeable(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return (one.ndim, one.dtype) == (other.ndim, other.dtype)
    return isinstance(one, int | float) and type(other) in (int, float)


def other_limits(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield all limits of a part but those that stand there."""
    own = ast.unparse(parts["R"])
    for limits, words in LIMITS.items():
        if limits != own:
            sentence = {"other_limits": words, "own_limits": LIMITS.get(own, "another part")}
            yield Filling(ast.Constant(limits), sentence, cost=0 if limits == ":" else OF_ANOTHER_SHAPE)


def two_exchanged(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield the order of a list's entries with two of them exchanged."""
    entries = place.node.elts
    for i, j in itertools.combinations(range(len(entries)), 2):
        order = [{i: j, j: i}.get(k, k) for k in range(len(entries))]
        yield Filling(_listed(order), parts={"one": entries[i], "two": entries[j]})


def one_moved(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield the order of a list's entries with one of them moved past several others."""
    entries = place.node.elts
    for i, j in itertools.permutations(range(len(entries)), 2):
        if abs(i - j) > 1:
            order = [k for k in range(len(entries)) if k != i]
            order.insert(j, i)
            ordinals = ["last" if at == len(entries) - 1 else ORDINALS[at] for at in (i, j)]
            yield Filling(_listed(order), {"own_place": ordinals[0], "new_place": ordinals[1]}, {"one": entries[i]})


def one_left_out(place: AnswerPlace, parts: Parts, context: Context) -> Iterator[Filling]:
    """Yield the order of a list's entries without one of them."""
    entries = place.node.elts
    for i, entry in enumerate(entries):
        yield Filling(_listed([k for k in range(len(entries)) if k != i]), parts={"one": entry})


def _listed(order: list[int]) -> str:
    return ", ".join(map(str, order))


FILLINGS: dict[str, Callable[[AnswerPlace, Parts, Context], Iterator[Filling]]] = {
    function.__name__: function
    for function in (
        *(own_axis, each_axis, other_axis, each_size, argument, small_number, other_comparison, other_variable),
        *(other_limits, two_exchanged, one_moved, one_left_out),
    )
}
