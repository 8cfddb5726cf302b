"""Which form a node of an answer has, and what the letters of that form stand for in it."""

import ast
from typing import Any

from companion.lesson.near_misses.trees import FUNCTION_LETTERS, from_module, remembers
from companion.lesson.near_misses.words import Words, operation

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


def call(node: ast.AST) -> tuple[str, dict[str, Any]] | None:
    """Return a call's name and parts: X its tensor, A B C its other arguments, Y the whole; or None if it is none."""
    if isinstance(node, ast.Attribute) and node.attr == "values":
        inner = call(node.value)
        return (inner[0], inner[1] | {"Y": node}) if inner and inner[0] in ("cummin", "cummax") else None
    name, inside = operation(node)
    if not isinstance(node, ast.Call) or name is None or inside is None:
        return None
    rest = node.args[1:] if from_module(node) or isinstance(node.func, ast.Name) else node.args
    return name, {"X": inside, "Y": node, **dict(zip("ABC", rest, strict=False))}


def axis(node: ast.AST) -> int | None:
    """Return the axis that a call names, or None."""
    if isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Call):
        return None
    at = {"roll": 1}.get(operation(node)[0] or "", 0) + from_module(node)
    for value in [each.value for each in node.keywords if each.arg in ("dim", "dims")] + node.args[at : at + 1]:
        try:
            number = ast.literal_eval(value)
        except ValueError:
            continue
        if type(number) is int:
            return number
    return None
