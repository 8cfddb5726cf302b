"""Exercises of lesson 04 on what a table of numbers knows: its waves, and where they come from."""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_size

__all__ = ["ppmi", "wave_rows"]


# -- wave_rows


def _draw_wave(generator: Generator) -> dict:
    # no whole number: a wave that fits into n hides mistakes
    period = float(5 + 6 * torch.rand((), generator=generator))
    return {"n": draw_size(generator, 12, 16), "period": period, "k": draw_size(generator, 3, 4)}


def _waves(n: int, turns: float, first: int = 0) -> Tensor:
    """Cosine and sine of 2 pi * turns * x for x = first, first + 1, .."""
    angles = 2 * math.pi * turns * torch.arange(first, first + n, dtype=torch.float64)
    return torch.stack([angles.cos(), angles.sin()])


def _wave_rows(n: int, period: float, k: int) -> Tensor:
    angles = 2 * math.pi * k * torch.arange(n, dtype=torch.float64) / period
    return torch.stack([angles.cos(), angles.sin()])


wave_rows = Exercise(
    name="wave_rows",
    states_dtype=True,
    answer=_wave_rows,
    draw=_draw_wave,
    mistakes={
        "the sine comes first; row 0 is the cosine": lambda n, period, k: _waves(n, k / period).flip(0),
        "divides by n; the wave turns k times in a period, however many numbers there are": lambda n, period, k: _waves(
            n, k / n
        ),
        "the factor 2 pi is missing: a full turn is 2 pi": lambda n, period, k: _waves(n, k / period / (2 * math.pi)),
        "the factor is pi, half a turn; a full turn is 2 pi": lambda n, period, k: _waves(n, k / period / 2),
        "starts at x = 1; the first number is 0": lambda n, period, k: _waves(n, k / period, first=1),
        "angles are in degrees; torch.cos takes radians": lambda n, period, k: _waves(n, 180 / math.pi * k / period),
        "k is missing: this is the wave that turns once in a period": lambda n, period, k: _waves(n, 1 / period),
        "divides by k: the period is made longer, not shorter": lambda n, period, k: _waves(n, 1 / (k * period)),
        "each row is brought to length 1; leave it as it is": lambda n, period, k: F.normalize(
            _waves(n, k / period), dim=1
        ),
        "the sine has the wrong sign": lambda n, period, k: _waves(n, -k / period),
    },
)


# -- ppmi


def _draw_counts(generator: Generator) -> dict:
    """Large counts on the diagonal but for one word, some zeros beside it, and one word that never occurs."""
    n = draw_size(generator, 5, 7)
    counts = torch.randint(0, 10, (n, n), generator=generator).triu(1)
    counts[1, 2], counts[1, 3], counts[2, 3], counts[3, 4] = (
        9,
        1,
        0,
        9,
    )  # rather more, rather less than by chance; never
    counts = counts + counts.mT + torch.randint(20, 40, (n,), generator=generator).diag()
    counts[0] = counts[:, 0] = 0
    counts[4, 4] = 5
    order = torch.randperm(n, generator=generator)
    return {"counts": counts[order][:, order].double()}


def _information(counts: Tensor, alone: Tensor | None = None) -> Tensor:
    """log(p_ij / (p_i p_j)), and 0 where the count is 0."""
    joint = counts / counts.sum()
    alone = joint.sum(1) if alone is None else alone
    return torch.where(counts > 0, joint / torch.outer(alone, alone), 1).log()


def _ratio(counts: Tensor) -> Tensor:
    """p_ij / (p_i p_j), and 0 where the count is 0."""
    return torch.where(counts > 0, _information(counts).exp(), 0)


def _ppmi(counts: Tensor) -> Tensor:
    p = counts / counts.sum()
    alone = p.sum(1)
    return (p / torch.outer(alone, alone)).log().nan_to_num(nan=0.0).clamp_min(0)


ppmi = Exercise(
    name="ppmi",
    answer=_ppmi,
    draw=_draw_counts,
    mistakes={
        "every entry is 0: no ratio is above 1. Divide p_ij by p_i and by p_j, and all counts "
        "by the total": lambda counts: 0 * counts,
        "negative values are kept; the positive part is asked for, max(0, ..)": _information,
        "negative values become positive: take max(0, ..), not the absolute value": lambda counts: _information(
            counts
        ).abs(),
        "information in bits; take the natural logarithm": lambda counts: (
            _information(counts).clamp_min(0) / math.log(2)
        ),
        "the logarithm is missing": _ratio,
        "the logarithm is missing: a ratio below 1, not below 0, is what becomes 0": (
            lambda counts: torch.where(_ratio(counts) > 1, _ratio(counts), 0)
        ),
        "1 is added within the logarithm: log(1 + ratio) has no zeros below chance": lambda counts: _ratio(
            counts
        ).log1p(),
        "p_ij is a count, p_i and p_j are shares: divide it by the total, too": (
            lambda counts: torch.where(counts > 0, _information(counts) + counts.sum().log(), 0).clamp_min(0)
        ),
        "p_i is a mean over the row; it is the row's sum": (
            lambda counts: _information(counts, counts.mean(1) / counts.sum()).clamp_min(0)
        ),
        "p_i is taken from the diagonal; it is the row's sum": (
            lambda counts: _information(counts, counts.diagonal() / counts.sum()).clamp_min(0)
        ),
        "p_i comes from the diagonal's share of the diagonal; it is the row's sum over the total": (
            lambda counts: _information(counts, counts.diagonal() / counts.trace()).clamp_min(0)
        ),
    },
)
