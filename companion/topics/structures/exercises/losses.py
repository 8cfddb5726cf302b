"""The exercise of lesson 08 on training: the loss of many queries for one set.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["place_loss"]


# -- place_loss


def _draw_sets(generator: Generator) -> dict:
    sets, n, queries = draw_size(generator, 3, 4), draw_size(generator, 5, 7), draw_size(generator, 8, 9)
    return {
        "order": (2 * draw_normal(generator, sets, n, n)).softmax(-1),  # soft, as its gradient is
        "logits": 2 * draw_normal(generator, sets, queries, n),
        "nearest": torch.randint(n, (sets, queries), generator=generator),
    }


def _where(order: Tensor, nearest: Tensor) -> Tensor:
    """(sets, queries, places): how much of the query's nearest point lies in each place."""
    return torch.einsum("spi,sqi->sqp", order, F.one_hot(nearest, order.shape[2]).to(order.dtype))


def _cross_entropy(target: Tensor, logits: Tensor) -> Tensor:
    """(sets, queries): of each query."""
    return -(target * (logits - logits.logsumexp(-1, keepdim=True))).sum(-1)


def _place_loss(order: Tensor, logits: Tensor, nearest: Tensor) -> Tensor:
    target = order.mT.gather(1, nearest[:, :, None].expand(-1, -1, order.shape[1]))
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


place_loss = Exercise(
    name="place_loss",
    answer=_place_loss,
    draw=_draw_sets,
    mistakes={
        "the order is read the wrong way round: row k says who lies in place k, column i where point i lies": (
            lambda order, logits, nearest: _cross_entropy(_where(order.mT, nearest), logits).mean()
        ),
        "the nearest point's number is taken for its place; the order says in which place it lies": (
            lambda order, logits, nearest: _cross_entropy(
                F.one_hot(nearest, order.shape[1]).to(order.dtype), logits
            ).mean()
        ),
        "the place is read off with argmax, which has no gradient for the scores; weigh all places by the order": (
            lambda order, logits, nearest: _cross_entropy(
                F.one_hot(_where(order, nearest).argmax(-1), order.shape[1]).to(order.dtype), logits
            ).mean()
        ),
        "every place is given the one point that argmax names, and that has no gradient for the scores; weigh all "
        "places by the order": (
            lambda order, logits, nearest: F.cross_entropy(
                logits.flatten(0, 1), order.argmax(-1).argsort(-1).gather(1, nearest).flatten()
            )
        ),
        "the minus is missing: a loss falls as the right place gets likelier": (
            lambda order, logits, nearest: -_cross_entropy(_where(order, nearest), logits).mean()
        ),
        "the logarithm is missing: a cross-entropy weighs log-probabilities": (
            lambda order, logits, nearest: -(_where(order, nearest) * logits.softmax(-1)).sum(-1).mean()
        ),
        "the logits themselves are weighed; take their log_softmax": (
            lambda order, logits, nearest: -(_where(order, nearest) * logits).sum(-1).mean()
        ),
        "the softmax runs over the queries; the places of one query share its probability": (
            lambda order, logits, nearest: -(_where(order, nearest) * logits.log_softmax(1)).sum(-1).mean()
        ),
        "the sum over all queries is returned; their mean is asked for": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits).sum()
        ),
        "the mean runs over the places too; sum over them": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits).mean() / order.shape[1]
        ),
        "only the first query of each set counts; each of them does": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits)[:, 0].mean()
        ),
        "the sum over a set's queries is returned, and its mean over the sets; every query counts once": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits).sum(1).mean()
        ),
    },
)
