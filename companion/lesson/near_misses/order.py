"""Near misses of the order of steps: what is done before a function and belongs after it, or the other way round."""

import ast
from collections.abc import Iterator

from companion.lesson.near_misses.call_parts import Proposal, inner, with_inner
from companion.lesson.near_misses.words import OPERATIONS, Words

REDUCTIONS = {"sum", "mean", "amin", "amax", "norm", "std", "var", "prod", "any", "all", "logsumexp"}
FUNCTIONS = REDUCTIONS | {
    "softmax", "log_softmax", "exp", "log", "sqrt", "square", "abs", "relu", "tanh", "sigmoid", "cumsum", "clamp_min",
    "clamp_max", "clamp", "sign", "normalize", "round", "cos", "sin", "log2", "entr",
}  # fmt: skip
STEPS = {
    ast.Add: "the addition of {}", ast.Sub: "the subtraction of {}", ast.Mult: "the multiplication by {}", ast.Div: "the division by {}",
    ast.MatMult: "the product with {}", ast.Pow: "the power of {}",
}  # fmt: skip


def orders_of_operator(node: ast.BinOp, words: Words) -> Iterator[Proposal]:
    """f(A) + B written as f(A + B), wherever f stands in a sum or a product."""
    if type(node.op) not in STEPS:
        return
    name = _function(node.left, words)
    depth, left = 0, node.left
    while name is None and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add | ast.Sub):
        depth, left = depth + 1, left.left
        name = _function(left, words)
    if name is not None:
        step = STEPS[type(node.op)].format(words.noun(node.right))
        says = f"{step} comes before the {OPERATIONS.get(name, name)} of {words.noun(inner(left))}; it comes after"
        yield lambda now: _slipped(now, now.left, depth), _each(name, says), "order of steps", 1.1
    name = _function(node.right, words)
    if name is None:
        return
    if isinstance(node.op, ast.Add | ast.Mult | ast.MatMult):
        step = STEPS[type(node.op)].format(words.noun(node.left))
        says = (
            f"{step} comes before the {OPERATIONS.get(name, name)} of {words.noun(inner(node.right))}; it comes after"
        )
        yield (
            lambda now: with_inner(now.right, ast.BinOp(now.left, now.op, inner(now.right))),
            _each(name, says),
            "order of steps",
            1.1,
        )
    if name == _function(node.left, words):
        both = f"{words.noun(inner(node.left))} and {words.noun(inner(node.right))}"
        yield (
            lambda now: with_inner(now.left, ast.BinOp(inner(now.left), now.op, inner(now.right))),
            f"one {OPERATIONS.get(name, name)} is taken of {both} together; each has its own",
            "one for two",
            1.2,
        )


def orders_of_call(node: ast.Call, words: Words) -> Iterator[Proposal]:
    """f(A + B) written as f(A) + B or as f(A) + f(B), and f(g(A)) as g(f(A))."""
    name = _function(node, words)
    if name is None:
        return
    word, within = OPERATIONS.get(name, name), inner(node)
    if isinstance(within, ast.BinOp) and type(within.op) in STEPS:
        for keep, other in (("left", "right"), ("right", "left")):
            if keep == "left" or isinstance(within.op, ast.Add | ast.Mult | ast.MatMult):
                step = STEPS[type(within.op)].format(words.noun(getattr(within, other)))
                yield (
                    lambda now, keep=keep: _pulled_out(now, keep),
                    f"{step} comes after the {word} of {words.noun(getattr(within, keep))}; it comes before",
                    "order of steps",
                    1.1,
                )
        yield (
            lambda now: ast.BinOp(with_inner(now, inner(now).left), inner(now).op, with_inner(now, inner(now).right)),
            f"the {word} is taken of {words.noun(within.left)} and of {words.noun(within.right)}, each by itself; "
            "it is that of both together",
            "two for one",
            1.2,
        )
    nested = _function(within, words)
    if nested is not None and nested != name:
        yield (
            lambda now: with_inner(inner(now), with_inner(now, inner(inner(now)))),
            f"the {word} of {words.noun(inner(within))} is taken before the {OPERATIONS.get(nested, nested)}; it comes after",
            "order of steps",
            1,
        )


def _function(node: ast.AST, words: Words) -> str | None:
    """The name of a call that works on one tensor."""
    if not isinstance(node, ast.Call):
        return None
    name, inside = words.operation(node)
    return name if name in FUNCTIONS and inside is not None else None


def _each(name: str, says: str) -> str:
    return says.replace("; it comes after", ", once for every entry; it comes after, once") if name == "sum" else says


def _slipped(now: ast.BinOp, left: ast.expr, depth: int) -> ast.expr:
    """``now`` with its right side moved into the call that begins its left side."""
    if depth == 0:
        return with_inner(left, ast.BinOp(inner(left), now.op, now.right))
    return ast.BinOp(_slipped(now, left.left, depth - 1), left.op, left.right)


def _pulled_out(now: ast.Call, keep: str) -> ast.BinOp:
    within = inner(now)
    if keep == "left":
        return ast.BinOp(with_inner(now, within.left), within.op, within.right)
    return ast.BinOp(within.left, within.op, with_inner(now, within.right))
