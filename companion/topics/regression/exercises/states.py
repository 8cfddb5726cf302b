"""Exercises of lesson 03 on states that are matrices: recursive least squares, and a memory of keys and values."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise

__all__ = ["delta_write", "recall", "rls_states", "rls_update"]


def _draw_inverse(generator: Generator) -> dict:
    d = draw_size(generator, 2, 6)
    x = draw_normal(generator, 2 * d, d)
    return {"P": torch.linalg.inv(x.T @ x / d + 0.2 * torch.eye(d, dtype=x.dtype)), "x": draw_normal(generator, d)}


@exercise(draw=_draw_inverse)
def rls_update(P: Tensor, x: Tensor) -> Tensor:
    return P - torch.outer(P @ x, P @ x) / (1 + x @ (P @ x))


def _draw_prompt(generator: Generator) -> dict:
    n, d = draw_size(generator, 3, 6), draw_size(generator, 2, 4)
    return {
        "X": draw_normal(generator, n, d),
        "y": 2 * draw_normal(generator, n),
        "ridge": float(0.2 + torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_prompt)
def rls_states(X: Tensor, y: Tensor, ridge: float) -> Tensor:
    w = torch.zeros_like(X[0])
    P = torch.ones_like(w).diag() / ridge
    states = []
    for x, label in zip(X, y, strict=True):
        Px = P @ x
        P = P - torch.outer(Px, Px) / (1 + x @ Px)
        w = w + P @ x * (label - w @ x)
        states.append(torch.cat([w, P.flatten()]))
    return torch.stack(states)


def _draw_memory(generator: Generator) -> dict:
    h = draw_size(generator, 2, 6)
    return {
        "S": draw_normal(generator, h, h),
        "k": F.normalize(draw_normal(generator, h), dim=0),
        "v": draw_normal(generator, h),
        "strength": float(0.2 + 0.6 * torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_memory)
def delta_write(S: Tensor, k: Tensor, v: Tensor, strength: float) -> Tensor:
    return S + strength * torch.outer(v - S @ k, k)


def _draw_pairs(generator: Generator) -> dict:
    m, h = draw_size(generator, 3, 6), draw_size(generator, 3, 5)
    return {
        "keys": F.normalize(draw_normal(generator, m, h), dim=1),
        "values": draw_normal(generator, m, h),
        "erase": float(0.3 + 0.6 * torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_pairs)
def recall(keys: Tensor, values: Tensor, erase: float) -> Tensor:
    S = keys.new_zeros(values.shape[1], keys.shape[1])
    for k, v in zip(keys, values, strict=True):
        S = S + torch.outer(v - erase * (S @ k), k)
    off = keys @ S.mT - values
    return off.square().sum(1) / values.square().sum(1)
