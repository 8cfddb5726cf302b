"""Near misses that belong to one function: what people write for a root, a count, an outer product, an inverse."""

import ast
import math
from collections.abc import Callable, Iterator

from companion.lesson.near_misses.call_parts import Proposal, from_module, inner, with_inner
from companion.lesson.near_misses.softmaxes import softmaxes
from companion.lesson.near_misses.trees import made
from companion.lesson.near_misses.words import OPERATIONS, Words


def _arguments(*orders: tuple[str, str, str, float]):
    """Edits that give the arguments X (the tensor), A, B another form."""

    def special(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
        after = node.args[1:] if from_module(node) else node.args
        for text, says, kind, cost in orders:
            if ("A" in text.split(".")[0] or "(A" in text or "A)" in text or " A" in text) and not after:
                continue

            def change(now: ast.Call, text=text) -> ast.AST:
                rest = now.args[1:] if from_module(now) else now.args
                names = dict(zip("ABC", rest, strict=False))
                return made(text, X=inner(now), **names)

            second = words.noun(after[0]) if after else ""
            third = words.noun(after[1]) if len(after) > 1 else ""
            yield change, says.format(said, second, third), kind, cost

    return special


def _fills(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    def filled(text: str, **more: float):
        return lambda now: made(text, X=inner(now), M=now.args[-2], F=now.args[-1])

    for fill in (0.0, -1.0, -10.0, 1.0):
        yield (
            filled(f"X.masked_fill(M, {fill})"),
            f"what is masked is set to {fill:g}, which still counts; it must count for nothing",
            "fill",
            1,
        )
    yield (
        filled("X.masked_fill(~M, F)"),
        "the mask is upside down: it hides what should be seen, and shows what should be hidden",
        "mask inverted",
        1,
    )
    yield (
        filled("X.masked_fill(M, math.inf)".replace("math.inf", "float('inf')")),
        "what is masked gets +infinity, not -infinity",
        "fill",
        1.2,
    )
    yield (
        filled("X.masked_fill(M.mT, F)"),
        "the mask is transposed: it hides the past, not the future",
        "mask transposed",
        1,
    )
    yield (
        filled("X * ~M"),
        "what is masked is multiplied by 0, which still counts; it must count for nothing",
        "fill",
        1.05,
    )


def _triangles(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    now_at = ast.literal_eval(node.args[0]) if node.args and isinstance(node.args[0], ast.Constant | ast.UnaryOp) else 0
    name = node.func.attr
    more, less = (
        "one place too many is hidden: the diagonal is masked, too",
        "one place too few is hidden: each position sees the next one, too",
    )
    for other, says in (
        (now_at - 1, more),
        (now_at + 1, less),
        (now_at - 2, more.replace("one place", "two places").replace(": the diagonal is masked, too", "")),
        (now_at + 2, less.replace("one place", "two places").split(":")[0]),
    ):
        yield (
            lambda now, other=other: made(f"X.{name}({other})", X=inner(now)),
            f"the mask is off: {says}",
            "diagonal",
            1,
        )
    turned = "tril" if name == "triu" else "triu"
    for other in (-now_at, 0, now_at):
        yield (
            lambda now, other=other: made(f"X.{turned}({other})", X=inner(now)),
            "the mask is upside down: it hides what comes before, not what comes after",
            "mask inverted",
            1,
        )


def _orders(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    """Of torch.stack and torch.cat."""
    if not isinstance(node.args[0], ast.List):
        return
    parts = node.args[0].elts
    named = [words.noun(part) for part in parts]

    def with_parts(order: list[int]):
        def change(now: ast.Call) -> ast.Call:
            old = now.args[0].elts
            return ast.Call(now.func, [ast.List([old[i] for i in order], ast.Load()), *now.args[1:]], now.keywords)

        return change

    for i in range(len(parts)):
        rest = [j for j in range(len(parts)) if j != i]
        yield with_parts(rest), f"{named[i]} is missing from what is put together", "part left out", 1.2
        for j in range(i):
            for first, second, says in (
                (j, i, f"the order is wrong: {named[j]} and {named[i]} are exchanged"),
                (j, j, f"{named[j]} stands where {named[i]} belongs"),
                (i, i, f"{named[i]} stands where {named[j]} belongs"),
            ):
                order = list(range(len(parts)))
                order[i], order[j] = first, second
                yield with_parts(order), says, "order", 0.95 if first != second else 1.2
    if len(parts) == 3:
        for order in ([1, 2, 0], [2, 0, 1]):
            yield with_parts(order), "the parts are put together in the wrong order", "order", 0.95


def _sorts(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    yield (
        lambda now: ast.Call(now.func, now.args, [*now.keywords, ast.keyword("descending", made("True"))]),
        f"{said} is sorted from the largest to the smallest",
        "order",
        1,
    )
    yield (
        lambda now: made("(X, X)[0].sort(D)", X=inner(now), D=now.args[0]) if now.args else now,
        f"{said} is sorted",
        "sorted",
        3,
    )


def _ranges(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    named = node.func.id if isinstance(node.func, ast.Name) else "torch.arange"
    loop = named == "range"
    what = "the loop" if loop else "the count"

    def bounds(*texts: str):
        def change(now: ast.Call) -> ast.Call:
            last = now.args[-1]
            return ast.Call(now.func, [made(text, N=last) for text in texts], now.keywords)

        return change

    if len(node.args) == 1:
        yield bounds("N - 1"), f"{what} stops one too early: the last is left out", "range", 1
        yield bounds("N + 1"), f"{what} runs one too far", "range", 1
        yield bounds("1", "N"), f"{what} starts at 1: the first is left out", "range", 1
        yield bounds("1", "N + 1"), f"{what} starts at 1; it starts at 0", "range", 1
        yield bounds("N - 1", "-1", "-1"), f"{what} runs backwards", "range", 1.2
        if loop:
            yield bounds("1"), "the loop is left after the first round: only the first counts", "only the first", 1
            yield bounds("N - 1", "N"), "only the last round of the loop counts", "only the last", 1
            yield bounds("2 * N"), "the loop runs twice as often", "range", 1.5
        else:
            yield lambda now: made("X.flip(0)", X=now), "the count runs backwards", "range", 1
            for first, last in (("0", "N"), ("0", "1"), ("1", "N")):

                def spread(now: ast.Call, first=first, last=last) -> ast.AST:
                    return made(f"torch.linspace({first}, {last}, N, dtype=torch.float64)", N=now.args[-1])

                yield (
                    spread,
                    f"the points are spread evenly from {first} to {last.replace('N', words.noun(node.args[-1]))}, both included",
                    "linspace",
                    1.1,
                )


def _mean_sizes(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    """Of the mean of absolute values."""
    if words.operation(inner(node))[0] == "abs":
        of = words.noun(inner(inner(node)))
        yield (
            lambda now: ast.Call(
                ast.Attribute(with_inner(now, made("X.square()", X=inner(inner(now)))), "sqrt", ast.Load()), [], []
            ),
            f"the root of the mean square of {of} is taken; the mean of its absolute values is due",
            "root mean square",
            1,
        )


def _cuts(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    """Of int(x)."""
    yield lambda now: made("round(X)", X=now.args[0]), f"{said} is rounded; int() cuts", "rounding", 0.95
    yield lambda now: made("-int(-X // 1)", X=now.args[0]), f"{said} is rounded up; int() cuts", "rounding", 0.95


def _flags(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    """Of std and var."""
    flags = [keyword for keyword in node.keywords if keyword.arg in ("unbiased", "correction")]
    name = node.func.attr

    def with_flag(number: int):
        return lambda now: ast.Call(
            now.func,
            now.args,
            [*(each for each in now.keywords if each not in flags), ast.keyword("correction", made(str(number)))],
        )

    if flags:
        yield (
            with_flag(1),
            f"the {OPERATIONS[name]} of {said} divides by the number minus 1; here it divides by the number itself",
            "correction",
            1,
        )
    else:
        yield (
            with_flag(0),
            f"the {OPERATIONS[name]} of {said} divides by the number of values; for a sample, divide by one less",
            "correction",
            1,
        )
    if name == "var":
        yield (
            lambda now: made("X.square().mean()", X=inner(now)),
            f"the mean of {said} is not taken away before its variance: this is the mean square",
            "mean not taken",
            1,
        )
        yield (
            lambda now: made("X.norm() ** 2", X=inner(now)),
            f"the variance of {said} is a sum of squares; it is a mean",
            "mean not taken",
            1.2,
        )
    if name == "std":
        yield (
            lambda now: made("(X.max() - X.min())", X=inner(now)),
            f"the range of {said} is used; its standard deviation is due",
            "range for std",
            1.3,
        )
        yield (
            lambda now: made("(X - X.mean()).abs().mean()", X=inner(now)),
            f"the mean absolute deviation of {said} is used; its standard deviation is due",
            "mad for std",
            1.3,
        )


def _groups(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    """Of unflatten, view and reshape: the first two sizes exchanged, and their axes with them."""
    within = from_module(node) or node.func.attr == "unflatten"
    sizes = node.args[-1].elts if within and isinstance(node.args[-1], ast.Tuple) else node.args
    if len(sizes) < 2 or isinstance(node.args[0], ast.Starred):
        return

    def change(now: ast.Call) -> ast.expr:
        if sizes is node.args:
            first, second, *rest = now.args
            return made("X.transpose(0, 1)", X=ast.Call(now.func, [second, first, *rest], now.keywords))
        *before, tuple_ = now.args
        first, second, *rest = tuple_.elts
        turned = ast.Call(now.func, [*before, ast.Tuple([second, first, *rest], ast.Load())], now.keywords)
        dim = ast.unparse(before[0]) if node.func.attr == "unflatten" else "0"
        return made(f"X.transpose({dim}, {dim} + 1)", X=turned)

    yield change, f"what lies side by side in {said} comes into different groups; it belongs together", "grouping", 1


SPECIAL: dict[str, Callable[..., Iterator[Proposal]]] = {
    "masked_fill": _fills, "softmax": softmaxes, "triu": _triangles, "tril": _triangles, "stack": _orders, "cat": _orders, "sort": _sorts,
    "range": _ranges, "arange": _ranges, "int": _cuts, "std": _flags, "var": _flags,
    "outer": _arguments(
        ("torch.outer(A, X)", "the outer product is the wrong way round: {0} and {1} are exchanged", "outer turned", 0.9),
        ("torch.outer(X, X)", "the outer product is of {0} with itself", "outer of one", 1),
        ("torch.outer(A, A)", "the outer product is of {1} with itself", "outer of one", 1),
        ("(X @ A)", "a number stands where an outer product belongs: {0} and {1} meet in an inner product", "inner for outer", 1),
        ("(X * A)", "{0} and {1} are multiplied entry by entry; an outer product is due", "* for outer", 1),
        ("X[:, None]", "the outer product has one factor alone: the second, {1}, is missing", "factor left out", 1),
        ("A[None]", "the outer product has one factor alone: the first, {0}, is missing", "factor left out", 1),
        ("(X[:, None] + A)", "{0} and {1} are added, each with each; they are to be multiplied", "+ for *", 1.1),
    ),
    "solve": _arguments(
        ("(X @ A)", "the product with {0}; its inverse is due", "product for inverse", 0.95),
        ("A", "the inverse of {0} is missing", "inverse left out", 1),
        ("torch.linalg.solve(X.mT, A)", "{0} is transposed before it is inverted", "transpose", 1.3),
        ("torch.linalg.solve(X, torch.linalg.solve(X, A))", "the inverse of {0} comes in twice", "inverse doubled", 1.2),
        ("(A / X.diagonal().view(-1, *[1] * (A.ndim - 1)))", "only the diagonal of {0} is inverted; it has other entries, too", "diagonal alone", 1),
        ("(A / X.diagonal().sqrt().view(-1, *[1] * (A.ndim - 1)))", "only the root of the diagonal of {0} is inverted; the whole matrix must be", "diagonal alone", 1),
        ("torch.linalg.solve(X + torch.eye(len(X)).to(X), A)", "the identity is added to {0} before it is inverted", "ridge", 1.2),
        ("(1 / X) @ A", "the entries of {0} are inverted one by one; the matrix must be", "entrywise inverse", 1.2),
        ("(A / X)", "divides by {0} entry by entry; its inverse is a matrix", "entrywise inverse", 1.2),
    ),
    "lstsq": _arguments(
        ("torch.linalg.lstsq(A, X)", "the fit is the wrong way round: {0} and {1} are exchanged", "fit turned", 1),
        ("torch.linalg.lstsq(X + torch.eye(*X.shape).to(X), A)", "the identity is added to {0}", "ridge", 2),
    ),
    "where": lambda node, said, words: iter([
        (lambda now: ast.Call(now.func, [now.args[0], now.args[2], now.args[1]], []), f"the two cases are exchanged: {words.noun(node.args[1])} and {words.noun(node.args[2])}", "cases exchanged", 0.95),
        (lambda now: made("X.clamp(min=0)", X=now.args[1]), f"{words.noun(node.args[2])} is never used: what falls below 0 is set to 0 instead", "case left out", 1.2),
        (lambda now: now.args[1], f"{words.noun(node.args[2])} is never used: the case distinction is missing", "case left out", 1),
        (lambda now: now.args[2], f"{words.noun(node.args[1])} is never used: the case distinction is missing", "case left out", 1),
    ]),
    "maximum": _arguments(*((text, "{0} is overwritten by {1}, even where it is larger", "maximum left out", 0.95) for text in ("A", "(A + torch.zeros_like(X))"))),
    "minimum": _arguments(*((text, "{0} is overwritten by {1}, even where it is smaller", "minimum left out", 0.95) for text in ("A", "(A + torch.zeros_like(X))"))),
    "mean": _mean_sizes,
    "gather": _arguments(
        ("B.gather(A, X)", "the order is reversed: {2} is read at {0}; {0} is to be read at {2}", "order", 0.95),
        ("X.argsort(A).gather(A, B)", "the inverse of {0} is applied, which leads back", "inverse", 1),
        ("X.gather(A, X)", "{0} is read at itself; it is to be read at {2}", "read at itself", 1.1),
        ("B", "{0} is not applied: {2} stays as it is", "not applied", 1.1),
    ),
    "unflatten": _groups, "view": _groups, "reshape": _groups,
    "normalize": _arguments(
        ("(X / X.norm())", "one length for all: each row of {0} has its own", "one length", 1),
        ("(X / X.square().sum(-1, keepdim=True))", "divides {0} by the squared length; divide by the length", "squared length", 1),
        ("(X / X.sum(-1, keepdim=True))", "divides {0} by its sum; divide by its length", "sum for length", 1.1),
        ("(X / X.abs().sum(-1, keepdim=True))", "divides {0} by the sum of its sizes; divide by its length", "sum for length", 1.1),
    ),
    "relu": _arguments(("(X * (X < 0))", "the negative part of {0} is kept, not the positive", "relu turned", 1), ("(X > 0).to(X)", "only whether {0} is positive is kept, not how large it is", "gate for relu", 1.2)),
    "entr": _arguments(
        ("torch.special.entr(X) / math.log(2)".replace("math.log(2)", str(math.log(2))), "the entropy is in bits; take the natural logarithm", "bits", 1),
        ("(X * X.log())", "the sign of the entropy is wrong", "sign", 1), ("-X.clamp_min(1e-12).log()", "p log p has lost its p: the logarithm is not weighted", "weight left out", 1),
        ("X.square()", "squares of {0} stand where its entropy belongs", "squares for entropy", 1.3), ("(1 - X.square())", "this is the Gini impurity's 1 minus p squared; the entropy is due", "gini", 1.3),
    ),
    "nan_to_num": _arguments(("X.nan_to_num(nan=1.0)", "what is undefined becomes 1; it is 0", "fill", 1.2)),
    "clamp_min": _arguments(("torch.where(X > 1, X, 0)", "what lies below 1 becomes 0, of {0}; what lies below {1} should", "threshold", 1.2), ("X.abs()", "negative values of {0} become positive; they should become {1}", "abs for clamp", 0.95), ("X.relu() + 1", "1 is added to the positive part", "1 added", 1.8)),
    "one_hot": lambda node, said, words: iter([]),
    "scatter": lambda node, said, words: iter([
        (lambda now: ast.Call(ast.Attribute(now.func.value, "scatter_add", ast.Load()), now.args, now.keywords), f"the new values are added to {said}; they replace the old ones", "added", 1),
    ]),
    "sum": _arguments(("X.diagonal()", "the diagonal of {0} is taken; its sum is due", "diagonal for sum", 1), ("(X.diagonal() / X.trace())", "the diagonal of {0} is taken, divided by its own sum; the sum of {0} is due", "diagonal for sum", 1), ("X.square().sum(A)", "{0} is squared before it is summed", "squared", 1.7), ("X.abs().sum(A)", "{0} loses its signs before it is summed", "sign lost", 1.7)),
    "argmax": _arguments(("X.abs().argmax(A)", "the largest of {0} by size is taken, whatever its sign", "sign lost", 1.2)),
}  # fmt: skip
