"""How much a memory holds: accuracy, the number of facts at which it gives out, and the power of the width that this grows with."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor


def accuracy(logits: Float[Tensor, "*runs n m"], answers: Int[Tensor, "n"]) -> float:
    """The share of tokens whose answer has the largest logit, over all runs."""
    return (logits.argmax(-1) == answers).float().mean().item()


def capacity(measure: Callable[[int], float], *, level: float = 0.9, start: int = 2, most: int = 1 << 20, ratio: float = 1.05) -> int:
    """The largest N, to within a factor ``ratio``, up to which ``measure(N)`` (an accuracy that falls with N) is at least ``level``.

    N doubles from ``start`` until the accuracy is too low, and the last doubling is bisected. Nothing above ``most`` is tried.
    Raises ValueError for a level outside (0, 1), a start below 1 or above ``most``, a ratio that is not above 1, and where ``measure``
    is too low at the start already.
    """
    if not 0 < level < 1:
        raise ValueError(f"level = {level!r}: must be above 0 and below 1")
    if not 1 <= start <= most:
        raise ValueError(f"start = {start!r}: must be at least 1 and at most {most}")
    if not ratio > 1:
        raise ValueError(f"ratio = {ratio!r}: must be above 1")
    if (first := measure(start)) < level:
        raise ValueError(f"start = {start!r}: the accuracy {first:.3g} is below level = {level!r} there already")
    low, high = start, 2 * start
    while high <= most and measure(high) >= level:
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1 and high / low > ratio:
        middle = min(max(round((low * high) ** 0.5), low + 1), high - 1)
        low, high = (middle, high) if measure(middle) >= level else (low, middle)
    return low


class PowerLaw(NamedTuple):
    """y ~ c x^slope, with the 95 % interval of the slope."""

    slope: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.slope:.2f} [{self.low:.2f}, {self.high:.2f}]"


def power_law(x: Sequence[float], ys: Sequence[Sequence[float]], *, resamples: int = 1000, seed: int = 0) -> PowerLaw:
    """The slope of log y against log x by least squares, and its bootstrap interval: ``ys[i]`` are the repeated measurements at x[i].

    The interval says what other random draws would give; it knows nothing of a curve that is not straight. Raises ValueError for fewer
    than two x, and for values that are not positive.
    """
    if len(x) < 2 or len(x) != len(ys):
        raise ValueError(f"x has {len(x)} and ys {len(ys)} entries: must be as many, and at least 2")
    logs = [np.log(np.asarray(repeats, dtype=float)) for repeats in ys if min(repeats) > 0]
    if min(x) <= 0 or len(logs) < len(ys):
        raise ValueError("x and ys: a power law needs values above 0")
    X = np.log(np.asarray(x, dtype=float))
    weights = (X - X.mean()) / np.square(X - X.mean()).sum()  # slope = weights . mean log y
    random = np.random.default_rng(seed)
    slopes = sum(w * random.choice(log, (resamples, len(log))).mean(1) for w, log in zip(weights, logs, strict=True))
    low, high = np.quantile(slopes, [0.025, 0.975])
    return PowerLaw(float(weights @ [log.mean() for log in logs]), float(low), float(high))


def weighted_error(logits: Float[Tensor, "*runs n m"], answers: Int[Tensor, "n"], p: Float[Tensor, "n"]) -> Float[Tensor, "*runs"]:
    """The error under token frequencies ``p``: the mass of the tokens whose answer has not the largest logit."""
    return ((logits.argmax(-1) != answers) * p.to(logits)).sum(-1)
