"""Which form a node of an answer has, and what the letters of that form stand for in it."""

import ast
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import Tensor

from companion.lesson.near_misses.places import Scene, Site, tags_of, value_of
from companion.lesson.near_misses.syntax import axis, call, from_module, indices, operation, root
from companion.lesson.near_misses.table import Rows
from companion.lesson.near_misses.trees import BEFORE, FUNCTION_LETTERS, made, remembers, template
from companion.lesson.near_misses.words import Words

FUNCTIONS = {
    "sum", "mean", "amin", "amax", "norm", "std", "var", "prod", "any", "all", "logsumexp", "softmax", "log_softmax",
    "exp", "log", "sqrt", "square", "abs", "relu", "tanh", "sigmoid", "cumsum", "clamp_min", "clamp_max", "clamp", "sign",
    "normalize", "round", "cos", "sin", "log2", "entr",
}  # fmt: skip
MAKERS = ("arange", "where", "eye", "zeros", "ones", "full", "linspace", "outer", "solve", "lstsq")


def match(pattern: Any, node: Any, words: Words) -> dict[str, Any] | None:
    """Return what the letters of a pattern stand for in a node of its form, through variables too, or None if it has
    another form.
    """
    found: dict[str, Any] = {}
    return found if _fits(pattern, node, found, words) else None


def _fits(pattern: Any, node: Any, found: dict[str, Any], words: Words) -> bool:
    if isinstance(pattern, ast.Name) and len(pattern.id) == 1 and pattern.id.isupper():
        if not isinstance(node, ast.expr) or isinstance(node, ast.Slice):
            return False
        held = found.setdefault(pattern.id, node)
        return held is node or ast.unparse(held) == ast.unparse(node)
    if isinstance(node, ast.Name) and not isinstance(pattern, ast.Name) and node.id in words.defined:
        if node.id in words.changing | words.unpacked or not words.still_so(node):
            return False
        node = words.defined[node.id]
    if isinstance(pattern, ast.Call) and isinstance(pattern.func, ast.Name) and pattern.func.id in FUNCTION_LETTERS:
        name, parts = call(node) or ("", {})
        others = {letter: operation(found[letter])[0] for letter in FUNCTION_LETTERS if letter in found}
        if name not in FUNCTIONS or others.pop(pattern.func.id, name) != name or name in others.values():
            return False
        found.setdefault(pattern.func.id, parts["Y"])
        return _fits(pattern.args[0], parts["X"], found, words)
    pattern, node = _plain(pattern), _plain(node)
    if type(pattern) is not type(node):
        return False
    for name, one in ast.iter_fields(pattern):
        other = getattr(node, name)
        if name in ("ctx", "keywords", "kind", "type_comment"):
            continue
        if isinstance(one, list):
            other = [each for each in other if not remembers(each)]
            if name == "args" and one and isinstance(one[-1], ast.Constant) and one[-1].value is ...:
                one, other = one[:-1], other[: len(one) - 1]  # noqa: PLW2901  # the rest may be anything
            if len(one) != len(other) or not all(_fits(a, b, found, words) for a, b in zip(one, other, strict=True)):
                return False
        elif isinstance(one, ast.AST):
            if not _fits(one, other, found, words):
                return False
        elif one != other:
            return False
    return True


def _plain(node: ast.AST) -> Any:
    """Return torch.f(x, ..) and F.f(x, ..) as x.f(..), where the first argument is a tensor, and x.f(dim=1) as x.f(1)."""
    if not isinstance(node, ast.Call):
        return node
    args = [*node.args, *(each.value for each in node.keywords if each.arg == "dim")]
    if from_module(node) and node.args and not isinstance(node.args[0], ast.List) and node.func.attr not in MAKERS:
        return ast.Call(ast.Attribute(args[0], node.func.attr, ast.Load()), args[1:], node.keywords)
    return ast.Call(node.func, args, node.keywords)


Parts = Callable[[Any], dict[str, Any]]  # from a node, which may have been edited below, to what a row's letters are


def ways(block: Rows, site: Site, scene: Scene) -> Iterator[Parts]:
    """Yield a function that gives the parts of a node, for each way in which a block applies to it."""
    node = site.node  # None where an argument is changed before anything is computed
    if node and block.patterns:
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return  # -1 is a number, and mostly an axis
        for pattern in block.patterns:
            held = match(pattern, node, scene.words)
            kinds = [each.split() for each in block.words if block.kind != "do"]
            if held is not None and all(kind in tags_of(value_of(held[part], scene)) for part, kind in kinds):
                yield lambda now, pattern=pattern: (match(pattern, now, scene.words) or {}) | {"Y": now}
                return
    elif node and block.kind in ("call", "axis", "all"):
        of_all = axis(node) is None and isinstance(node, ast.Call)
        if (call(node) or ("", {}))[0] in block.words and (block.kind == "call" or of_all == (block.kind == "all")):
            yield _of_call
    elif block.kind in site.kinds and set(block.words) <= site.tags:
        yield from _of_kind(block.kind, site, scene)


def _of_call(now: Any) -> dict[str, Any]:
    return (call(now) or ("", {}))[1] | {"along": partial(_along, now), "other": partial(_other, now)}


def _of_kind(kind: str, site: Site, scene: Scene) -> Iterator[Parts]:
    """Yield the ways of a heading that states no form."""
    match kind:
        case "compare":
            yield lambda now: {"A": now.left, "B": now.comparators[0]}
        case "name":
            yield lambda now: {"A": now}
        case "list":
            yield lambda now: {"picked": partial(_picked, now)}
        case "argument":
            yield lambda _: {"X": site.node}
        case "slice":
            for at, each in enumerate(indices(site.node)):
                if isinstance(each, ast.Slice) and (each.lower or each.upper):
                    yield lambda now, at=at: {"X": now.value, "R": indices(now)[at], "part": partial(_part, now, at)}
        case "loop":  # for each variable that it carries from round to round
            nodes = [node for node in ast.walk(site.node) if isinstance(node, ast.Name)]
            read, stored = ({each.id for each in nodes if isinstance(each.ctx, ctx)} for ctx in (ast.Load, ast.Store))
            for name in sorted(stored & read & scene.words.defined.keys()):
                if not name.startswith(BEFORE):
                    held = {"N": template(name), "S": scene.words.defined[name]}
                    yield lambda now, held=held: held | {"I": now.target, "R": now.iter, "BODY": now.body}
        case "arguments" | "tensors":
            for (first, a), (second, b) in itertools.combinations(scene.inputs.items(), 2):
                both = isinstance(a, Tensor) and isinstance(b, Tensor)
                alike = both and a.ndim == b.ndim
                if alike or (kind == "arguments" and isinstance(a, Tensor) == isinstance(b, Tensor)):
                    yield lambda _, first=first, second=second: {"A": template(first), "B": template(second)}
        case "shared":  # each axis that arguments share
            for places in scene.tied:
                yield lambda _, places=places: {"places": places, "cut": partial(_cut, places)}
        case _:
            yield lambda now: {"X": now}


def _along(now: ast.expr, dim: ast.expr, keepdim: ast.expr | None = None) -> ast.expr:
    """Make the same call along another axis or, for None, of all entries."""
    if isinstance(now, ast.Attribute):  # the values of cummin or cummax
        return ast.Attribute(_along(now.value, dim, keepdim), now.attr, ast.Load())
    own, to = axis(now), ast.literal_eval(dim)
    args = [each for each in now.args if own is None or ast.unparse(each) != str(own)]
    dropped = {"dim", "dims"} | ({"keepdim"} if own is not None and to is None else set())
    kept = [each for each in now.keywords if each.arg not in dropped]
    if to is not None:
        kept.append(ast.keyword("dims" if operation(now)[0] in ("flip", "roll") else "dim", dim))
    if keepdim is not None:
        kept.append(ast.keyword("keepdim", keepdim))
    return ast.Call(now.func, args, kept)


def _other(now: ast.Call, name: ast.Constant) -> ast.expr:
    """Make a call of another function of the same tensor, along the same axis."""
    inner, dim, other = call(now)[1]["X"], axis(now), name.value  # type: ignore[index]  # it is a call: the site's
    if root(now.func) == "math":
        return made(f"math.{other}(X)", X=inner)
    args = now.args[from_module(now) :] if dim is None else []
    options = [each for each in now.keywords if each.arg in ("keepdim", "descending")]
    along = [] if dim is None else [ast.keyword("dim", ast.Constant(dim))]
    new = ast.Call(ast.Attribute(inner, other, ast.Load()), args, along + options)
    return ast.Attribute(new, "values", ast.Load()) if other == "median" and along else new


def _part(now: ast.Subscript, at: int, text: ast.Constant) -> ast.Subscript:
    parts = indices(now)
    parts[at] = template(f"x[{text.value}]").slice
    return ast.Subscript(now.value, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()), ast.Load())


def _picked(now: ast.List | ast.Tuple, *order: ast.Constant) -> ast.expr:
    return type(now)([now.elts[each.value] for each in order], ast.Load())


def _cut(places: list[tuple[str, int]], part: ast.Constant) -> Any:
    return made("\n".join(f"{name} = {name}[{':, ' * dim}{part.value}]" for name, dim in places))
