"""The places of an answer where a row of the table may apply: which headings each has, and what its value was."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from companion.lesson.near_misses.syntax import call, operation, size_of
from companion.lesson.near_misses.table import OF_TWO_INPUTS
from companion.lesson.near_misses.trees import SLOT, Path, all_statements, answer_path, expressions, remembers
from companion.lesson.near_misses.words import COMPARISONS, Words


@dataclass(frozen=True)
class AnswerPlace:
    """A place in an answer: an expression, a statement, an argument before the first step, or the head of the answer.

    ``path``: where it is in the tree.
    ``node``: what stands there; None for the head.
    ``value``: what it was on a drawn input.
    ``kinds``: the headings of the table that it has.
    ``tags``: the words that may follow such a heading.
    """

    path: Path
    node: Any
    value: Any
    kinds: set[str]
    tags: set[str]

    @cached_property
    def function(self) -> str:
        """Return the name of the function that is called here, or nothing."""
        return (call(self.node) or ("", {}))[0] if self.node else ""

    @cached_property
    def comparison(self) -> str:
        """Return the comparison that stands here, as code, or nothing."""
        return COMPARISONS[type(self.node.ops[0])] if "compare" in self.kinds else ""


@dataclass(frozen=True)
class Context:
    """What is known of the answer that is edited.

    ``tree``: its definition.
    ``words``: the words for its parts.
    ``inputs``: a drawn input, by name.
    ``variables``: what each was on that input, the arguments and what is computed on the way.
    ``sizes``: of the arguments, as code and in words.
    ``tied``: groups of axes of arguments that have one size in every draw.
    ``values``: what each expression was, by its path.
    """

    tree: ast.FunctionDef
    words: Words
    inputs: dict[str, Any]
    variables: dict[str, Any]
    sizes: list[tuple[str, str]]
    tied: list[list[tuple[str, int]]]
    values: dict[Path, Any]

    def value_of(self, node: ast.AST) -> Any:
        """Return what a node of the answer was on the drawn input."""
        return next((self.values.get(path) for path, other, _ in expressions(self.tree) if other is node), None)


def places_of(context: Context) -> Iterator[AnswerPlace]:
    """Yield every place of an answer."""
    returned = answer_path(context.tree)
    for path, node, above in expressions(context.tree):
        if not any(map(remembers, above)):
            value = context.values.get(path)
            kinds = _kinds(node, above, value, context.words) | ({"answer"} if path == returned else set())
            transpose = (
                {"matrix"} if operation(node)[0] in ("mT", "T") else set()
            )  # to turn it back is a row of its own
            tags = tags_of(value) - transpose | _tags_of_form(node, above[-1], path == returned)
            yield AnswerPlace(path, node, value, kinds, tags)
    for path, statement in all_statements(context.tree):
        if not remembers(statement):
            yield AnswerPlace(path, statement, None, {"loop"} if isinstance(statement, ast.For) else set(), set())
    for name, value in context.inputs.items():
        yield AnswerPlace(SLOT, ast.Name(name, ast.Load()), value, {"argument"}, tags_of(value))
    yield AnswerPlace(SLOT, None, None, set(OF_TWO_INPUTS), set())


def tags_of(value: Any) -> set[str]:
    """Return the tags of a value: its type, and for a tensor its shape and which numbers it holds."""
    if isinstance(value, Tensor):
        dtype = "float" if value.is_floating_point() else "bool" if value.dtype == torch.bool else "whole"
        return {dtype, "tensor", f"{value.ndim}d"} | _tags_of_shape(value.shape) | _tags_of_numbers(value, dtype)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return set()
    return {"number", "fraction" if isinstance(value, float) else "integer"}


def _tags_of_shape(shape: torch.Size) -> set[str]:
    if len(shape) < 2:
        return set()
    return {"matrix", "square"} if shape[-1] == shape[-2] > 1 else {"matrix"}


def _tags_of_numbers(value: Tensor, dtype: str) -> set[str]:
    """Return whether a tensor holds bits, or counts, and whether these are places along its last axis."""
    if dtype == "bool" or not value.numel() or value.is_complex() or value.min() < 0:
        return set()
    tags = set() if (value % 1).any() else {"bits"} if value.max() <= 1 else {"counts"}
    places_ = dtype == "whole" and value.ndim and value.max() < value.shape[-1]
    return tags | ({"places"} if places_ else set())


def _tags_of_form(node: ast.expr, parent: ast.AST, returned: bool) -> set[str]:
    """Return the tags that come from what an expression is and where it stands: a step, a name, a share of 1."""
    term = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub)
    used_whole = isinstance(parent, ast.Call | ast.Attribute | ast.Assign | ast.keyword)
    tags = {"step"} if returned or term or used_whole or isinstance(node, ast.Call) else set()
    tags |= {"name"} if isinstance(node, ast.Name) else set()
    return tags | ({"share"} if operation(node)[0] in ("sigmoid", "softmax") else set())


def _kinds(node: ast.expr, above: tuple[ast.AST, ...], value: Any, words: Words) -> set[str]:
    """Return the headings that an expression has, but for patterns and calls."""
    kinds = _kinds_of_form(node, above[-1]) | _kinds_of_literal(node, above)
    if any(words.defined.get(name) is node for name in words.changing):
        kinds.add("start")
    if words.size(node) is not None:
        kinds.add("size")
    elif isinstance(value, Tensor):
        kinds.add("value")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        literal = isinstance(getattr(node, "operand", node), ast.Constant | ast.Name)
        kinds |= set() if literal else {"number"}
    return kinds


def _kinds_of_form(node: ast.expr, parent: ast.AST) -> set[str]:
    if isinstance(node, ast.Compare):
        return {"compare"} if type(node.ops[0]) in COMPARISONS else set()
    if isinstance(node, ast.List | ast.Tuple):
        return {"list"} if 1 < len(node.elts) < 6 and not isinstance(parent, ast.Subscript) else set()
    return {"name"} if isinstance(node, ast.Name) else {"slice"} if isinstance(node, ast.Subscript) else set()


def _kinds_of_literal(node: ast.AST, above: tuple[ast.AST, ...]) -> set[str]:
    """Return whether a number that is written out, its sign with it, is a "constant" or an "index"; nothing for one that
    is an axis, a size or a root.
    """
    number = node.operand if _is_negative(node) else node
    if not isinstance(number, ast.Constant) or type(number.value) not in (int, float):
        return set()
    parent = above[-1]
    if _is_negative(parent) or _is_root_or_axis(number.value, parent) or any(map(size_of, above[-2:])):
        return set()  # of -1, the number with its sign is the place
    return {"index"} if any(isinstance(over, ast.Subscript) for over in above[-3:]) else {"constant"}


def _is_negative(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _is_root_or_axis(number: float, parent: ast.AST) -> bool:
    root = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow) and number == 0.5
    return root or isinstance(parent, ast.keyword) or (type(number) is int and isinstance(parent, ast.Call))
