"""The exercises of lesson 02: prompts and algorithms, what a layer says, and what tells algorithms apart."""

from itertools import pairwise

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise


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
    # at least 3: of 2 steps, one too few is just one; at most 7: not even 2^steps steps must arrive
    lr, steps = float(0.05 / torch.linalg.eigvalsh(S)[-1]), draw_size(generator, 3, 7)
    if draw_size(generator, 0, 2):  # two times in three: an odd number of steps that overshoot, so that signs count
        lr, steps = 28 * lr, 2 * draw_size(generator, 1, 2) + 1
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


def _draw_errors(generator: Generator) -> dict:
    # batch < n - 1, so that one does not broadcast as the other
    batch, n = draw_size(generator, 3, 4), draw_size(generator, 6, 9)
    ys = 2 + draw_normal(generator, batch, n)
    first = ys + draw_normal(generator, batch, n) * (1 + 3 * torch.arange(batch)[:, None])
    second = first + draw_normal(generator, batch, n)
    second[0] = 2 * ys[0] - second[0]  # of one prompt the cosine is negative
    return {"first": first, "second": second, "ys": ys}


@exercise(draw=_draw_errors)
def similarity_of_errors(first: Tensor, second: Tensor, ys: Tensor) -> Tensor:
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    cosines = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))
    return cosines.mean()


def _draw_readout(generator: Generator) -> dict:
    points, width = draw_size(generator, 30, 40), draw_size(generator, 3, 6)
    hidden, fresh = 1 + draw_normal(generator, points, width), 1 + draw_normal(generator, points // 2, width)
    return {
        "hidden": hidden,
        "targets": 5 + hidden @ draw_normal(generator, width) + draw_normal(generator, points),
        "fresh": fresh,
    }


@exercise(draw=_draw_readout)
def readout_predictions(hidden: Tensor, targets: Tensor, fresh: Tensor) -> Tensor:
    features = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    weights = torch.linalg.lstsq(features, targets[:, None]).solution[:, 0]
    return torch.cat([fresh, torch.ones_like(fresh[:, :1])], dim=1) @ weights


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
    eigenvalues = torch.linalg.eigvalsh(S).flatten().sort().values
    # a few bins in the middle, so that some eigenvalues lie below the first edge and above the last
    below = (torch.linspace(0.1, 0.9, draw_size(generator, 4, 5)).double() * len(eigenvalues)).long()
    edges = (4 * eigenvalues[below]).round().unique() / 4
    # An eigenvalue equal to an edge has it on either side by the rounding of whoever asks, but for quarters on a
    # diagonal, which eigh returns as they are: every third prompt has some
    whole = eigenvalues[torch.randint(len(eigenvalues), (len(S[::3]), d), generator=generator)].round()
    on_edge = torch.rand(whole.shape, generator=generator) < 0.6
    whole = torch.where(on_edge, edges[torch.randint(len(edges), whole.shape, generator=generator)], whole)
    S[::3] = torch.diag_embed(whole)
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
