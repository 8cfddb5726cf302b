"""What a node of a program is: which call, of what, along which axis; which size; which factors."""

import ast
from typing import Any


def root(node: ast.AST) -> str:
    """Return the name that attributes are taken of, or nothing."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def from_module(node: ast.Call) -> bool:
    """Return whether a function is a module's, so that its tensor is the first argument."""
    return isinstance(node.func, ast.Attribute) and root(node.func) in ("torch", "F", "math")


def size_of(node: ast.AST) -> tuple[ast.expr, int] | None:
    """Return whose size, and along which axis, len(x) or x.shape[i] is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        return node.args[0], 0
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        try:
            return node.value.value, int(ast.literal_eval(node.slice))
        except (ValueError, TypeError):
            return None
    return None


def operation(node: ast.AST | None) -> tuple[str | None, ast.AST | None]:
    """Return an operation's name, and what it works on."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            inside = (node.args[0] if node.args else None) if from_module(node) else node.func.value
            return node.func.attr, inside
        if isinstance(node.func, ast.Name):
            return node.func.id, node.args[0] if node.args else None
    if isinstance(node, ast.Attribute) and root(node) not in ("torch", "F", "math"):
        return node.attr, node.value
    return None, None


def factors(node: ast.AST) -> list[ast.expr]:
    """Return the factors of a product of several."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult):
        same = type(node.op)
        sides = [
            factors(side) if isinstance(side, ast.BinOp) and isinstance(side.op, same) else [side]
            for side in (node.left, node.right)
        ]
        return [*sides[0], *sides[1]]
    return [node]


def call(node: ast.AST | None) -> tuple[str, dict[str, Any]] | None:
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
    named = [keyword.value for keyword in node.keywords if keyword.arg in ("dim", "dims")]
    for value in named + node.args[at : at + 1]:
        try:
            number = ast.literal_eval(value)
        except ValueError:
            continue
        if type(number) is int:
            return number
    return None


def indices(node: ast.Subscript) -> list[ast.expr]:
    """Return what a tensor is indexed by, axis by axis."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
