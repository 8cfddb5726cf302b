"""The head that predicts: its loss, its gradient, and what a temperature does to it."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size


def _shares(generator: Generator, *shape: int) -> Tensor:
    """Distributions along the last axis."""
    return draw_normal(generator, *shape).softmax(-1)


# -- relative_entropy


def _draw_counts(generator: Generator) -> dict:
    m = draw_size(generator, 6, 9)
    return {
        "logits": 2 * draw_normal(generator, m),
        "counts": torch.randint(1, 20, (m,), generator=generator).double(),
    }


def _relative_entropy(logits: Tensor, counts: Tensor) -> Tensor:
    empirical = counts / counts.sum()
    loss = -(empirical * logits.log_softmax(0)).sum()
    entropy = -(empirical * empirical.log()).sum()
    return loss - entropy


def _share_of(counts: Tensor) -> Tensor:
    return counts / counts.sum()


relative_entropy = Exercise(
    name="relative_entropy",
    answer=_relative_entropy,
    draw=_draw_counts,
    mistakes={
        "this is the loss alone: the entropy of the counts is not taken away": lambda logits, counts: (
            -(_share_of(counts) * logits.log_softmax(0)).sum()
        ),
        "the entropy is added to the loss, not taken away": lambda logits, counts: (
            -(_share_of(counts) * logits.log_softmax(0)).sum() - (_share_of(counts) * _share_of(counts).log()).sum()
        ),
        "the entropy that is taken away is the model's; it must be that of the counts": lambda logits, counts: (
            (logits.softmax(0) - _share_of(counts)) * logits.log_softmax(0)
        ).sum(),
        "the order is reversed: the average is over what the model says; it must be over the counts": (
            lambda logits, counts: (logits.softmax(0) * (logits.log_softmax(0) - _share_of(counts).log())).sum()
        ),
        "summed over all tokens of the text; the mean per token is asked for": lambda logits, counts: (
            counts.sum() * _relative_entropy(logits, counts)
        ),
    },
)


# -- moment_gap


def _draw_features(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 10), draw_size(generator, 3, 5)
    return {
        "theta": draw_normal(generator, d),
        "features": draw_normal(generator, m, d),
        "counts": torch.randint(1, 20, (m,), generator=generator).double(),
    }


def _moment_gap(theta: Tensor, features: Tensor, counts: Tensor) -> Tensor:
    model = (features @ theta).softmax(0)
    empirical = counts / counts.sum()
    return features.mT @ (model - empirical)


moment_gap = Exercise(
    name="moment_gap",
    answer=_moment_gap,
    draw=_draw_features,
    mistakes={
        "the sign is turned round: the gradient of the loss is the model's moments minus the data's": (
            lambda theta, features, counts: -_moment_gap(theta, features, counts)
        ),
        "these are the data's moments alone; the model's are missing": lambda theta, features, counts: (
            features.mT @ _share_of(counts)
        ),
        "these are the model's moments alone; the data's are missing": lambda theta, features, counts: (
            features.mT @ (features @ theta).softmax(0)
        ),
        "the counts are not divided by their sum": lambda theta, features, counts: (
            features.mT @ ((features @ theta).softmax(0) - counts)
        ),
        "the logits are not made into probabilities": lambda theta, features, counts: (
            features.mT @ (features @ theta - _share_of(counts))
        ),
    },
)


# -- sampled_accuracy


def _draw_rows(generator: Generator) -> dict:
    contexts, tokens = draw_size(generator, 4, 6), draw_size(generator, 7, 9)
    return {
        "share": _shares(generator, contexts),
        "truth": _shares(generator, contexts, tokens),
        "tau": (0.4, 0.6, 1.7, 2.5)[draw_size(generator, 0, 3)],
    }


def _sampled_accuracy(share: Tensor, truth: Tensor, tau: float) -> Tensor:
    q = truth ** (1 / tau)
    q = q / q.sum(1, keepdim=True)
    return (share * (truth * q).sum(1)).sum()


def _drawn_from(share: Tensor, truth: Tensor, q: Tensor) -> Tensor:
    return (share * (truth * q).sum(1)).sum()


sampled_accuracy = Exercise(
    name="sampled_accuracy",
    answer=_sampled_accuracy,
    draw=_draw_rows,
    mistakes={
        "the power is tau; it must be 1 / tau, so that a small tau sharpens": lambda share, truth, tau: _drawn_from(
            share, truth, truth**tau / (truth**tau).sum(1, keepdim=True)
        ),
        "the rows are not normalised after the power": lambda share, truth, tau: _drawn_from(
            share, truth, truth ** (1 / tau)
        ),
        "the temperature is not used": lambda share, truth, tau: _drawn_from(share, truth, truth),
        "this is the accuracy of the likeliest token; a sample's was asked for": lambda share, truth, tau: (
            share * truth.amax(1)
        ).sum(),
        "the truth gets the temperature, too; only what is sampled has it": lambda share, truth, tau: _drawn_from(
            share,
            truth ** (1 / tau) / (truth ** (1 / tau)).sum(1, keepdim=True),
            truth ** (1 / tau) / (truth ** (1 / tau)).sum(1, keepdim=True),
        ),
        "every context counts alike; each has its own share": lambda share, truth, tau: _sampled_accuracy(
            torch.full_like(share, 1 / len(share)), truth, tau
        ),
        "normalised over the contexts; each row must have the sum 1": lambda share, truth, tau: _drawn_from(
            share, truth, truth ** (1 / tau) / (truth ** (1 / tau)).sum(0)
        ),
    },
)
