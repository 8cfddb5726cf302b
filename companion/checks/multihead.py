"""The exercises of lesson 09, PAC learning of attention.

Each wrong function under ``mistakes`` is something that people really write; `companion.checks.exercise` uses it to name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.baselines import multihead
from companion.checks.exercise import Exercise, draw_normal, draw_size

__all__ = ["explained", "first_step", "log_ratio_row", "off_hull", "shared_pattern"]


# -- first_step


def _draw_examples(generator: Generator) -> dict:
    n, k, d = draw_size(generator, 6, 9), draw_size(generator, 2, 4), draw_size(generator, 4, 5)
    return {"X": draw_normal(generator, n, k, d), "Y": draw_normal(generator, n, k, d)}


first_step = Exercise(
    name="first_step",
    answer=multihead.first_step,
    draw=_draw_examples,
    mistakes={
        "the mean over sequences is missing: divide by n, too": lambda X, Y: torch.einsum("nkd,nle->de", X, Y) / X.shape[1],
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


shared_pattern = Exercise(
    name="shared_pattern",
    answer=_pattern,
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


# -- log_ratio_row


def _draw_tokens(generator: Generator) -> dict:
    d = draw_size(generator, 3, 5)
    return {name: draw_normal(generator, d) for name in ("x", "xa", "xb")}


log_ratio_row = Exercise(
    name="log_ratio_row",
    answer=lambda x, xa, xb: torch.outer(x, xa - xb),
    draw=_draw_tokens,
    mistakes={
        "transposed: x_r stands left of Theta, x_a - x_b right of it": lambda x, xa, xb: torch.outer(xa - xb, x),
        "the sign is flipped: log(p_a / p_b) goes with x_a - x_b": lambda x, xa, xb: torch.outer(x, xb - xa),
        "x_b is missing: a softmax fixes differences of scores only": lambda x, xa, xb: torch.outer(x, xa),
        "the sum of x_a and x_b; it is their difference": lambda x, xa, xb: torch.outer(x, xa + xb),
        "half the difference": lambda x, xa, xb: torch.outer(x, xa - xb) / 2,
    },
)


# -- off_hull


def _draw_hull(generator: Generator) -> dict:
    free, d2 = draw_size(generator, 2, 3), draw_size(generator, 5, 8)
    directions = torch.linalg.qr(draw_normal(generator, d2, free)).Q.mT.contiguous()
    return {"theta": draw_normal(generator, d2), "base": draw_normal(generator, d2), "directions": directions}


off_hull = Exercise(
    name="off_hull",
    answer=lambda theta, base, directions: (theta - base) - directions.mT @ (directions @ (theta - base)),
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
        "the distance to the base point alone: the directions are not used": lambda theta, base, directions: theta - base,
    },
)


# -- explained


def _draw_gram(generator: Generator) -> dict:
    size, d = draw_size(generator, 4, 6), draw_size(generator, 2, 3)
    phi = draw_normal(generator, 3 * size, size)
    return {"G": phi.mT @ phi, "C": draw_normal(generator, size, d)}


explained = Exercise(
    name="explained",
    answer=lambda G, C: (C * torch.linalg.solve(G, C)).sum(),
    draw=_draw_gram,
    mistakes={
        "the product with G; G must be inverted": lambda G, C: (C * (G @ C)).sum(),
        "|G^-1 C|^2: one of the two factors is C itself": lambda G, C: torch.linalg.solve(G, C).square().sum(),
        "G is missing: features are neither of length 1 nor orthogonal": lambda G, C: C.square().sum(),
        "only the diagonal of G is used; features of different heads overlap": lambda G, C: (C.square() / G.diagonal()[:, None]).sum(),
        "a mean; it is a sum over all entries": lambda G, C: (C * torch.linalg.solve(G, C)).mean(),
        "twice too much: of 2 <W, C> - <W, G W> the second part has been forgotten": lambda G, C: 2 * (C * torch.linalg.solve(G, C)).sum(),
    },
    tolerance=1e-7,
)
