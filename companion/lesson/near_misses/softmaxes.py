"""Near misses of a softmax: what stands in its place, and a mask in the wrong place."""

import ast
from collections.abc import Iterator

from companion.lesson.near_misses.call_parts import Proposal, axis_of, inner
from companion.lesson.near_misses.trees import made
from companion.lesson.near_misses.words import Words


def softmaxes(node: ast.Call, said: str, words: Words) -> Iterator[Proposal]:
    at = axis_of(node)
    dim = at[1] if at else -1

    def written(text: str):
        return lambda now: made(text.replace("D", str(dim)), X=inner(now))

    yield (
        written("(X / X.sum(D, keepdim=True))"),
        f"{said} is divided by its sum, without the exponential: that is no softmax",
        "normalised for softmax",
        1,
    )
    yield (
        written("X.exp()"),
        f"the exponentials of {said} are not divided by their sum: there is no softmax",
        "exp for softmax",
        0.95,
    )
    yield (
        written("(X.exp() / X.exp().sum())"),
        f"the softmax of {said} runs over all entries at once; it runs along one axis",
        "axis of softmax",
        1,
    )
    yield (
        written("(X == X.amax(D, keepdim=True)).to(X.dtype)"),
        f"the largest of {said} takes all; a softmax shares out",
        "hard maximum",
        1,
    )
    yield (
        written("(X / X.norm(dim=D, keepdim=True))"),
        f"{said} is brought to length 1; a softmax is due",
        "length for softmax",
        1.2,
    )
    yield (
        written("(-X).softmax(D)"),
        f"the sign within the softmax is turned: the smallest of {said} gets most",
        "sign in softmax",
        1,
    )
    yield (
        written("(X / X.abs().sum(D, keepdim=True))"),
        f"{said} is divided by the sum of its sizes: that is no softmax",
        "normalised for softmax",
        1.1,
    )
    yield (
        written("(X.relu() / X.relu().sum(D, keepdim=True))"),
        f"a ReLU of {said} is divided by its sum; a softmax is due",
        "relu for softmax",
        1.2,
    )
    for text, words_ in (("X.shape[-1]", "their number"), ("X.shape[-2]", "the number of rows")):
        yield written(f"(X / {text})"), f"{said} is divided by {words_}; a softmax is due", "mean for softmax", 1.2
    hidden = "X.masked_fill(torch.ones_like(X).{} > 0, -torch.inf).softmax(D)"
    yield (
        written(hidden.format("triu(1)")),
        f"a mask hides what comes later in {said}; there is none here",
        "masked",
        1.2,
    )
    yield (
        written(hidden.format("tril(-1)")),
        f"a mask hides what comes before in {said}; there is none here",
        "masked",
        1.3,
    )
    yield (
        written(hidden.format("tril(0).triu(0)")),
        f"the diagonal of {said} is masked: each one should see itself, too",
        "masked",
        1.1,
    )
    yield written("(0 * X).softmax(D)"), f"all weights are equal: {said} is not used", "uniform", 1.2
    within = inner(node)
    if isinstance(within, ast.Call) and isinstance(within.func, ast.Attribute) and within.func.attr == "masked_fill":

        def late(text: str):
            return lambda now: made(text.replace("D", str(dim)), S=inner(now).func.value, M=inner(now).args[0])

        yield (
            late("S.softmax(D).masked_fill(M, 0)"),
            "the mask comes after the softmax, so that the weights no longer sum to 1; mask before",
            "late mask",
            0.9,
        )
        yield (
            late("(S.exp().masked_fill(M, 0) / S.exp().sum(D, keepdim=True))"),
            "the mask comes after the softmax, so that the weights no longer sum to 1; mask before",
            "late mask",
            0.9,
        )
        yield (
            late("S.masked_fill(M | torch.eye(S.shape[-1], dtype=torch.bool), -torch.inf).softmax(D).nan_to_num()"),
            "each position is hidden from itself, too: the mask takes one place too many",
            "diagonal",
            1,
        )
        yield late("S.masked_fill(M, 0)"), "there is no softmax: masked scores are used as weights", "no softmax", 0.95
        yield (
            late("S.exp().masked_fill(M, 0)"),
            "the exponentials are not divided by their sum: there is no softmax",
            "exp for softmax",
            0.95,
        )
