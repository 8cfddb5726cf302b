"""Near misses of a call: another axis, another reduction, a step left out or done twice."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from companion.lesson.near_misses.call_parts import Proposal, axis_of, from_module, inner, with_inner
from companion.lesson.near_misses.special import SPECIAL
from companion.lesson.near_misses.trees import made
from companion.lesson.near_misses.words import OPERATIONS, ORDINALS, Words

ALONG = {"softmax", "log_softmax", "sum", "mean", "amin", "amax", "argmin", "argmax", "any", "all", "norm", "cumsum", "cummin", "cummax",
         "cumprod", "sort", "argsort", "flip", "std", "var", "normalize", "logsumexp", "prod", "unsqueeze", "stack", "cat", "gather", "scatter", "roll", "diff", "min", "max", "median"}  # fmt: skip
KEPT_ALONG = {"softmax", "log_softmax", "cumsum", "cummin", "cummax", "cumprod", "sort", "argsort", "flip", "normalize", "stack", "cat", "gather", "scatter", "roll", "unsqueeze"}  # fmt: skip
INSTEAD = {
    "sum": ["mean", "amax", "prod", "norm", "std"], "mean": ["sum", "amax", "amin", "median", "std"], "amin": ["amax", "mean", "sum"], "amax": ["amin", "mean", "sum"],
    "min": ["max"], "max": ["min"], "argmax": ["argmin"], "argmin": ["argmax"], "any": ["all", "sum"], "all": ["any"], "norm": ["sum", "mean"],
    "cummin": ["cummax"], "cummax": ["cummin"], "cumsum": ["cumprod"], "std": ["var"], "var": ["std"], "triu": ["tril"], "tril": ["triu"],
    "cos": ["sin", "tan"], "sin": ["cos", "tan"], "sigmoid": ["tanh", "relu"], "tanh": ["sigmoid", "relu"], "relu": ["abs", "sigmoid", "tanh", "exp", "square"],
    "square": ["abs", "exp"], "abs": ["square", "neg"], "sqrt": ["square", "log", "abs"], "log": ["log2", "log10", "log1p", "exp"], "exp": ["square", "expm1"],
    "maximum": ["minimum"], "minimum": ["maximum"], "softmax": ["sigmoid", "exp", "relu", "log_softmax"], "clamp_min": ["clamp_max"], "clamp_max": ["clamp_min"],
    "sort": ["msort"], "zeros_like": ["ones_like"], "ones_like": ["zeros_like"], "normalize": [],
}  # fmt: skip
ONE_BY_ONE = {"softmax", "exp", "log", "sqrt", "square", "abs", "relu", "tanh", "sigmoid", "cos", "sin", "nan_to_num", "clamp", "clamp_min", "clamp_max",
              "normalize", "masked_fill", "triu", "tril", "cumsum", "cummin", "cummax", "flip", "roll", "neg", "to", "double", "entr", "sort", "int", "maximum", "minimum", "log_softmax", "scatter"}  # fmt: skip
RUNNING = {"cummin", "cummax"}
TWICE = {"sum", "mean", "amin", "amax", "any", "all"}
UNLIKELY = {"prod", "median", "relu", "exp"}
SAID = {
    "log2": "the logarithm has base 2", "log10": "the logarithm has base 10", "log1p": "1 is added within the logarithm",
    "neg": "the sign is turned where the absolute value is due",
}  # fmt: skip


def call_edits(node: ast.Call | ast.Attribute, value: Any, words: Words) -> Iterator[Proposal]:
    """What stands where a call belongs, in words; the lowest cost is the likeliest."""
    if isinstance(node, ast.Attribute):
        yield from _attributes(node, words)
        return
    name, inside = words.operation(node)
    if name is None or inside is None:
        return
    if isinstance(node.func, ast.Name) and name in ("max", "min", "sum"):
        yield from _of_python(node, name, words)
        return
    said = words.noun(inside)
    word = OPERATIONS.get(name, name)
    if isinstance(node.func, ast.Name) and name not in ("len", "int", "range", "round", "float"):
        yield inner, f"{name} of {said} is missing", f"{name} left out", 1
    if name in ONE_BY_ONE:
        missing = "what is NaN or infinite stays so" if name == "nan_to_num" else f"the {word} of {said} is missing"
        yield inner, missing, f"{name} left out", 1
        if name not in ("to", "double", "scatter"):
            yield _again, f"the {word} of {said} is taken twice", f"{name} doubled", 1.7
    for other in INSTEAD.get(name, []):
        says = SAID.get(other) or f"the {OPERATIONS.get(other, other)} of {said} is taken; its {word} is due"
        yield (
            _renamed(other),
            says,
            f"{other} for {name}",
            1 if other not in UNLIKELY and (name, other) != ("relu", "abs") else 1.4,
        )
    if name in ALONG:
        yield from _axes(node, name, inside, said, word)
        if name in TWICE and isinstance(value, Tensor) and value.ndim:
            yield from _more_axes(name, said, word, value.ndim)
    if name in ("cumsum", "cumprod"):
        yield from _running(node, node, f"the {word} of {said}", words)
    yield from SPECIAL.get(name, lambda *_: iter(()))(node, said, words)


def _of_python(node: ast.Call, name: str, words: Words) -> Iterator[Proposal]:
    """Of max(a, b) and min(a, b) on numbers."""
    if name == "sum" or len(node.args) < 2:
        return
    due, other = ("largest", "smallest") if name == "max" else ("smallest", "largest")
    turned = "min" if name == "max" else "max"
    yield (
        lambda now: ast.Call(ast.Name(turned, ast.Load()), now.args, now.keywords),
        f"the {other} of {' and '.join(words.noun(each) for each in node.args)} is taken; the {due} is due",
        f"{turned} for {name}",
        1,
    )
    for at, each in enumerate(node.args):
        alone = f"{words.noun(each)} is taken as it is; the {due} of several is due"
        yield lambda now, at=at: now.args[at], alone, f"{name} left out", 1


def _attributes(node: ast.Attribute, words: Words) -> Iterator[Proposal]:
    said = words.noun(node.value)
    if node.attr in ("mT", "T"):
        yield lambda now: now.value, f"{said} is not transposed", "transpose left out", 1
    for attr, other in (("values", "indices"), ("indices", "values")):
        if node.attr == attr:
            yield (
                lambda now, other=other: ast.Attribute(now.value, other, ast.Load()),
                f"the {other} are taken where the {attr} of {said} are due",
                other,
                1,
            )
    if node.attr == "values" and isinstance(node.value, ast.Call) and words.operation(node.value)[0] in RUNNING:
        yield from _running(node, node.value, said, words)


def _running(node: ast.expr, call: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    """What is built up step by step along an axis: not at all, at its end for all, a step late, added up."""
    found = axis_of(call)
    if found is None:
        return
    name, dim = words.operation(call)[0], found[1]
    inside = words.noun(inner(call))
    if isinstance(node, ast.Attribute):
        yield lambda now: inner(now.value), f"{said} is missing: each entry stands for itself", f"{name} left out", 1
        slot = f"X.cumsum({dim})"
        says = f"{inside} is added up from step to step; {said} is due"
        yield lambda now: made(slot, X=inner(now.value)), says, "added up", 1
    size, nothing = f"X.shape[{dim}]", "ones" if name == "cumprod" else "zeros"
    for text, says in (
        (f"X.narrow({dim}, {size} - 1, 1).expand_as(X)", f"{said} is taken at its end for all; each entry has its own"),
        (
            f"torch.cat([torch.{nothing}_like(X.narrow({dim}, 0, 1)), X.narrow({dim}, 0, {size} - 1)], {dim})",
            f"{said} is one step late: an entry counts itself, too",
        ),
        (
            f"torch.cat([X.narrow({dim}, 1, {size} - 1), X.narrow({dim}, {size} - 1, 1)], {dim})",
            f"{said} is one step early: an entry knows itself and those before it",
        ),
    ):
        yield lambda now, text=text: made(text, X=now), says, "running", 1.1

    def backwards(now: ast.expr) -> ast.expr:
        run = now.value if isinstance(now, ast.Attribute) else now
        turned = with_inner(run, made(f"X.flip({dim})", X=inner(run)))
        return made(f"X.flip({dim})", X=ast.Attribute(turned, "values", ast.Load()) if run is not now else turned)

    yield backwards, f"{said} runs from the end to the start", "running", 1.1


def _again(now: ast.Call) -> ast.Call:
    if from_module(now) or isinstance(now.func, ast.Name):
        return ast.Call(now.func, [now, *now.args[1:]], now.keywords)
    return ast.Call(ast.Attribute(now, now.func.attr, ast.Load()), now.args, now.keywords)


def _renamed(other: str) -> Callable[[ast.Call], ast.AST]:
    def change(now: ast.Call) -> ast.AST:
        text = {
            "normalised": None, "norm": "X.norm(dim=D)", "median": "X.median(D).values",
        }.get(other)  # fmt: skip
        if text and now.args and not from_module(now):
            return made(text, X=now.func.value, D=now.args[0])
        if other in ("exp", "sigmoid", "relu") or isinstance(now.func, ast.Name):
            return made(f"X.{other}()", X=inner(now))  # of a number this fails, and is no near miss
        keywords = [each for each in now.keywords if not (other in ("norm",) and each.arg == "unbiased")]
        if from_module(now):
            return ast.Call(ast.Attribute(inner(now), other, ast.Load()), now.args[1:], keywords)
        return ast.Call(ast.Attribute(now.func.value, other, ast.Load()), now.args, keywords)

    return change


def _along(at: str | int, dim: int) -> Callable[[ast.Call], ast.Call]:
    def change(now: ast.Call) -> ast.Call:
        new = made(repr(dim))
        if isinstance(at, str):
            keywords = list(now.keywords)
            keywords[int(at[1:])] = ast.keyword(keywords[int(at[1:])].arg, new)
            return ast.Call(now.func, now.args, keywords)
        return ast.Call(now.func, [*now.args[:at], new, *now.args[at + 1 :]], now.keywords)

    return change


def _axes(node: ast.Call, name: str, inside: ast.AST, said: str, word: str) -> Iterator[Proposal]:
    verb = {"stack": "stacked", "cat": "joined", "gather": "picked"}.get(name)
    found = axis_of(node)
    if found is None:
        if name in ("sum", "mean", "amin", "amax", "norm", "argmax", "std", "var", "min", "max"):
            says = f"the {word} of {said} runs over one axis; it runs over all entries"
            for dim in (0, 1):
                yield _over(dim, keepdim=False), says, "axis", 1.1
                yield _over(dim, keepdim=True), says, "axis", 1.1
        return
    at, dim = found
    for other in (0, 1, 2, -1, -2):
        if other != dim:
            where = {0: "first", 1: "second", 2: "third", -1: "last", -2: "last but one"}
            if verb:
                says = f"{said} is {verb} along the wrong axis, the {where[other]}"
            else:
                says = f"the {word} of {said} runs along the {where[other]} axis; it belongs along the {where[dim]}"
            yield _along(at, other), says, f"axis of {name}", 1 if other >= 0 else 1.05
    if name in KEPT_ALONG:
        return

    def whole(now: ast.Call) -> ast.AST:
        first = now.args[:1] if from_module(now) else []
        return ast.Call(now.func, first, [each for each in now.keywords if each.arg == "unbiased"])

    yield whole, f"the {word} of {said} runs over all entries; it runs along one axis", f"axis of {name}", 1.05

    def left_out(now: ast.Call) -> ast.AST:
        return inner(now)

    yield left_out, f"the {word} of {said} is not taken", f"{name} left out", 1.1
    if name in ("sum", "mean", "amin", "amax", "any", "all", "max", "min", "norm"):
        keeps = any(keyword.arg == "keepdim" for keyword in node.keywords)
        for text, one in (("0", "first"), ("-1", "last")):
            slot = f"X.select({dim}, {text})" + (f".unsqueeze({dim})" if keeps else "")
            yield (
                lambda now, slot=slot: made(slot, X=inner(now)),
                f"only the {one} of {said} is used, in place of the {word} of all",
                f"only the {one}",
                1.05,
            )
            rest = (
                f"X.narrow({dim}, 1, X.shape[{dim}] - 1)"
                if one == "first"
                else f"X.narrow({dim}, 0, X.shape[{dim}] - 1)"
            )
            fewer = lambda now, rest=rest: with_inner(now, made(rest, X=inner(now)))  # noqa: E731
            yield fewer, f"the {one} of {said} is left out of the {word}", f"without the {one}", 1.3
        yield (
            lambda now, dim=dim: with_inner(now, made(f"X.cumsum({dim})", X=inner(now))),
            f"running sums of {said} enter the {word}",
            "running sum",
            1.9,
        )


def _more_axes(name: str, said: str, word: str, ndim: int) -> Iterator[Proposal]:
    """A reduction that goes on over an axis that should be kept."""
    for dim in range(ndim):
        where = "all" if ndim == 1 else f"the {ORDINALS[dim]} axis of what is left, too"
        yield (
            lambda now, dim=dim: made(f"X.{name}({dim}, keepdim=True).expand_as(X)", X=now),
            f"the {word} of {said} runs over {where}; there is one for each",
            "one axis too many",
            1.25,
        )


def _over(dim: int, *, keepdim: bool) -> Callable[[ast.Call], ast.Call]:
    """A call over one axis alone."""
    options = [ast.keyword("dim", made(str(dim))), *([ast.keyword("keepdim", made("True"))] if keepdim else [])]
    return lambda now: ast.Call(now.func, now.args, [*now.keywords, *options])
