"""The exercises of lesson 02 that tell algorithms apart: Newton's share, conjugate gradient, the rate test, the
measured filter, and gradient descent as the circuits of linear attention.
"""

from itertools import pairwise

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise

__all__ = ["conjugate_gradient", "descent_circuits", "growth_r2", "measured_filter", "newton_share"]


def _draw_share(generator: Generator) -> dict:
    # at most 3 steps from a small alpha: nothing has arrived yet, so that one step more or less shows
    eigenvalues = 1 + 4 * torch.rand(draw_size(generator, 3, 6), generator=generator, dtype=torch.float64)
    return {"eigenvalues": eigenvalues, "alpha": 0.005, "steps": draw_size(generator, 2, 3)}


@exercise(draw=_draw_share, tolerance=1e-9)
def newton_share(eigenvalues: Tensor, alpha: float, steps: int) -> Tensor:
    left = 1 - alpha * eigenvalues**2
    for _ in range(steps):
        left = left**2
    return 1 - left


def _draw_system(generator: Generator) -> dict:
    d = draw_size(generator, 5, 7)
    x = draw_normal(generator, 2 * d, d)
    # fewer steps than dimensions, so that the answer is not yet S^-1 b; more than two, so that one is not "one too few"
    return {"S": x.T @ x, "b": draw_normal(generator, d), "steps": draw_size(generator, 3, 4)}


@exercise(draw=_draw_system)
def conjugate_gradient(S: Tensor, b: Tensor, steps: int) -> Tensor:
    w, residual, direction = torch.zeros_like(b), b, b
    for _ in range(steps):
        image = S @ direction
        length = (residual @ residual) / (direction @ image)
        w = w + length * direction
        new = residual - length * image
        direction = new + (new @ new) / (residual @ residual) * direction
        residual = new
    return w


def _draw_growth(generator: Generator) -> dict:
    count = draw_size(generator, 5, 8)
    layers = torch.arange(1, count + 1, dtype=torch.float64)
    return {"layers": layers, "steps": torch.exp2(0.8 * layers + 0.7 * draw_normal(generator, count))}


@exercise(draw=_draw_growth, tolerance=1e-8)
def growth_r2(layers: Tensor, steps: Tensor) -> Tensor:
    features = torch.stack([torch.ones_like(layers), layers], dim=1)
    explained = []
    for target in (steps, steps.log2()):
        fitted = features @ torch.linalg.lstsq(features, target[:, None]).solution[:, 0]
        left = (target - fitted).square().sum()
        explained.append(1 - left / (target - target.mean()).square().sum())
    return torch.stack(explained)


def _draw_filter(generator: Generator) -> dict:
    prompts, d = draw_size(generator, 30, 40), draw_size(generator, 3, 5)
    x = draw_normal(generator, prompts, 3 * d, d)
    S = x.mT @ x
    # a few bins in the middle, so that some eigenvalues lie below the first edge and above the last
    edges = torch.quantile(
        torch.linalg.eigvalsh(S).flatten(), torch.linspace(0.1, 0.9, draw_size(generator, 4, 5)).double()
    )
    solutions = draw_normal(generator, prompts, d)
    ws = 0.02 * (S @ solutions[..., None])[..., 0] + 0.2 * draw_normal(generator, prompts, d)
    return {"ws": ws, "solutions": solutions, "S": S, "edges": edges}


@exercise(draw=_draw_filter, tolerance=1e-8)
def measured_filter(ws: Tensor, solutions: Tensor, S: Tensor, edges: Tensor) -> Tensor:
    eigenvalues, V = torch.linalg.eigh(S)
    reached = (V.mT @ ws[..., None])[..., 0]
    whole = (V.mT @ solutions[..., None])[..., 0]
    shares = []
    for low, high in pairwise(edges):
        inside = (eigenvalues >= low) & (eigenvalues < high)
        shares.append((reached * whole)[inside].sum() / (whole * whole)[inside].sum())
    return torch.stack(shares)


def _draw_circuits(generator: Generator) -> dict:
    return {
        "d": draw_size(generator, 2, 6),
        "lr": 0.013 * draw_size(generator, 1, 5),
        "gamma": 0.0017 * draw_size(generator, 1, 5),
        "length": draw_size(generator, 11, 23),
    }


@exercise(draw=_draw_circuits)
def descent_circuits(d: int, lr: float, gamma: float, length: int) -> Tensor:
    query_key, value_output = torch.zeros(d + 1, d + 1), torch.zeros(d + 1, d + 1)
    query_key[:d, :d] = torch.eye(d)
    value_output[:d, :d] = -gamma * length * torch.eye(d)
    value_output[d, d] = -lr * length
    return torch.stack([query_key, value_output])
