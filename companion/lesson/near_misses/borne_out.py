"""Whether a wrong answer's own program bears out the near miss that gives its values: other programs give them, too."""

import ast
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from typing import Any

from companion.lesson.near_misses.words import operation
from companion.lesson.sources import source_of

ALIKE: dict[Hashable, Hashable] = {
    "T": "mT", "t": "mT", "transpose": "mT", "matmul": "MatMult", "mm": "MatMult", "bmm": "MatMult", "mv": "MatMult",
    "dot": "MatMult", "square": ("Pow", 2), "sqrt": ("Pow", 0.5), "max": "amax", "min": "amin", "mul": "Mult",
    "div": "Div", "pow": "Pow", "linalg_norm": "norm", "vector_norm": "norm", "remainder": "Mod", "neg": "USub",
    "logical_not": "Invert", "sub": "Sub", "add": "Add",
}  # fmt: skip


def evidence(function: Callable[..., Any], answer: ast.FunctionDef, near_miss: ast.FunctionDef) -> int:
    """Return how well a function's program bears out that it is this near miss: 2 if it has something of the near miss
    that the answer has not, 1 if nothing speaks against it, 0 if it lacks what the near miss has, has what the near miss
    lacks, has little in common with it, or has no source.

    ``function``: what the learner wrote.
    ``answer``: the course's own.
    ``near_miss``: the answer, edited.
    """
    source = source_of(function)
    if source is None:
        return 0
    own = source.tree
    names = [[argument.arg for argument in tree.args.args] for tree in (answer, own)]
    right, wrong = _features(answer, names[0]), _features(near_miss, names[0])
    # the learner may call an argument by another name
    held = _features(own, names[1], dict(zip(names[1], names[0], strict=False)))
    new, gone = wrong - right, [each for each in right if not wrong[each]]
    if not all(held[each] for each in new) or any(held[each] for each in gone):
        return 0
    if 2 * sum(held[each] > 0 for each in wrong) < len(+wrong):
        return 0
    return 2 if any(not right[each] for each in new) else 1


def _features(tree: ast.AST, arguments: Collection[str], known_as: dict[str, str] | None = None) -> Counter[Hashable]:
    """Count operations and comparisons, again with each bare argument or number that they are of, and numbers above 1."""
    found: Counter[Hashable] = Counter()

    def note(kind: Hashable, *operands: ast.AST | None) -> None:
        found[kind] += 1
        for at, each in enumerate(operands):
            side = at if kind in ("Sub", "Div") else None  # 1 - a is not a - 1
            if isinstance(each, ast.Name) and each.id in arguments:
                found[kind, side, (known_as or {}).get(each.id, each.id)] += 1
            elif isinstance(each, ast.Constant):
                found[kind, side, each.value] += 1

    for node in ast.walk(tree):
        name, inside = operation(node)
        if name is not None and (isinstance(node, ast.Call) or name in ("T", "mT")):
            note(ALIKE.get(name, name), inside)
        elif isinstance(node, ast.BinOp | ast.UnaryOp) and not any(isinstance(n, ast.Name) for n in ast.walk(node)):
            continue  # a number, as -1 and 2 / 3 are
        elif isinstance(node, ast.BinOp):
            kind, by = type(node.op).__name__, getattr(node.right, "value", None)
            note((kind, by) if kind == "Pow" and by in (0.5, 2) else kind, node.left, node.right)
        elif isinstance(node, ast.UnaryOp):
            note(type(node.op).__name__, node.operand)
        elif isinstance(node, ast.Compare):
            note(type(node.ops[0]).__name__, node.left, node.comparators[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) > 1:
            note(node.value)
    return found
