"""Near misses of a condition: the other comparison, another limit, a sign that is lost or inverted."""

import ast
from collections.abc import Callable, Iterator

from companion.lesson.near_misses.call_parts import axis_of
from companion.lesson.near_misses.words import Words

COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def comparisons(node: ast.Compare, words: Words) -> Iterator[tuple]:
    left, right = words.noun(node.left), words.noun(node.comparators[0])
    now_is = COMPARISONS[type(node.ops[0])]

    def sides(now: ast.Compare) -> dict[str, ast.expr]:
        return {"L": now.left, "R": now.comparators[0]}

    reasons = {
        ("<", "<="): "equality counts here, and must not: < is not <=", ("<=", "<"): "equality must count: <= is not <",
        (">", ">="): "equality counts here, and must not: > is not >=", (">=", ">"): "equality must count: >= is not >",
        ("==", "!="): "the condition is inverted", ("!=", "=="): "the condition is inverted",
    }  # fmt: skip
    for other in COMPARISONS.values():
        if other != now_is:
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
            inverted = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}.get(now_is) == other or turned.get(now_is) == other
            why = reasons.get((now_is, other)) or (
                "it is the wrong way round" if inverted else f"`{other}` is the wrong comparison"
            )
            yield (
                f"L {other} R",
                f"where {left} is compared with {right}, {why}",
                "comparison",
                1 if (now_is, other) in reasons or inverted else 1.4,
                sides,
            )
    yield from _counted(node, words, now_is, sides)
    yield f"L {now_is} R + 1", f"{left} is compared with one more than {right}", "limit off by one", 1.2, sides
    yield f"L {now_is} R - 1", f"{left} is compared with one less than {right}", "limit off by one", 1.2, sides
    yield f"L.abs() {now_is} R", f"{left} is compared without its sign", "sign lost", 1.3, sides
    yield (
        "L.clamp_min(R)",
        f"{left} itself is used; only whether it is above {right} counts",
        "value for comparison",
        1.1,
        sides,
    )
    yield (
        "L * (R == R)",
        f"{left} itself is used; only its comparison with {right} counts",
        "value for comparison",
        1.1,
        sides,
    )
    yield (
        f"2 * (L {now_is} R) - 1",
        f"the comparison of {left} with {right} gives 1 and -1; it gives 1 and 0",
        "signs for bits",
        1,
        sides,
    )
    if isinstance(node.comparators[0], ast.Call) and words.operation(node.comparators[0])[0] in ("amin", "amax"):
        yield from _ties(node, left)
    yield f"L {now_is} 0", f"{left} is compared with 0, not with {right}", "limit", 1.6, sides


def _ties(node: ast.Compare, left: str) -> Iterator[tuple]:
    """Of x == x.amin(dim, keepdim=True), where several are equally small."""
    found = axis_of(node.comparators[0])
    if found is None:
        return
    first = f"(X.to(torch.int64).cumsum({found[1]}) == 1) & X"
    for text, says in (
        (first, f"of several entries of {left} that are equal only the first counts; all do"),
        (
            f"(X.sum({found[1]}, keepdim=True) == 1) & X",
            f"of several entries of {left} that are equal none counts; all do",
        ),
    ):
        yield text, says, "ties", 1, lambda now: {"X": now}


def _counted(node: ast.Compare, words: Words, now_is: str, sides: Callable) -> Iterator[tuple]:
    """Which ones a comparison is to find: those of one sign alone, one number for its multiples, large for largest."""
    name, inside = words.operation(node.left)
    if name == "abs":
        said = words.noun(inside)

        def parts(now: ast.Compare) -> dict[str, ast.expr]:
            return {"X": words.operation(now.left)[1], "R": now.comparators[0]}

        for sign, one, other in ((">", "positive", "negative"), ("<", "negative", "positive")):
            text = f"(X {sign} 0) & ({'' if sign == '>' else '-'}X {now_is} R)"
            yield text, f"only {one} ones of {said} count; {other} ones should, too", "one sign", 1, parts
    if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod) and now_is == "==":
        said, step = words.noun(node.left.left), words.noun(node.left.right)

        def multiple(now: ast.Compare) -> dict[str, ast.expr]:
            return {"X": now.left.left, "N": now.left.right, "R": now.comparators[0]}

        for text, says, cost in (
            ("X.abs() // N == R", f"the quotient of {said} by {step} is compared; the remainder is to be", 1.1),
            ("X.abs() == N", f"only {step} itself counts of {said}; its multiples do, too", 1),
            ("X == N", f"only {step} itself counts of {said}; its multiples do, too, and those below 0", 1),
            ("X.abs() >= N", f"all of {said} from {step} on count; only multiples of {step} do", 1),
            ("X.abs() > N", f"all of {said} above {step} count; only multiples of {step} do", 1),
            ("X >= N", f"all of {said} from {step} on count; only multiples of {step} do, and those below 0", 1.1),
            ("(X % N == R) & (X > 0)", f"only positive ones of {said} count; negative ones should, too", 1),
            ("(X % N == R) & (X != N) & (X != -N)", f"{step} itself does not count; it is a multiple, too", 1.3),
        ):
            yield text, says, "multiples", cost, multiple
    largest = words.defined.get(node.left.id) if isinstance(node.left, ast.Name) else node.left
    if now_is == "==" and largest is not None and words.operation(largest)[0] == "argmax":
        scores = words.operation(largest)[1]
        said = words.noun(scores)
        for text, says in (
            ("S.diagonal() > 0", f"each one's own of {said} is compared with 0; it is to be the largest"),
            (
                "S.diagonal() > S.mean(1)",
                f"each one's own of {said} is compared with the mean; it is to be the largest",
            ),
            (
                "S.softmax(1).diagonal() > 0.5",
                f"a share above one half is asked of {said}; being the largest is enough",
            ),
            (
                "S.diagonal() == S.max()",
                f"each one's own of {said} is compared with the largest of all, not of its row",
            ),
        ):
            yield text, says, "large for largest", 1, lambda now: {"S": scores}


def signs(node: ast.UnaryOp, words: Words) -> Iterator[tuple]:
    inside = words.noun(node.operand)
    if isinstance(node.op, ast.USub):
        yield "Y", f"the minus before {inside} is missing", "minus left out", 1, lambda now: {"Y": now.operand}
        if isinstance(node.operand, ast.Name):
            yield (
                "-Y - 1",
                f"one too far: {inside} is counted from the wrong place",
                "off by one",
                1,
                lambda now: {"Y": now.operand},
            )
            yield (
                "-Y + 1",
                f"one too near: {inside} is counted from the wrong place",
                "off by one",
                1,
                lambda now: {"Y": now.operand},
            )
            yield (
                "Y - 1",
                f"{inside} is counted from the start; it counts back from the end",
                "from the start",
                1,
                lambda now: {"Y": now.operand},
            )
    if isinstance(node.op, ast.Invert | ast.Not):
        yield "Y", f"the condition on {inside} is inverted", "inverted", 1, lambda now: {"Y": now.operand}
