"""What a learner's own program shows: its names and numbers, and whether it bears out a near miss, since other programs
give the same values.
"""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from companion.lesson.attempts import source_of
from companion.lesson.near_misses.syntax import operation, size_of

ALIKE: dict[Hashable, Hashable] = {  # one operation under several names
    "T": "mT", "t": "mT", "transpose": "mT", "matmul": "MatMult", "mm": "MatMult", "bmm": "MatMult", "mv": "MatMult",
    "dot": "MatMult", "square": ("Pow", 2), "sqrt": ("Pow", 0.5), "max": "amax", "min": "amin", "mul": "Mult",
    "div": "Div", "pow": "Pow", "linalg_norm": "norm", "vector_norm": "norm", "remainder": "Mod", "neg": "USub",
    "logical_not": "Invert", "sub": "Sub", "add": "Add",
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A learner's function as it is written, beside the course's answer.

    ``tree``: its definition.
    ``answer``: that of the course's answer.
    """

    tree: ast.FunctionDef | ast.Lambda
    answer: ast.FunctionDef

    @classmethod
    def of(cls, function: Callable[..., Any], answer: ast.FunctionDef) -> "Program | None":
        """Read a function, or return None if it has no source."""
        source = source_of(function)
        return None if source is None else cls(source.tree, answer)

    @cached_property
    def names(self) -> Counter[str]:
        """Return the variables that it makes, and in how many places."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name)]
        return Counter(node.id for node in nodes if isinstance(node.ctx, ast.Store))

    @cached_property
    def known_as(self) -> dict[str, str]:
        """Return the answer's names of its arguments, which a learner may call otherwise."""
        theirs, ours = ([argument.arg for argument in tree.args.args] for tree in (self.tree, self.answer))
        return dict(zip(theirs, ours, strict=False))

    @cached_property
    def numbers(self) -> set[float]:
        """Return the sizes of the numbers that are written in it."""
        nodes = [node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant)]
        return {abs(value) for value in nodes if type(value) in (int, float)}

    @property
    def waits(self) -> bool:
        """Return whether it has a loop that inputs of another kind may never end."""
        return any(isinstance(node, ast.While) for node in ast.walk(self.tree))

    def mentions(self, argument: str) -> bool:
        """Return whether an argument, by the answer's name, occurs in it."""
        return not leaves_out(self.tree, [each.arg for each in self.answer.args.args].index(argument))

    def shows(self, near_miss: ast.FunctionDef) -> bool:
        """Return whether the program has what a near miss has and the answer has nowhere, and nowhere what it has lost."""
        ours = list(self.known_as.values())
        right, wrong = _features(self.answer, ours), _features(near_miss, ours)
        held = _features(self.tree, self.known_as.keys(), self.known_as)
        new = [each for each in wrong if not right[each] and each not in ("clone", "expand_as")]
        if any(isinstance(each, tuple) and each[0] == "part" for each in wrong - right):
            return False  # many programs have a first and a last of something
        lost = [each for each in right if not wrong[each]]
        return bool(new or lost) and all(held[each] for each in new) and not any(held[each] for each in lost)

    def evidence(self, near_miss: ast.FunctionDef) -> int:
        """Return how well the program bears out that it is this near miss: 2 if it has something of the near miss that
        the answer has not, 1 if nothing speaks against it, 0 if it lacks what the near miss has, has what the near miss
        lacks, or has little in common with it.

        ``near_miss``: the answer, edited.
        """
        ours = list(self.known_as.values())
        right, wrong = _features(self.answer, ours), _features(near_miss, ours)
        held = _features(self.tree, self.known_as.keys(), self.known_as)
        new, gone = wrong - right, right - wrong
        if any(held[each] < wrong[each] for each in new):
            return 0
        if any(held[each] > wrong[each] if _is_call(each) else held[each] and not wrong[each] for each in gone):
            return 0
        if 2 * sum(held[each] > 0 for each in wrong) < len(+wrong):
            return 0
        return 2 if any(not right[each] for each in new) else 1


def _is_call(feature: Hashable) -> bool:
    return isinstance(feature, str) and feature[0].islower()


def leaves_out(tree: ast.FunctionDef | ast.Lambda, place: int) -> bool:
    """Return whether a function has a name for its argument at a place, and never uses it."""
    named = tree.args.args[place : place + 1]
    return bool(named) and not any(isinstance(each, ast.Name) and each.id == named[0].arg for each in ast.walk(tree))


def _features(tree: ast.AST, arguments: Collection[str], known_as: dict[str, str] | None = None) -> Counter[Hashable]:
    """Count operations and comparisons, again with each bare argument or number that they are of; numbers above 1; parts
    by their limits, where these are numbers or arguments; and neighbours in a list, where these are variables. What is
    only there to give a term the right shape, zeros that are added and ones that multiply, is left out.
    """
    found: Counter[Hashable] = Counter()

    def note(kind: Hashable, *operands: ast.AST | None) -> None:
        found[kind] += 1
        for at, each in enumerate(operands):
            side = at if kind in ("Sub", "Div") else None  # 1 - a is not a - 1
            if isinstance(each, ast.Name) and each.id in arguments:
                found[kind, side, (known_as or {}).get(each.id, each.id)] += 1
            elif isinstance(each, ast.Constant):
                found[kind, side, each.value] += 1

    filling = {id(node) for over in ast.walk(tree) if isinstance(over, ast.BinOp) for node in _shaping(over)}
    for node in ast.walk(tree):
        if id(node) in filling:
            continue
        if isinstance(node, ast.Subscript) and size_of(node) is None:
            for each in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
                if (part := _limits(each, arguments, known_as or {})) is not None:
                    found["part", part] += 1
        if isinstance(node, ast.List | ast.Tuple):
            for one, two in itertools.pairwise(node.elts):
                if isinstance(one, ast.Name) and isinstance(two, ast.Name):
                    found["before", one.id, two.id] += 1
        name, inside = operation(node)
        if name is not None and (isinstance(node, ast.Call) or name in ("T", "mT")):
            squared = name == "pow" and isinstance(node.args[-1], ast.Constant) and node.args[-1].value == 2
            note(("Pow", 2) if squared else ALIKE.get(name, name), inside)
        elif isinstance(node, ast.BinOp | ast.UnaryOp) and not any(isinstance(n, ast.Name) for n in ast.walk(node)):
            continue  # a number, as -1 and 2 / 3 are
        elif isinstance(node, ast.BinOp):
            kind, by = type(node.op).__name__, getattr(node.right, "value", None)
            root_or_square = kind == "Pow" and by in (0.5, 2)
            note((kind, by), node.left) if root_or_square else note(kind, node.left, node.right)
        elif isinstance(node, ast.UnaryOp):
            note(type(node.op).__name__, node.operand)
        elif isinstance(node, ast.Compare):
            note(type(node.ops[0]).__name__, node.left, node.comparators[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) > 1:
            note(node.value)
    return found


def _shaping(node: ast.BinOp) -> list[ast.AST]:
    """Return an operation and its operand of zeros or ones, if it has one that only gives the other its shape."""
    kinds = ("zeros_like",) if isinstance(node.op, ast.Add | ast.Sub) else ("ones_like",)
    return [each for side in (node.left, node.right) if operation(side)[0] in kinds for each in (node, side)]


def _limits(index: ast.expr, arguments: Collection[str], known_as: dict[str, str]) -> str | None:
    """Return a slice, or an index, as text, if it is made of numbers and arguments alone; 0 is :1, and -1 is -1:."""
    names = [node.id for node in ast.walk(index) if isinstance(node, ast.Name)]
    if any(name not in arguments for name in names) or (names and not isinstance(index, ast.Slice)):
        return None
    text = re.sub(r"[A-Za-z_]\w*", lambda name: known_as.get(name[0], name[0]), ast.unparse(index))
    text = text.removeprefix("0") if text.startswith("0:") else text
    return None if text in (":", "None", "...") else {"0": ":1", "-1": "-1:"}.get(text, text)
