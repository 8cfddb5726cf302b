"""The exercises of lesson 02, in-context regression."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise

__all__ = [
    "gd_closed_form",
    "newton_layer",
    "newton_step",
    "triplet_tokens",
]


def _draw_prompt(generator: Generator) -> dict:
    batch, n, d = draw_size(generator, 2, 4), draw_size(generator, 4, 7), draw_size(generator, 2, 5)
    return {"xs": draw_normal(generator, batch, n, d), "ys": draw_normal(generator, batch, n)}


@exercise(draw=_draw_prompt)
def triplet_tokens(xs: Tensor, ys: Tensor) -> Tensor:
    examples = torch.cat([xs, ys[..., None]], dim=-1)
    before = torch.cat([torch.zeros_like(examples[:, :1]), examples[:, :-1]], dim=1)
    return torch.cat([before, xs], dim=-1)


def _draw_newton(generator: Generator) -> dict:
    d = draw_size(generator, 2, 6)
    x = draw_normal(generator, 2 * d, d)
    S = x.T @ x
    return {
        "M": torch.linalg.inv(S + 0.3 * d * torch.eye(d, dtype=S.dtype)) + 0.01 * draw_normal(generator, d, d),
        "S": S,
    }


@exercise(draw=_draw_newton)
def newton_step(M: Tensor, S: Tensor) -> Tensor:
    return 2 * M - M @ S @ M


def _draw_gd(generator: Generator) -> dict:
    d = draw_size(generator, 2, 6)
    x = draw_normal(generator, 3 * d, d)
    S = x.T @ x
    lr = float(0.05 / torch.linalg.eigvalsh(S)[-1])
    # at least 3: of 2 steps, one too few is just one; at most 7: not even 2^steps steps must arrive
    steps = draw_size(generator, 3, 7)
    return {"S": S, "b": S @ draw_normal(generator, d), "lr": lr, "steps": steps}


@exercise(draw=_draw_gd, tolerance=1e-8)
def gd_closed_form(S: Tensor, b: Tensor, lr: float, steps: int) -> Tensor:
    eigenvalues, V = torch.linalg.eigh(S)
    share = 1 - (1 - lr * eigenvalues) ** steps
    return V @ (share / eigenvalues * (V.mT @ b))


def _draw_layer(generator: Generator) -> dict:
    # d = 4 would hide sqrt(d) behind another factor of 2
    n, d = draw_size(generator, 6, 9), (2, 3, 5)[draw_size(generator, 0, 2)]
    x = draw_normal(generator, n, d)
    return {"a": 0.5 * x @ draw_normal(generator, d, d), "b": x}


@exercise(draw=_draw_layer)
def newton_layer(a: Tensor, b: Tensor) -> Tensor:
    scores = -0.5 * a @ b.mT
    attended = torch.relu(scores) @ a + torch.relu(-scores) @ (-a)
    return 2 * (a + attended)
