"""Whether a block of the table applies at a place of an answer, and what the letters of its rows stand for there."""

import ast
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import Tensor

from companion.lesson.near_misses.places import AnswerPlace, Context, tags_of
from companion.lesson.near_misses.syntax import axis, call, from_module, indices, operation, root
from companion.lesson.near_misses.table import TableBlock
from companion.lesson.near_misses.trees import BEFORE, FUNCTION_LETTERS, made, remembers, template
from companion.lesson.near_misses.words import Words

FUNCTIONS = {
    "sum", "mean", "amin", "amax", "norm", "std", "var", "prod", "any", "all", "logsumexp", "softmax", "log_softmax",
    "exp", "log", "sqrt", "square", "abs", "relu", "tanh", "sigmoid", "cumsum", "clamp_min", "clamp_max", "clamp", "sign",
    "normalize", "round", "cos", "sin", "log2", "entr",
}  # fmt: skip
MAKERS = ("arange", "where", "eye", "zeros", "ones", "full", "linspace", "outer", "solve", "lstsq")
IGNORED = ("ctx", "keywords", "kind", "type_comment")  # fields in which a pattern and a node may differ
Parts = dict[str, Any]  # by letter, a node; by name, a function that makes one; "places", which has no name in a row
Reading = Callable[[Any], Parts]  # of a node, in which something may have been edited already


def readings(block: TableBlock, place: AnswerPlace, context: Context) -> Iterator[Reading]:
    """Yield each way in which a block applies at a place: a function from the node there to the parts of its rows."""
    if place.node and block.patterns:
        yield from _by_pattern(block, place, context)
    elif place.node and block.kind in ("call", "axis", "all"):
        of_all = axis(place.node) is None and isinstance(place.node, ast.Call)
        if place.function in block.words and (block.kind == "call" or of_all == (block.kind == "all")):
            yield _of_call
    elif block.kind in place.kinds and set(block.words) <= place.tags:
        if block.kind in SEVERAL_READINGS:
            yield from SEVERAL_READINGS[block.kind](place, context)
        else:
            yield ONE_READING.get(block.kind, lambda now: {"X": now})


def _by_pattern(block: TableBlock, place: AnswerPlace, context: Context) -> Iterator[Reading]:
    """Yield the reading by the first pattern that a node has the form of, its conditions met."""
    if isinstance(place.node, ast.UnaryOp) and isinstance(place.node.operand, ast.Constant):
        return  # -1 is a number, and mostly an axis
    for pattern in block.patterns:
        parts = match(pattern, place.node, context.words)
        if parts is not None and all(
            tag in tags_of(context.value_of(parts[letter])) for letter, tag in block.conditions
        ):
            yield lambda now, pattern=pattern: (match(pattern, now, context.words) or {}) | {"Y": now}
            return


def match(pattern: Any, node: Any, words: Words) -> Parts | None:
    """Return what the letters of a pattern stand for in a node of its form, through variables too, or None if it has
    another form.
    """
    parts: Parts = {}
    return parts if _fits(pattern, node, parts, words) else None


def _fits(pattern: Any, node: Any, parts: Parts, words: Words) -> bool:
    """Return whether a node has the form of a pattern, and put what its letters stand for into ``parts``."""
    if isinstance(pattern, ast.Name) and len(pattern.id) == 1 and pattern.id.isupper():
        return _letter_fits(pattern.id, node, parts)
    if isinstance(node, ast.Name) and not isinstance(pattern, ast.Name) and node.id in words.defined:
        node = words.definition_now(node)
    if isinstance(pattern, ast.Call) and isinstance(pattern.func, ast.Name) and pattern.func.id in FUNCTION_LETTERS:
        return _function_fits(pattern, node, parts, words)
    pattern, node = _as_method(pattern), _as_method(node)
    return type(pattern) is type(node) and all(
        _field_fits(name, field, getattr(node, name), parts, words)
        for name, field in ast.iter_fields(pattern)
        if name not in IGNORED
    )


def _letter_fits(letter: str, node: Any, parts: Parts) -> bool:
    """Return whether a letter can stand for a node: for an expression, the same wherever the letter is."""
    if not isinstance(node, ast.expr) or isinstance(node, ast.Slice):
        return False
    known = parts.setdefault(letter, node)
    return known is node or ast.unparse(known) == ast.unparse(node)


def _function_fits(pattern: ast.Call, node: Any, parts: Parts, words: Words) -> bool:
    """Return whether a node is a call of a function that a letter, f or g, can stand for, of what the pattern has."""
    letter = pattern.func.id  # type: ignore[attr-defined]  # a name: the caller has looked
    name, of_call = call(node) or ("", {})
    known = {other: operation(parts[other])[0] for other in FUNCTION_LETTERS if other in parts}
    if name not in FUNCTIONS or known.pop(letter, name) != name or name in known.values():
        return False
    parts.setdefault(letter, of_call["Y"])
    return _fits(pattern.args[0], of_call["X"], parts, words)


def _field_fits(name: str, field: Any, own: Any, parts: Parts, words: Words) -> bool:
    """Return whether a node's ``own`` field of some name has the form of the pattern's ``field``."""
    if isinstance(field, ast.AST):
        return _fits(field, own, parts, words)
    if not isinstance(field, list):
        return field == own
    own = [child for child in own if not remembers(child)]
    if name == "args" and field and isinstance(field[-1], ast.Constant) and field[-1].value is ...:
        field, own = field[:-1], own[: len(field) - 1]  # the rest may be anything
    return len(field) == len(own) and all(
        _fits(one, other, parts, words) for one, other in zip(field, own, strict=True)
    )


def _as_method(node: Any) -> Any:
    """Return torch.f(x, ..) and F.f(x, ..) as x.f(..), where the first argument is a tensor, and x.f(dim=1) as x.f(1)."""
    if not isinstance(node, ast.Call):
        return node
    args = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dim")]
    if from_module(node) and node.args and not isinstance(node.args[0], ast.List) and node.func.attr not in MAKERS:
        return ast.Call(ast.Attribute(args[0], node.func.attr, ast.Load()), args[1:], node.keywords)
    return ast.Call(node.func, args, node.keywords)


def _of_call(now: Any) -> Parts:
    return (call(now) or ("", {}))[1] | {"along": partial(_along, now), "other": partial(_other, now)}


def _limits(place: AnswerPlace, context: Context) -> Iterator[Reading]:
    """Yield a reading for each index of a part that has limits."""
    for at, index in enumerate(indices(place.node)):
        if isinstance(index, ast.Slice) and (index.lower or index.upper):
            yield lambda now, at=at: {"X": now.value, "R": indices(now)[at], "part": partial(_part, now, at)}


def _carried(place: AnswerPlace, context: Context) -> Iterator[Reading]:
    """Yield a reading for each variable that a loop carries from round to round."""
    names = [node for node in ast.walk(place.node) if isinstance(node, ast.Name)]
    read, stored = ({name.id for name in names if isinstance(name.ctx, ctx)} for ctx in (ast.Load, ast.Store))
    for name in sorted(stored & read & context.words.defined.keys()):
        if not name.startswith(BEFORE):
            parts = {"N": template(name), "S": context.words.defined[name]}
            yield lambda now, parts=parts: parts | {"I": now.target, "R": now.iter, "BODY": now.body}


def _two_inputs(place: AnswerPlace, context: Context, *, of_one_ndim: bool) -> Iterator[Reading]:
    """Yield a reading for each two arguments that are both tensors, of as many axes where that is asked for; without
    that, for each two that are none, too.
    """
    for (first, a), (second, b) in itertools.combinations(context.inputs.items(), 2):
        tensors = {isinstance(value, Tensor) for value in (a, b)}
        if tensors == {True} and a.ndim == b.ndim if of_one_ndim else len(tensors) == 1:
            yield lambda _, first=first, second=second: {"A": template(first), "B": template(second)}


def _shared_axes(place: AnswerPlace, context: Context) -> Iterator[Reading]:
    """Yield a reading for each axis that arguments share."""
    for shared in context.tied:
        yield lambda _, shared=shared: {"places": shared, "cut": partial(_cut, shared)}


ONE_READING: dict[str, Reading] = {
    "compare": lambda now: {"A": now.left, "B": now.comparators[0]},
    "name": lambda now: {"A": now},
    "list": lambda now: {"picked": partial(_picked, now)},
}
SEVERAL_READINGS: dict[str, Callable[[AnswerPlace, Context], Iterator[Reading]]] = {
    "argument": lambda place, context: iter([lambda _: {"X": place.node}]),
    "slice": _limits,
    "loop": _carried,
    "arguments": partial(_two_inputs, of_one_ndim=False),
    "tensors": partial(_two_inputs, of_one_ndim=True),
    "shared": _shared_axes,
}


def _along(now: ast.expr, dim: ast.expr, keepdim: ast.expr | None = None) -> ast.expr:
    """Make the same call along another axis or, for None, of all entries."""
    if isinstance(now, ast.Attribute):  # the values of cummin or cummax
        return ast.Attribute(_along(now.value, dim, keepdim), now.attr, ast.Load())
    own, new = axis(now), ast.literal_eval(dim)
    args = [arg for arg in now.args if own is None or ast.unparse(arg) != str(own)]
    dropped = {"dim", "dims"} | ({"keepdim"} if own is not None and new is None else set())
    keywords = [keyword for keyword in now.keywords if keyword.arg not in dropped]
    if new is not None:
        keywords.append(ast.keyword("dims" if operation(now)[0] in ("flip", "roll") else "dim", dim))
    if keepdim is not None:
        keywords.append(ast.keyword("keepdim", keepdim))
    return ast.Call(now.func, args, keywords)


def _other(now: ast.Call, name: ast.Constant) -> ast.expr:
    """Make a call of another function of the same tensor, along the same axis."""
    tensor, dim, other = call(now)[1]["X"], axis(now), name.value  # type: ignore[index]  # it is a call: the place's
    if root(now.func) == "math":
        return made(f"math.{other}(X)", X=tensor)
    args = now.args[from_module(now) :] if dim is None else []
    options = [keyword for keyword in now.keywords if keyword.arg in ("keepdim", "descending")]
    along = [] if dim is None else [ast.keyword("dim", ast.Constant(dim))]
    new = ast.Call(ast.Attribute(tensor, other, ast.Load()), args, along + options)
    return ast.Attribute(new, "values", ast.Load()) if other == "median" and along else new


def _part(now: ast.Subscript, at: int, text: ast.Constant) -> ast.Subscript:
    """Make a part with other limits at one of its indices."""
    new = indices(now)
    new[at] = template(f"x[{text.value}]").slice
    return ast.Subscript(now.value, new[0] if len(new) == 1 else ast.Tuple(new, ast.Load()), ast.Load())


def _picked(now: ast.List | ast.Tuple, *order: ast.Constant) -> ast.expr:
    """Make a list of some entries of one, in an order."""
    return type(now)([now.elts[place.value] for place in order], ast.Load())


def _cut(shared: list[tuple[str, int]], limits: ast.Constant) -> Any:
    """Make statements that cut the axis that arguments share."""
    return made("\n".join(f"{name} = {name}[{':, ' * dim}{limits.value}]" for name, dim in shared))
