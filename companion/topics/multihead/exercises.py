"""The exercises of lesson 09, PAC learning of attention."""

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
)


# -- shared_pattern


def _draw_row(generator: Generator) -> dict:
    k, d = draw_size(generator, 2, 4), draw_size(generator, 5, 7)
    return {"Z": draw_normal(generator, k, d), "y": draw_normal(generator, d)}


def _shared_pattern(Z: Tensor, y: Tensor) -> Tensor:
    first = torch.linalg.lstsq((Z[:-1] - Z[-1]).mT, (y - Z[-1])[:, None]).solution[:, 0]
    return torch.cat([first, 1 - first.sum(0, keepdim=True)])


shared_pattern = Exercise(
    name="shared_pattern",
    answer=_shared_pattern,
    draw=_draw_row,
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


constraint_rows = Exercise(
    name="constraint_rows",
    answer=_constraint_rows,
    draw=_draw_certified,
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


minimum_norm_point = Exercise(
    name="minimum_norm_point",
    answer=_minimum_norm_point,
    draw=_draw_body,
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


sum_by_margin = Exercise(
    name="sum_by_margin",
    answer=_sum_by_margin,
    draw=_draw_sharp,
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
    tolerance=1e-7,
)
