"""The exercises of lesson 02 on reading a model: a layer's readout, and the similarity of two predictors' errors."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise

__all__ = ["readout_predictions", "similarity_of_errors"]


def _draw_errors(generator: Generator) -> dict:
    # batch < n - 1, so that one does not broadcast as the other
    batch, n = draw_size(generator, 3, 4), draw_size(generator, 6, 9)
    ys = 2 + draw_normal(generator, batch, n)
    first = ys + draw_normal(generator, batch, n) * (1 + 3 * torch.arange(batch)[:, None])
    return {"first": first, "second": first + draw_normal(generator, batch, n), "ys": ys}


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
