"""What a learner's own program shows: its names and numbers, and whether it bears out a near miss, since other programs
give the same values.
"""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from companion.lesson.attempts import source_of
from companion.lesson.near_misses.syntax import indices, operation, size_of

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
        right, wrong, own = self._all_features(near_miss)
        new = [feature for feature in wrong if not right[feature] and feature not in ("clone", "expand_as")]
        lost = [feature for feature in right if not wrong[feature]]
        if any(isinstance(feature, tuple) and feature[0] == "part" for feature in wrong - right):
            return False  # many programs have a first and a last of something
        return bool(new or lost) and all(own[feature] for feature in new) and not any(own[feature] for feature in lost)

    def evidence(self, near_miss: ast.FunctionDef) -> int:
        """Return how well the program bears out that it is this near miss: 2 if it has something of the near miss that
        the answer has not, 1 if nothing speaks against it, 0 if it lacks what the near miss has, has what the near miss
        lacks, or has little in common with it.

        ``near_miss``: the answer, edited.
        """
        right, wrong, own = self._all_features(near_miss)
        new, lost = wrong - right, right - wrong
        lacks = any(own[feature] < wrong[feature] for feature in new)
        keeps = any(
            own[feature] > wrong[feature] if _is_call(feature) else own[feature] and not wrong[feature]
            for feature in lost
        )
        shared = sum(own[feature] > 0 for feature in wrong)
        if lacks or keeps or 2 * shared < len(+wrong):
            return 0
        return 2 if any(not right[feature] for feature in new) else 1

    def _all_features(
        self, near_miss: ast.FunctionDef
    ) -> tuple[Counter[Hashable], Counter[Hashable], Counter[Hashable]]:
        """Return the features of the course's answer, of a near miss, and of the program itself."""
        arguments = list(self.known_as.values())
        own = _features(self.tree, self.known_as.keys(), self.known_as)
        return _features(self.answer, arguments), _features(near_miss, arguments), own


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
    known_as = known_as or {}
    features: Counter[Hashable] = Counter()
    shaping = {id(node) for parent in ast.walk(tree) if isinstance(parent, ast.BinOp) for node in _shaping(parent)}
    for node in ast.walk(tree):
        if id(node) not in shaping:
            features.update(_features_of_parts(node, arguments, known_as))
            features.update(_features_of_operation(node, arguments, known_as))
    return features


def _features_of_parts(node: ast.AST, arguments: Collection[str], known_as: dict[str, str]) -> Iterator[Hashable]:
    """Yield the limits of a part, the neighbours in a list, or a number above 1."""
    if isinstance(node, ast.Subscript) and size_of(node) is None:
        limits = (_limits(index, arguments, known_as) for index in indices(node))
        yield from (("part", text) for text in limits if text is not None)
    elif isinstance(node, ast.List | ast.Tuple):
        pairs = itertools.pairwise(node.elts)
        yield from (("before", one.id, two.id) for one, two in pairs if _is_name(one) and _is_name(two))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) > 1:
        yield node.value


def _features_of_operation(node: ast.AST, arguments: Collection[str], known_as: dict[str, str]) -> Iterator[Hashable]:
    """Yield an operation, and again with each bare argument or number that it is of."""
    kind, *operands = _operation(node)
    if kind is None:
        return
    yield kind
    for at, operand in enumerate(operands):
        side = at if kind in ("Sub", "Div") else None  # 1 - a is not a - 1
        if isinstance(operand, ast.Name) and operand.id in arguments:
            yield kind, side, known_as.get(operand.id, operand.id)
        elif isinstance(operand, ast.Constant):
            yield kind, side, operand.value


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _operation(node: ast.AST) -> tuple[Any, ...]:
    """Return the kind of an operation, one for all names that it goes by, and its operands; (None,) for anything else."""
    name, inside = operation(node)
    if name is not None and (isinstance(node, ast.Call) or name in ("T", "mT")):
        squared = name == "pow" and isinstance(node.args[-1], ast.Constant) and node.args[-1].value == 2
        return ("Pow", 2) if squared else ALIKE.get(name, name), inside
    if isinstance(node, ast.Compare):
        return type(node.ops[0]).__name__, node.left, node.comparators[0]
    if not isinstance(node, ast.BinOp | ast.UnaryOp) or not any(map(_is_name, ast.walk(node))):
        return (None,)  # a number, as -1 and 2 / 3 are, is no operation
    kind = type(node.op).__name__
    if isinstance(node, ast.UnaryOp):
        return kind, node.operand
    exponent = getattr(node.right, "value", None)
    return ((kind, exponent), node.left) if kind == "Pow" and exponent in (0.5, 2) else (kind, node.left, node.right)


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
