"""Near misses of a slope, and of any sum of products over a sum of squares: the squares of the wrong one, the ends alone,
a ratio of sums, a mean of ratios, a correlation.
"""

import ast
from collections.abc import Iterator

from companion.lesson.near_misses.call_parts import inner
from companion.lesson.near_misses.words import Words


def ratios(node: ast.BinOp, words: Words) -> Iterator[tuple]:
    """Of (A * B).sum() / (A * A).sum(), however the square is written."""
    found = _parts(node, words)
    if found is None:
        return
    below, other = (words.noun(each) for each in found)

    def sides(now: ast.BinOp) -> dict[str, ast.expr]:
        return dict(zip("AB", _parts(now, words) or found, strict=True))

    for text, says, cost in (
        (
            "(A * B).sum() / (B * B).sum()",
            f"the two are exchanged: the squares of {other} stand below the line, those of {below} belong there",
            1,
        ),
        (
            "(B[-1] - B[0]) / (A[-1] - A[0])",
            f"only the first and the last entry of {below} and of {other} are used; all of them count",
            1,
        ),
        (
            "(A * B).sum() / (A.norm() * B.norm())",
            f"divides by the lengths of both, {below} and {other}, as a correlation does; the square of the one is due",
            1,
        ),
        ("B.sum() / A.sum()", f"the sum of {other} is divided by that of {below}: nothing is weighted", 1.2),
        ("(B / A).mean()", f"the mean of the single ratios of {other} to {below} is taken", 1.2),
        (
            "(B.diff() / A.diff()).mean()",
            f"the mean of the slopes from each entry of {below} to the next is taken; one line through all is due",
            1.1,
        ),
    ):
        yield text, says, "ratio", cost, sides


def _parts(node: ast.BinOp, words: Words) -> tuple[ast.expr, ast.expr] | None:
    """The factor whose squares stand below the line, and the other one."""
    if not (
        isinstance(node.op, ast.Div) and all(words.operation(side)[0] == "sum" for side in (node.left, node.right))
    ):
        return None
    product, square = inner(node.left), inner(node.right)
    if isinstance(square, ast.Call) and words.operation(square)[0] == "square":
        squared = ast.unparse(inner(square))
    elif isinstance(square, ast.BinOp) and isinstance(square.op, ast.Mult | ast.Pow):
        squared = ast.unparse(square.left)
    else:
        return None
    if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)):
        return None
    both = [product.left, product.right]
    if squared not in [ast.unparse(each) for each in both]:
        return None
    return (both[0], both[1]) if ast.unparse(both[0]) == squared else (both[1], both[0])
