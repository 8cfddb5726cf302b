"""How much a memory holds: accuracy, the number of facts at which it gives out, and the power of the width that this
grows with.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import least_squares
from scipy.special import stdtrit
from torch import Tensor

Numbers = Sequence[float] | np.ndarray


def accuracy(logits: Float[Tensor, "*runs n m"], answers: Int[Tensor, "n"]) -> float:
    """Measure the share of tokens z with argmax_k logits[z, k] = answers[z], over all runs."""
    return (logits.argmax(-1) == answers).float().mean().item()


def capacity(
    measure: Callable[[int], float], *, level: float = 0.9, start: int = 2, most: int = 1 << 20, ratio: float = 1.05
) -> int:
    """Find the largest N, to within a factor ``ratio``, up to which ``measure(N)`` (an accuracy that falls with N) is
    at least ``level``.

    N doubles from ``start`` until the accuracy is too low, and the last doubling is bisected. Nothing above ``most`` is
    tried. Raises ValueError for a level outside (0, 1), a start below 1 or above ``most``, a ratio that is not above 1,
    and where ``measure`` is too low at the start already.
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


def interval(values: Numbers) -> tuple[float, float]:
    """Compute the 95 % t-interval of the mean of independent values: mean -+ t_{.975, n-1} s / sqrt(n).

    Raises ValueError for fewer than two.
    """
    if len(values) < 2:
        raise ValueError(f"values: has {len(values)} entries; must have at least 2, for an interval")
    half = stdtrit(len(values) - 1, 0.975) * np.std(values, ddof=1) / len(values) ** 0.5
    return float(np.mean(values) - half), float(np.mean(values) + half)


def power_law(x: Numbers, ys: Sequence[Numbers] | np.ndarray) -> PowerLaw:
    """Fit the slope of log y against log x by least squares, and its interval: ``ys[i]`` are the measurements at x[i].

    Repeat r is one independent experiment, with the slope that its own ys[0][r], ys[1][r], .. have; the interval is the
    t-interval of these slopes. It says what other random draws would give, and knows nothing of a curve that is not
    straight: see `local_slopes`. Raises ValueError for fewer than two x or two repeats, for repeats that are not as
    many everywhere, and for values that are not positive.
    """
    logs = _logs(x, ys)
    if logs.shape[1] < 2:
        raise ValueError(f"ys: has {logs.shape[1]} repeats for each x; must have at least 2, for an interval")
    X = np.log(np.asarray(x, dtype=float))
    slopes = (X - X.mean()) @ logs / np.square(X - X.mean()).sum()
    return PowerLaw(float(slopes.mean()), *interval(slopes.tolist()))


def local_slopes(x: Numbers, ys: Sequence[Numbers] | np.ndarray) -> list[float]:
    """Compute the slope between each two neighbouring x: a straight line has the same everywhere. Raises as
    `power_law`.
    """
    return list(np.diff(_logs(x, ys).mean(1)) / np.diff(np.log(np.asarray(x, dtype=float))))


class TwoPowerLaws(NamedTuple):
    """y ~ max(a n^-in_n, b d^-in_d), and the largest factor by which a measured y is off it."""

    in_n: float
    in_d: float
    off: float


def two_power_laws(n: Numbers, d: Numbers, y: Numbers) -> TwoPowerLaws:
    """Fit the larger of two power laws, that of the narrower limit, to all measurements y[i] at n[i] and d[i], by least
    squares of log y; their sum, which theory also knows only up to constants, is the same within a factor of 2.

    There must be measurements at one d for several n, and at the largest n for several d.
    """
    n, d, y = (np.log(np.asarray(each, dtype=float)) for each in (n, d, y))

    def missed(law):
        a, u, b, v = law
        return np.maximum(a - u * n, b - v * d) - y

    # begin with each limit where it is alone: at the two smallest n, and along d at the largest n
    few, along = np.argsort(n)[:2], n == n.max()
    (u, a), (v, b) = (-np.polyfit(x, at, 1) * (1, -1) for x, at in ((n[few], y[few]), (d[along], y[along])))
    law = least_squares(missed, (a, u, b, v)).x
    return TwoPowerLaws(float(law[1]), float(law[3]), float(np.exp(np.abs(missed(law)).max())))


def _logs(x: Numbers, ys: Sequence[Numbers] | np.ndarray) -> np.ndarray:
    if len(x) < 2 or len(x) != len(ys):
        raise ValueError(f"x and ys: have {len(x)} and {len(ys)} entries; must have equally many, at least 2")
    if len({len(repeats) for repeats in ys}) > 1:
        raise ValueError(
            f"ys: has {', '.join(str(len(repeats)) for repeats in ys)} repeats; must have equally many for each x"
        )
    values = np.asarray(ys, dtype=float)
    if min(x) <= 0 or values.min() <= 0:
        raise ValueError(
            f"x and ys: have the least values {min(x):.3g} and {values.min():.3g}; must be above 0, for a power law"
        )
    return np.log(values)


def entropy(share: float) -> float:
    """Compute the bits in one event of this probability: H(p) = -p log2 p - (1 - p) log2 (1 - p), 0 at both ends.

    Raises ValueError unless 0 <= share <= 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share = {share!r}: must be at least 0 and at most 1")
    return float(-sum(p * np.log2(p) for p in (share, 1 - share) if p > 0))


def recalled_bits(facts: int, answers: int, right: float) -> float:
    """Compute the bits that a memory gives back: for each of ``facts`` tokens one of ``answers`` answers, a share
    ``right`` of them right.

    Each fact gives log2 M - H(e) - e log2(M - 1) with e = 1 - right, what one learns from an answer that errs with
    probability e, and then evenly. Raises ValueError for no facts, and for fewer than two answers.
    """
    if facts < 1 or answers < 2:
        raise ValueError(f"facts = {facts!r}, answers = {answers!r}: must be at least 1 fact and 2 answers")
    wrong = 1 - right
    return facts * float(np.log2(answers) - entropy(wrong) - wrong * np.log2(max(answers - 1, 1)))


def weighted_error(
    logits: Float[Tensor, "*runs n m"], answers: Int[Tensor, "n"], p: Float[Tensor, "n"]
) -> Float[Tensor, "*runs"]:
    """Compute the error under token frequencies ``p``: sum_z p(z) 1{argmax_k logits[z, k] != answers[z]}, for every
    run.

    The generalisation error of Cabannes, Dohmatob, Bietti (2024), arXiv:2310.02984, section 2.
    """
    return ((logits.argmax(-1) != answers) * p.to(logits)).sum(-1)
