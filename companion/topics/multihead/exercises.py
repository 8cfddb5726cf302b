"""The exercises of lesson 09, PAC learning of attention.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = [
    "constraint_rows",
    "explained",
    "first_step",
    "minimum_norm_point",
    "off_hull",
    "shared_pattern",
    "sum_by_margin",
]


# -- first_step


def _draw_examples(generator: Generator) -> dict:
    n, k, d = draw_size(generator, 6, 9), draw_size(generator, 2, 4), draw_size(generator, 4, 5)
    return {"X": draw_normal(generator, n, k, d), "Y": draw_normal(generator, n, k, d)}


def _first_step(X: Tensor, Y: Tensor) -> Tensor:
    n, k, _ = X.shape
    return X.sum(1).mT @ Y.sum(1) / (n * k)


first_step = Exercise(
    name="first_step",
    answer=_first_step,
    draw=_draw_examples,
    mistakes={
        "the mean over sequences is missing: divide by n, too": lambda X, Y: (
            torch.einsum("nkd,nle->de", X, Y) / X.shape[1]
        ),
        "the factor 1/k is missing": lambda X, Y: torch.einsum("nkd,nle->de", X, Y) / X.shape[0],
        "pairs each token with its own answer only; J pairs every token with every answer": (
            lambda X, Y: torch.einsum("nkd,nke->de", X, Y) / (X.shape[0] * X.shape[1])
        ),
        "divides by k twice": lambda X, Y: torch.einsum("nkd,nle->de", X, Y) / (X.shape[0] * X.shape[1] ** 2),
        "the answer is transposed: rows belong to X, columns to Y": (
            lambda X, Y: torch.einsum("nkd,nle->ed", X, Y) / (X.shape[0] * X.shape[1])
        ),
        "mixes sequences: the sums over tokens are taken over the whole set before they are multiplied": (
            lambda X, Y: torch.outer(X.sum((0, 1)), Y.sum((0, 1))) / (X.shape[0] * X.shape[1])
        ),
    },
)


# -- shared_pattern


def _draw_row(generator: Generator) -> dict:
    k, d = draw_size(generator, 2, 4), draw_size(generator, 5, 7)
    return {"Z": draw_normal(generator, k, d), "y": draw_normal(generator, d)}


def _pattern(Z: Tensor, y: Tensor) -> Tensor:
    first = torch.linalg.lstsq((Z[:-1] - Z[-1]).mT, (y - Z[-1])[:, None]).solution[:, 0]
    return torch.cat([first, 1 - first.sum(0, keepdim=True)])


def _free(Z: Tensor, y: Tensor) -> Tensor:
    return torch.linalg.lstsq(Z.mT, y[:, None]).solution[:, 0]


def _shared_pattern(Z: Tensor, y: Tensor) -> Tensor:
    first = torch.linalg.lstsq((Z[:-1] - Z[-1]).mT, (y - Z[-1])[:, None]).solution[:, 0]
    return torch.cat([first, 1 - first.sum(0, keepdim=True)])


shared_pattern = Exercise(
    name="shared_pattern",
    answer=_shared_pattern,
    draw=_draw_row,
    mistakes={
        "the weights do not sum to 1: that is a condition of the fit": _free,
        "fitted freely and divided by the sum afterwards; that is not the best fit among those of sum 1": (
            lambda Z, y: _free(Z, y) / _free(Z, y).sum()
        ),
        "fitted freely and shifted to the sum afterwards; that is not the best fit among those of sum 1": (
            lambda Z, y: _free(Z, y) + (1 - _free(Z, y).sum()) / len(Z)
        ),
        "a softmax of scores is not the fit: nothing was solved": lambda Z, y: (Z @ y).softmax(0),
        "the last weight stands first": lambda Z, y: _pattern(Z, y).roll(1),
        "y is not moved: what is left to explain after the last token's share is y - Z[-1]": lambda Z, y: torch.cat(
            [a := torch.linalg.lstsq((Z[:-1] - Z[-1]).mT, y[:, None]).solution[:, 0], 1 - a.sum(0, keepdim=True)]
        ),
    },
)


# -- constraint_rows


def _draw_certified(generator: Generator) -> dict:
    k, d = draw_size(generator, 2, 4), draw_size(generator, 3, 5)
    p = draw_normal(generator, k).softmax(0)
    return {"x": draw_normal(generator, d), "tokens": draw_normal(generator, k, d), "p": p}


def _constraint_rows(x: Tensor, tokens: Tensor, p: Tensor) -> Tensor:
    differences = tokens[:-1] - tokens[-1]
    rows = (x[:, None] * differences[:, None, :]).flatten(1)
    logs = (p[:-1] / p[-1]).log()
    return torch.cat([rows, logs[:, None]], dim=1)


def _rows(x: Tensor, differences: Tensor, logs: Tensor) -> Tensor:
    return torch.cat([torch.einsum("i,aj->aij", x, differences).flatten(1), logs[:, None]], 1)


constraint_rows = Exercise(
    name="constraint_rows",
    answer=_constraint_rows,
    draw=_draw_certified,
    mistakes={
        "transposed: x stands left of Theta, the difference of tokens right of it": lambda x, tokens, p: torch.cat(
            [
                torch.einsum("i,aj->aji", x, tokens[:-1] - tokens[-1]).flatten(1),
                (p[:-1] / p[-1]).log()[:, None],
            ],
            1,
        ),
        "the sign of the differences is flipped: log(p_a / p_k) goes with x_a - x_k": lambda x, tokens, p: _rows(
            x, tokens[-1] - tokens[:-1], (p[:-1] / p[-1]).log()
        ),
        "the last token is missing in the rows: a softmax fixes differences of scores only": lambda x, tokens, p: _rows(
            x, tokens[:-1], (p[:-1] / p[-1]).log()
        ),
        "the last token is missing on the right: it is log(p_a / p_k)": lambda x, tokens, p: _rows(
            x, tokens[:-1] - tokens[-1], p[:-1].log()
        ),
        "p_a / p_k itself; the scores are its logarithm": lambda x, tokens, p: _rows(
            x, tokens[:-1] - tokens[-1], p[:-1] / p[-1]
        ),
        "the tokens are compared with the first one; the patterns with the last": lambda x, tokens, p: _rows(
            x, tokens[1:] - tokens[0], (p[:-1] / p[-1]).log()
        ),
    },
)


# -- off_hull


def _draw_hull(generator: Generator) -> dict:
    free, d2 = draw_size(generator, 2, 3), draw_size(generator, 5, 8)
    directions = torch.linalg.qr(draw_normal(generator, d2, free)).Q.mT.contiguous()
    return {"theta": draw_normal(generator, d2), "base": draw_normal(generator, d2), "directions": directions}


def _off_hull(theta: Tensor, base: Tensor, directions: Tensor) -> Tensor:
    off = theta - base
    return off - directions.mT @ (directions @ off)


off_hull = Exercise(
    name="off_hull",
    answer=_off_hull,
    draw=_draw_hull,
    mistakes={
        "the base point is not subtracted: the hull does not go through 0": lambda theta, base, directions: (
            theta - directions.mT @ (directions @ theta)
        ),
        "what lies in the hull is returned; what sticks out of it is asked for": (
            lambda theta, base, directions: directions.mT @ (directions @ (theta - base))
        ),
        "only the first direction is removed": (
            lambda theta, base, directions: (theta - base) - directions[0] * (directions[0] @ (theta - base))
        ),
        "the nearest point of the hull is returned; what sticks out is theta minus that": (
            lambda theta, base, directions: base + directions.mT @ (directions @ (theta - base))
        ),
        "removes the directions from theta and from base apart, and adds the base back": (
            lambda theta, base, directions: theta - directions.mT @ (directions @ (theta - base))
        ),
        "the distance to the base point alone: the directions are not used": lambda theta, base, directions: (
            theta - base
        ),
    },
)


# -- minimum_norm_point


def _draw_body(generator: Generator) -> dict:
    rows, d2 = draw_size(generator, 4, 6), draw_size(generator, 7, 9)
    A = draw_normal(generator, rows, d2)
    A = A * (0.5 + torch.rand(rows, 1, generator=generator, dtype=torch.float64))
    return {"A": A, "b": 2 * draw_normal(generator, rows), "eps": 0.3, "sweeps": draw_size(generator, 2, 4)}


def _minimum_norm_point(A: Tensor, b: Tensor, eps: float, sweeps: int) -> Tensor:
    theta, dual = torch.zeros_like(A[0]), torch.zeros_like(b)
    for _ in range(sweeps):
        for j in range(len(b)):
            size = A[j] @ A[j]
            goal = dual[j] + (b[j] - A[j] @ theta) / size
            new = goal.sign() * (goal.abs() - eps / size).clamp_min(0)
            theta = theta + (new - dual[j]) * A[j]
            dual[j] = new
    return theta


def _ascent(A, b, eps, sweeps, *, shrink=lambda eps, size: eps / size, length=lambda a: a @ a, keep=True, step=1.0):
    """The ascent with one thing done differently."""
    theta, dual = torch.zeros_like(A[0]), torch.zeros_like(b)
    for _ in range(sweeps):
        for j in range(len(b)):
            size, before = length(A[j]), dual[j] if keep else torch.zeros_like(dual[j])
            goal = before + step * (b[j] - A[j] @ theta) / size
            new = goal.sign() * (goal.abs() - shrink(eps, size)).clamp_min(0)
            theta = theta + (new - before) * A[j]
            dual = torch.cat([dual[:j], new[None], dual[j + 1 :]])
    return theta


def _all_at_once(A: Tensor, b: Tensor, eps: float, sweeps: int) -> Tensor:
    theta, dual, size = torch.zeros_like(A[0]), torch.zeros_like(b), A.square().sum(1)
    for _ in range(sweeps):
        goal = dual + (b - A @ theta) / size
        new = goal.sign() * (goal.abs() - eps / size).clamp_min(0)
        theta, dual = theta + (new - dual) @ A, new
    return theta


minimum_norm_point = Exercise(
    name="minimum_norm_point",
    answer=_minimum_norm_point,
    draw=_draw_body,
    mistakes={
        "eps is not used: these are planes, and the body has no inside": lambda A, b, eps, sweeps: _ascent(
            A, b, eps, sweeps, shrink=lambda eps, size: 0 * size
        ),
        "eps must be divided by |A_j|^2, as what is missing is": lambda A, b, eps, sweeps: _ascent(
            A, b, eps, sweeps, shrink=lambda eps, size: eps + 0 * size
        ),
        "divides by |A_j|; a step of length t along A_j moves A_j theta by t |A_j|^2": lambda A, b, eps, sweeps: (
            _ascent(A, b, eps, sweeps, length=lambda a: a.norm())
        ),
        "what a row has pushed before is forgotten: theta comes into the body, but not to its point of least norm": (
            lambda A, b, eps, sweeps: _ascent(A, b, eps, sweeps, keep=False)
        ),
        "all rows are moved at once, each with the theta from before the sweep; go row by row": _all_at_once,
        "only one sweep is made": lambda A, b, eps, sweeps: _minimum_norm_point(A, b, eps, 1),
        "half of what is missing is made up in a step": lambda A, b, eps, sweeps: _ascent(A, b, eps, sweeps, step=0.5),
    },
)


# -- sum_by_margin


def _draw_sharp(generator: Generator) -> dict:
    n, k, d = draw_size(generator, 12, 16), draw_size(generator, 2, 3), draw_size(generator, 4, 5)
    X, Y = draw_normal(generator, n, k, d), draw_normal(generator, n, k, d)
    return {"X": X, "Y": Y, "theta": draw_normal(generator, d, d) / 2, "many": draw_size(generator, 8, 11)}


def _sum_by_margin(X: Tensor, Y: Tensor, theta: Tensor, many: int) -> Tensor:
    k = X.shape[1]
    weight, where = (X @ theta @ X.mT).softmax(-1).max(-1)
    sharpest = weight.flatten().topk(many).indices
    n, row = sharpest // k, sharpest % k
    looked_at = X[n, where[n, row]]
    return torch.linalg.lstsq(looked_at, Y[n, row]).solution


def _margin(X, Y, theta, many, *, axis=-1, largest=True, own=False, soft=False, scores=None):
    """The fit with one thing done differently."""
    k = X.shape[1]
    pattern = (X @ theta @ X.mT).softmax(axis) if scores is None else scores(X, theta)
    weight, where = pattern.max(-1)
    sharpest = weight.flatten().topk(many, largest=largest).indices
    n, row = sharpest // k, sharpest % k
    seen = X[n, row] if own else (pattern @ X)[n, row] if soft else X[n, where[n, row]]
    return torch.linalg.lstsq(seen, Y[n, row]).solution


sum_by_margin = Exercise(
    name="sum_by_margin",
    answer=_sum_by_margin,
    draw=_draw_sharp,
    mistakes={
        "the evenest rows are taken; the sharpest are wanted": lambda X, Y, theta, many: _margin(
            X, Y, theta, many, largest=False
        ),
        "each answer is fitted by the row's own token; the row moves the token that it looks at": (
            lambda X, Y, theta, many: _margin(X, Y, theta, many, own=True)
        ),
        "the softmax runs over the rows; it runs over the tokens that a row looks at": (
            lambda X, Y, theta, many: _margin(X, Y, theta, many, axis=-2)
        ),
        "Theta is transposed: the row's token stands left of it": lambda X, Y, theta, many: _margin(
            X, Y, theta.mT, many
        ),
        "the largest score is taken for the largest weight: without a softmax long tokens always win": (
            lambda X, Y, theta, many: _margin(X, Y, theta, many, scores=lambda X, theta: X @ theta @ X.mT)
        ),
        "the rows' mixed tokens are used; at a large margin the row is taken to move one token": (
            lambda X, Y, theta, many: _margin(X, Y, theta, many, soft=True)
        ),
        "all rows are used; only the sharpest can be taken for hard": lambda X, Y, theta, many: _margin(
            X, Y, theta, X.shape[0] * X.shape[1]
        ),
    },
)


# -- explained


def _draw_gram(generator: Generator) -> dict:
    size, d = draw_size(generator, 4, 6), draw_size(generator, 2, 3)
    phi = draw_normal(generator, 3 * size, size)
    return {"G": phi.mT @ phi, "C": draw_normal(generator, size, d)}


def _explained(G: Tensor, C: Tensor) -> Tensor:
    return (C * torch.linalg.solve(G, C)).sum()


explained = Exercise(
    name="explained",
    answer=_explained,
    draw=_draw_gram,
    mistakes={
        "the product with G; G must be inverted": lambda G, C: (C * (G @ C)).sum(),
        "|G^-1 C|^2: one of the two factors is C itself": lambda G, C: torch.linalg.solve(G, C).square().sum(),
        "G is missing: features are neither of length 1 nor orthogonal": lambda G, C: C.square().sum(),
        "only the diagonal of G is used; features of different heads overlap": lambda G, C: (
            C.square() / G.diagonal()[:, None]
        ).sum(),
        "a mean; it is a sum over all entries": lambda G, C: (C * torch.linalg.solve(G, C)).mean(),
        "twice too much: of 2 <W, C> - <W, G W> the second part has been forgotten": lambda G, C: (
            2 * (C * torch.linalg.solve(G, C)).sum()
        ),
    },
    tolerance=1e-7,
)
