"""The places of an answer where a row of the table may apply, and the headings of the table that each has."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.syntax import operation, size_of
from companion.lesson.near_misses.table import ARGUMENTS
from companion.lesson.near_misses.trees import SLOT, Path, all_statements, answer_path, expressions, remembers
from companion.lesson.near_misses.words import COMPARISONS, Words


@dataclass(frozen=True)
class Site:
    """A place in an answer: an expression, a statement, or an argument before the first step.

    ``value``: what it was on a drawn input.
    ``kinds``, ``tags``: which headings it has, and their words.
    """

    path: Path
    node: Any
    value: Any
    kinds: set[str]
    tags: set[str]


@dataclass(frozen=True)
class Scene:
    """What an edit may know about the answer.

    ``inputs``: a drawn input, by name.
    ``variables``: what each was on it, the arguments and what is made on the way.
    ``sizes``: of the arguments, as code and in words.
    ``tied``: the axes of arguments that have one size in every draw.
    ``values``: what each expression was, by its path.
    """

    tree: ast.FunctionDef
    words: Words
    inputs: dict[str, Any]
    variables: dict[str, Any]
    sizes: list[tuple[str, str]]
    tied: list[list[tuple[str, int]]]
    values: dict[Path, Any]


def sites(scene: Scene) -> Iterator[Site]:
    last = answer_path(scene.tree)
    for path, node, above in expressions(scene.tree):
        if not any(remembers(each) for each in above):
            value = scene.values.get(path)
            kinds = _kinds(node, above, value, scene.words) | ({"answer"} if path == last else set())
            turned = {"matrix"} if operation(node)[0] in ("mT", "T") else set()  # to turn it back is a row of its own
            tags = tags_of(value) - turned | _standing(node, above, path == last)
            yield Site(path, node, value, kinds, tags)
    for path, line in all_statements(scene.tree):
        if not remembers(line):
            yield Site(path, line, None, {"loop"} if isinstance(line, ast.For) else set(), set())
    for name, value in scene.inputs.items():
        yield Site(SLOT, ast.Name(name, ast.Load()), value, {"argument"}, tags_of(value))
    yield Site(SLOT, None, None, set(ARGUMENTS) - {"argument"}, set())


def tags_of(value: Any) -> set[str]:
    """Return what kind of thing a value is, in the words that headings use."""
    if isinstance(value, Tensor):
        kind = "float" if value.is_floating_point() else "bool" if value.dtype == torch.bool else "whole"
        found = {kind, "tensor", f"{value.ndim}d"}
        if value.ndim >= 2:
            found |= {"matrix"} | ({"square"} if value.shape[-1] == value.shape[-2] > 1 else set())
        if kind != "bool" and value.numel() and not value.is_complex():
            if not (value % 1).any() and value.min() >= 0:
                found |= {"bits"} if value.max() <= 1 else {"counts"}
            if kind == "whole" and value.ndim and value.max() < value.shape[-1] and value.min() >= 0:
                found |= {"places"}
        return found
    if isinstance(value, bool) or not isinstance(value, int | float):
        return set()
    return {"number", "fraction" if isinstance(value, float) else "integer"}


def _standing(node: ast.expr, above: tuple[ast.AST, ...], returned: bool) -> set[str]:
    """Return the tags of where an expression stands, and of what makes it."""
    over = above[-1]
    term = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Add | ast.Sub)
    held = isinstance(over, ast.Call | ast.Attribute | ast.Assign | ast.keyword)
    found = {"step"} if returned or term or held or isinstance(node, ast.Call) else set()
    found |= {"name"} if isinstance(node, ast.Name) else set()
    return found | ({"share"} if operation(node)[0] in ("sigmoid", "softmax") else set())


def _kinds(node: ast.expr, above: tuple[ast.AST, ...], value: Any, words: Words) -> set[str]:
    """Return the headings that an expression has, but for those that state a form."""
    size = words.size(node) is not None
    found = {"size"} if size else set()
    if isinstance(value, Tensor) and not size:
        found.add("value")
    written = isinstance(getattr(node, "operand", node), ast.Constant | ast.Name)
    if isinstance(value, int | float) and not isinstance(value, bool) and not (size or written):
        found.add("number")
    found |= _written_as(node, above)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        found.add("compare")
    if isinstance(node, ast.List | ast.Tuple) and 1 < len(node.elts) < 6 and not isinstance(above[-1], ast.Subscript):
        found.add("list")
    found |= {"name"} if isinstance(node, ast.Name) else {"slice"} if isinstance(node, ast.Subscript) else set()
    return found | ({"start"} if any(words.defined.get(name) is node for name in words.changing) else set())


def _written_as(node: ast.AST, above: tuple[ast.AST, ...]) -> set[str]:
    """Return whether a number that is written out, its sign with it, is a "constant" or an "index", or nothing: an axis,
    a size, a root.
    """
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    number = node.operand if negative else node
    if not isinstance(number, ast.Constant) or type(number.value) not in (int, float):
        return set()
    over = above[-1]
    if isinstance(over, ast.UnaryOp) and isinstance(over.op, ast.USub):
        return set()  # the number with its sign is the place
    root_ = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Pow) and number.value == 0.5
    axis_ = isinstance(over, ast.keyword) or (type(number.value) is int and isinstance(over, ast.Call | ast.keyword))
    if root_ or axis_ or any(map(size_of, above[-2:])):
        return set()
    return {"index"} if any(isinstance(each, ast.Subscript) for each in above[-3:]) else {"constant"}


def value_of(node: ast.AST, scene: Scene) -> Any:
    return next((scene.values.get(path) for path, each, _ in expressions(scene.tree) if each is node), None)
