"""The exercises of lesson 02 on reading a model: the readout of a layer, and the similarity of two predictors' errors.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.core.readouts import apply_readouts, fit_readouts
from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["readout_predictions", "similarity_of_errors"]


# -- similarity_of_errors


def _draw_errors(generator: Generator) -> dict:
    # batch < n - 1, so that one does not broadcast as the other
    batch, n = draw_size(generator, 3, 4), draw_size(generator, 6, 9)
    ys = 2 + draw_normal(generator, batch, n)
    first = ys + draw_normal(generator, batch, n) * (1 + 3 * torch.arange(batch)[:, None])
    return {"first": first, "second": first + draw_normal(generator, batch, n), "ys": ys}


def _mean_cosine(a: Tensor, b: Tensor) -> Tensor:
    return F.cosine_similarity(a, b, dim=-1).mean()


def _products(first: Tensor, second: Tensor, ys: Tensor) -> Tensor:
    """Each prompt's inner product of two residuals."""
    return ((ys - first) * (ys - second))[:, 1:].sum(-1)


def _similarity_of_errors(first: Tensor, second: Tensor, ys: Tensor) -> Tensor:
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    cosines = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))
    return cosines.mean()


similarity_of_errors = Exercise(
    name="similarity_of_errors",
    answer=_similarity_of_errors,
    draw=_draw_errors,
    mistakes={
        "the empty prefix counts: leave position 0 out, where every algorithm says 0": (
            lambda first, second, ys: _mean_cosine(ys - first, ys - second)
        ),
        "the first prompt is left out, by [1:]; it is the first position of every prompt that must go: [:, 1:]": (
            lambda first, second, ys: _mean_cosine((ys - first)[1:], (ys - second)[1:])
        ),
        "the last position is left out; it is the first, the empty prefix, that must go": (
            lambda first, second, ys: _mean_cosine((ys - first)[:, :-1], (ys - second)[:, :-1])
        ),
        "this is the cosine between the predictions; take the residuals ys - prediction": (
            lambda first, second, ys: _mean_cosine(first[:, 1:], second[:, 1:])
        ),
        "one cosine over the whole batch: take one for each prompt, then their mean": lambda first, second, ys: (
            F.cosine_similarity((ys - first)[:, 1:].flatten(), (ys - second)[:, 1:].flatten(), dim=0)
        ),
        "the cosine runs over the prompts at each position; a residual vector runs over the positions of one prompt": (
            lambda first, second, ys: F.cosine_similarity((ys - first)[:, 1:], (ys - second)[:, 1:], dim=0).mean()
        ),
        "this is the correlation: a cosine does not subtract the mean": lambda first, second, ys: _mean_cosine(
            *((r - r.mean(-1, keepdim=True)) for r in ((ys - first)[:, 1:], (ys - second)[:, 1:]))
        ),
        "the inner product is not divided by the two lengths": lambda first, second, ys: _products(
            first, second, ys
        ).mean(),
        "the lengths are those of the whole batch; each prompt has its own: norm "
        "needs dim=-1": lambda first, second, ys: (
            _products(first, second, ys).mean() / ((ys - first)[:, 1:].norm() * (ys - second)[:, 1:].norm())
        ),
        "the mean comes last: divide each prompt's product by its own lengths, "
        "then average": lambda first, second, ys: (
            _products(first, second, ys).mean()
            / _products(first, first, ys).mul(_products(second, second, ys)).sqrt().mean()
        ),
        "the inner product is divided by the first length twice; divide by both lengths": lambda first, second, ys: (
            _products(first, second, ys) / _products(first, first, ys)
        ).mean(),
        "the sum over the prompts is not divided by their number": (
            lambda first, second, ys: F.cosine_similarity((ys - first)[:, 1:], (ys - second)[:, 1:], dim=-1).sum()
        ),
        "the residuals are squared before the cosine; keep their signs": (
            lambda first, second, ys: _mean_cosine((ys - first)[:, 1:].square(), (ys - second)[:, 1:].square())
        ),
        "the residuals lost their signs": lambda first, second, ys: _mean_cosine(
            (ys - first)[:, 1:].abs(), (ys - second)[:, 1:].abs()
        ),
    },
)


# -- readout_predictions


def _draw_readout(generator: Generator) -> dict:
    points, width = draw_size(generator, 30, 40), draw_size(generator, 3, 6)
    hidden, fresh = 1 + draw_normal(generator, points, width), 1 + draw_normal(generator, points // 2, width)
    return {
        "hidden": hidden,
        "targets": 5 + hidden @ draw_normal(generator, width) + draw_normal(generator, points),
        "fresh": fresh,
    }


def _readout(hidden: Tensor, targets: Tensor, fresh: Tensor) -> Tensor:
    return apply_readouts(fit_readouts(hidden[None], targets), fresh[None])[0]


def _solve(hidden: Tensor, targets: Tensor) -> Tensor:
    return torch.linalg.pinv(hidden) @ targets


def _readout_predictions(hidden: Tensor, targets: Tensor, fresh: Tensor) -> Tensor:
    features = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    weights = torch.linalg.lstsq(features, targets[:, None]).solution[:, 0]
    return torch.cat([fresh, torch.ones_like(fresh[:, :1])], dim=1) @ weights


readout_predictions = Exercise(
    name="readout_predictions",
    answer=_readout_predictions,
    draw=_draw_readout,
    mistakes={
        "there is no intercept: append a column of ones, to hidden and to fresh": (
            lambda hidden, targets, fresh: fresh @ _solve(hidden, targets)
        ),
        "the weights are right, but the intercept (or the means that were taken out) is missing from the predictions": (
            lambda hidden, targets, fresh: fresh @ fit_readouts(hidden[None], targets)[0, :-1]
        ),
        "the mean of the targets is put back, the mean of the features is not taken out of fresh": (
            lambda hidden, targets, fresh: (
                fresh @ _solve(hidden - hidden.mean(0), targets - targets.mean()) + targets.mean()
            )
        ),
        "fresh is centred by its own mean; the readout was fitted around the "
        "mean of hidden": lambda hidden, targets, fresh: (
            (fresh - fresh.mean(0)) @ _solve(hidden - hidden.mean(0), targets - targets.mean()) + targets.mean()
        ),
        "the column of ones stands last in hidden and first in fresh, so that the weights change places": (
            lambda hidden, targets, fresh: _ones(fresh).roll(1, 1) @ _solve(_ones(hidden), targets)
        ),
        "the column of ones stands first in hidden and last in fresh, so that the weights change places": (
            lambda hidden, targets, fresh: _ones(fresh).roll(-1, 1) @ _solve(_ones(hidden), targets)
        ),
        "these are H^T y, not yet divided by H^T H": lambda hidden, targets, fresh: (
            _ones(fresh) @ (_ones(hidden).mT @ targets)
        ),
        "every prediction is the mean of the targets: the features are not used": lambda hidden, targets, fresh: (
            targets.mean() + 0 * fresh[:, 0]
        ),
        "a ridge penalty pulls the weights to 0; plain least squares has none": lambda hidden, targets, fresh: (
            _ones(fresh)
            @ torch.linalg.solve(
                _ones(hidden).mT @ _ones(hidden) + torch.eye(hidden.shape[1] + 1).to(hidden), _ones(hidden).mT @ targets
            )
        ),
    },
)


def _ones(features: Tensor) -> Tensor:
    return torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
