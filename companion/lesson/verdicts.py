"""What became of a published claim, decided by one rule from what is stored of it in ``published/NN-topic.toml``.

A theorem or a construction is judged by `Construction`, an experiment by `Experiment`. What one run in front of a
learner gives is never judged, and no bar of the course's own enters.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from scipy.special import stdtrit

REPRODUCED, WEAKER, DIFFERENT, UNASSESSED = VERDICTS = (
    "reproduced",
    "same direction, weaker",
    "different",
    "not assessed",
)
NONE_PUBLISHED = "There are no published claims here."
SEEDS = 3  # so many training seeds, or a 95 % interval: with less nothing is said
MEASURES = {
    "effect": "more is better: a lead, a ratio, 1 / error",
    "points": "more is better, in points of accuracy",
    "value": "neither more nor less is better: an exponent, a level",
}


@dataclass(frozen=True)
class Construction:
    """A theorem or a construction in our code.

    ``exact``: it does what the source says.
    ``fails``: the world in which it must fail does.
    ``stand_in``: what stands in for a part of it, if anything does.
    """

    exact: bool
    fails: bool
    stand_in: str = ""

    def why(self) -> str:
        """Say what the verdict rests on, in words."""
        told = (
            "exact" if self.exact else "not exact",
            "and its negative world fails" if self.fails else "but no world fails it",
        )
        return "; ".join(filter(None, (", ".join(told), self.stand_in)))


@dataclass(frozen=True)
class Experiment:
    """What was measured for a published experiment, as an effect: above 0 it is on the source's side.

    ``of``: what the numbers are, and over what: seeds, fresh data.
    ``published``: the published effect; None where only an ordering is printed.
    ``ours``: ours, by training seed.
    ``interval``: the 95 % interval of ours, over what ``of`` says; else Student's t over three or more seeds.
    ``measure``: one of `MEASURES`.
    ``size``: the smaller size, named; empty at the source's.
    ``stand_in``: what stands in for its task or rival.
    ``trend``: which rate it claims, where we measured a trend.
    ``cannot``: why the measure can tell nothing.
    ``stored``: the measured tables that ours were taken from, by name.
    """

    of: str
    published: float | None = None
    ours: tuple[float, ...] = ()
    interval: tuple[float, float] | None = None
    measure: str = "effect"
    size: str = ""
    stand_in: str = ""
    trend: str = ""
    cannot: str = ""
    stored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure = {self.measure!r}: must be one of {', '.join(MEASURES)}")
        if self.published is not None and self.published <= 0:
            raise ValueError(f"published = {self.published}: must be above 0, as an effect on the source's side")
        if self.interval is not None and self.interval[0] > self.interval[1]:
            raise ValueError(f"interval = {list(self.interval)}: must be a lower end and an upper one")
        if not (self.ours or self.interval or self.cannot):
            raise ValueError("ours: must be given, or an interval, or why the measure cannot tell")

    def between(self) -> tuple[float, float]:
        """Return the 95 % interval: the stored one, or Student's t over the training seeds."""
        if self.interval is not None:
            return self.interval
        spread = float(stdtrit(len(self.ours) - 1, 0.975)) * stdev(self.ours) / sqrt(len(self.ours))
        return fmean(self.ours) - spread, fmean(self.ours) + spread

    def size_of_effect(self) -> float:
        """Return the mean over the training seeds; the middle of the interval where there are none."""
        return fmean(self.ours or self.between())

    def why(self) -> str:
        """Say what the verdict rests on, in words: ``margin, five seeds: 0.0046 (0.0014 to 0.0079) for 0.034``."""
        told = self.of
        if self.ours or self.interval:
            told += f": {_short(self.size_of_effect())}"
        if self.interval:
            told += " ({} to {})".format(*map(_short, self.interval))
        elif len(self.ours) > 1:
            told += f" ({', '.join(map(_short, self.ours))})"
        if self.published is not None and (self.ours or self.interval):
            told += f" for {_short(self.published)}"
        at = f"at a smaller size: {self.size}" if self.size else ""
        few = "" if self.cannot or _enough(self) else "fewer than three training seeds, and no interval"
        return "; ".join(filter(None, (told, at, self.stand_in, self.trend, self.cannot, few)))


def _short(value: float) -> str:
    """Return three digits, without a power of ten from a thousand on."""
    short = f"{value:.3g}"
    return short if abs(float(short)) < 1000 else f"{float(short):,.0f}"


def decide(found: Construction | Experiment) -> str:
    """Return one of `VERDICTS`.

    A construction is reproduced if it is exact and its negative world fails. An experiment with three training seeds
    or a 95 % interval on the source's side is reproduced if, at the source's size, the published number is met (within
    10 %, two points of accuracy, inside the interval, or bettered); at a smaller one, if half of it is there; where no
    number is printed, if every seed has the ordering. With less, with a stand-in or with a trend for a rate it is
    weaker. It is different if the sign is the other one, or if the interval holds 0 and excludes half of the effect.
    """
    if isinstance(found, Construction):
        agrees = WEAKER if found.stand_in else REPRODUCED
        return DIFFERENT if not found.exact else agrees if found.fails else UNASSESSED
    if found.cannot or not _enough(found):
        return UNASSESSED
    low, high = found.between()
    seeds = found.ours if len(found.ours) >= SEEDS else (low, high)
    if not (low > 0 or min(seeds) > 0):
        other_sign = high < 0 or max(seeds) <= 0
        too_small = found.published is not None and high < found.published / 2
        return DIFFERENT if other_sign or too_small else UNASSESSED
    if found.stand_in or found.trend:
        return WEAKER
    return REPRODUCED if _met(found, low, high, min(seeds)) else WEAKER


def _enough(found: Experiment) -> bool:
    return found.interval is not None or len(found.ours) >= SEEDS


def _met(found: Experiment, low: float, high: float, least: float) -> bool:
    """Whether enough of the published effect is there."""
    ours, published = found.size_of_effect(), found.published
    if published is None:
        return least > 0
    beyond = ours > published and found.measure != "value"
    if found.size:
        return beyond or published / 2 <= ours <= 2 * published
    near = 2 if found.measure == "points" else published / 10
    return beyond or abs(ours - published) <= near or 0 < low <= published <= high


def tally(verdicts: Iterable[str]) -> str:
    """Count each: "2 reproduced; 0 same direction, weaker; 1 different; 0 not assessed"; without any, "none"."""
    counts = Counter(verdicts)
    counts.pop("", None)  # of a claim of the course's own
    return "; ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS) if counts else "none"


def in_all(verdicts: Sequence[str]) -> str:
    """Say what became of published claims: "Of 3 published claims: 2 reproduced, ..., 0 not assessed."; where there are
    none, `NONE_PUBLISHED`.
    """
    return f"Of {len(verdicts)} published claims: {tally(verdicts)}." if verdicts else NONE_PUBLISHED
