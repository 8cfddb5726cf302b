"""A call taken apart: the tensor that it works on, and its axis, whether it is written as a method or not."""

import ast
from collections.abc import Callable
from typing import Any

Proposal = tuple[Callable[[Any], ast.AST], str, str, float]


def from_module(node: ast.Call) -> bool:
    """Whether the function is a module's, so that its tensor is the first argument."""
    root = node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(node.func, ast.Attribute) and isinstance(root, ast.Name) and root.id in ("torch", "F", "math")


def inner(now: ast.Call) -> ast.expr:
    return now.args[0] if from_module(now) or isinstance(now.func, ast.Name) else now.func.value


def with_inner(now: ast.Call, new: ast.expr) -> ast.Call:
    """The call of another tensor."""
    if from_module(now) or isinstance(now.func, ast.Name):
        return ast.Call(now.func, [new, *now.args[1:]], now.keywords)
    return ast.Call(ast.Attribute(new, now.func.attr, ast.Load()), now.args, now.keywords)


def axis_of(node: ast.Call) -> tuple[str | int, int] | None:
    """Where the axis stands among a call's arguments, and what it is."""
    for at, keyword in enumerate(node.keywords):
        if keyword.arg in ("dim", "dims"):
            return _literal(keyword.value, f"k{at}")
    if not isinstance(node.func, ast.Attribute):
        return None
    first = 1 if from_module(node) else 0
    name = node.func.attr
    at = {"roll": first + 1}.get(name, first)
    return _literal(node.args[at], at) if len(node.args) > at else None


def _literal(node: ast.expr, at: str | int) -> tuple[str | int, int] | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return (at, value) if type(value) is int else None
