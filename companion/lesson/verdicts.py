"""What became of a published claim, decided by one rule from what is stored of it in ``published/NN-topic.toml``.

**What is judged.** A theorem or a construction by `Construction`, an experiment by `Experiment`. What one run in front
of a learner gives is never judged, no bar of the course's own enters, and a control of ours is a row of ours. A
published number is one that the text prints, or arithmetic on such numbers; "as good as" is a share of 1.

**Scale.** An effect is 0 where there is none, above 0 on the source's side and below 0 on the other: a difference,
log2 of a factor, the share that is closed. A number that cannot be negative is none, since nothing could come out
different. What an untrained network shows, too, is no effect of training: the effect is what is beyond.

**Enough.** Whatever is trained needs three training seeds (``over``): an interval over fresh data speaks for the one
network that it was put to, and the claim is *not assessed*. So it is with fewer than three draws and no interval, and
with a measure that cannot tell.

**Reproduced** is a construction that is exact and whose negative world fails; and an experiment on the source's side
in every seed, or by its interval, that meets the published number. At the source's size that is within 10 %, two
points of accuracy, bettered, or inside the interval where that is no wider than the published effect; at a smaller
one, half of the effect. Size excuses only what differs in size, and nothing where the source says that less is enough.
Where no number is printed, every seed or draw must have the ordering, and there must be a number for each of three at
least: an interval alone tells of their mean.

**A form** (linear, exponential) is judged as a form: its lead is the variance that it explains less what its rival
does, and it is reproduced where it explains `FITS` of it, in every seed, and meets the number if one is printed.

**Weaker** is what is on the source's side, but less than that; a stand-in for its task, data, metric, rival or vectors
(how a network is trained is one only where the claim is about that); a trend where a rate or exactness is claimed, in
a construction, too; an exponent from one fit over sizes, which no repeat repeats; and all that is measured on models
that others trained.

**Different** is the other sign, no effect in any seed, or an interval that holds 0 and excludes half of the published
effect. Disagreement on a stand-in may be the stand-in's, and is *not assessed*.

**Several sizes** of one claim are one row. The size nearest the source's stands first and decides, because the claim
is about that one. A size ``beside`` it that comes out different is told, and a claim that holds at one size alone
is *weaker*; one that agrees, or on which nothing can be said, changes nothing: the smaller size is no evidence
for the larger.
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
SEEDS = 3  # so many training seeds, or draws: with less nothing is said
FITS = 0.95  # of the variance: so much a form must explain
OVER = {
    "seeds": "training seeds: ours has a number for each, and the interval is Student's t",
    "draws": "fresh draws of what nothing trains, or of the whole, anything that is trained trained afresh in each",
    "sizes": "one fit over sizes, of one run each: a trend",
    "prompts": "fresh data, put to fewer than three trained networks: nothing is said",
    "others": "fresh data, put to a model that others trained: weaker at most",
}
FEW = {"seeds": "fewer than three training seeds", "prompts": "one trained network"}
TREND = {"sizes": "one fit over sizes is a trend", "others": "on a model that others trained"}
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
    ``trend``: which rate it claims, where simulations gave a trend.
    ``stored``, ``checkpoint``, ``run``: where that comes from, as of an `Experiment`.
    """

    exact: bool
    fails: bool
    stand_in: str = ""
    trend: str = ""
    stored: tuple[str, ...] = ()
    checkpoint: tuple[str, ...] = ()
    run: str = ""

    def why(self) -> str:
        """Return what the verdict rests on, in words."""
        told = (
            "exact" if self.exact else "not exact",
            "and its negative world fails" if self.fails else "but no world fails it",
        )
        return "; ".join(filter(None, (", ".join(told), self.stand_in, self.trend)))


@dataclass(frozen=True)
class Experiment:
    """What was measured for a published experiment, as an effect: above 0 it is on the source's side.

    ``of``: what the numbers are.
    ``over``: what they run over, one of `OVER`.
    ``published``: the published effect; None where only an ordering is printed.
    ``ours``: ours, by training seed or draw.
    ``interval``: the 95 % interval of ours; else Student's t over three or more seeds or draws.
    ``form``, ``fit``, ``rival``: the form that is claimed, and what of the variance it and its rival explain, by seed.
    ``measure``: one of `MEASURES`.
    ``size``: the smaller size, named; empty at the source's, and where the source says that less is enough.
    ``stand_in``: what stands in for its task, data, metric, rival or vectors.
    ``trend``: which rate it claims, where we measured a trend.
    ``cannot``: why the measure can tell nothing.
    ``stored``: the measured tables that ours were taken from, by name.
    ``checkpoint``: the recipes from whose shipped checkpoints a notebook of the lesson computes ours.
    ``run``: the notebook whose run computes ours, from nothing that is stored.
    ``beside``: the same at other sizes, farther from the source's.
    """

    of: str
    over: str
    published: float | None = None
    ours: tuple[float, ...] = ()
    interval: tuple[float, float] | None = None
    form: str = ""
    fit: tuple[float, ...] = ()
    rival: tuple[float, ...] = ()
    measure: str = "effect"
    size: str = ""
    stand_in: str = ""
    trend: str = ""
    cannot: str = ""
    stored: tuple[str, ...] = ()
    checkpoint: tuple[str, ...] = ()
    run: str = ""
    beside: "tuple[Experiment, ...]" = ()

    def __post_init__(self) -> None:
        for name, known in (("measure", MEASURES), ("over", OVER)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} = {getattr(self, name)!r}: must be one of {', '.join(known)}")
        if self.published is not None and self.published <= 0:
            raise ValueError(f"published = {self.published}: must be above 0, which is the source's side")
        if self.interval is not None and self.interval[0] > self.interval[1]:
            raise ValueError(f"interval = {list(self.interval)}: must be the lower end, then the upper end")
        if not (self.ours or self.interval or self.cannot):
            raise ValueError(
                "ours = []: must have numbers where there is no interval, unless `cannot` says why there are none"
            )
        if self.over == "seeds" and self.interval is not None:
            raise ValueError(
                f"interval = {list(self.interval)}: must be left out where over = 'seeds', as it is computed from ours"
            )
        if not len(self.fit) == len(self.rival) == len(self.ours if self.form else ()):
            given = f"fit = {list(self.fit)}, rival = {list(self.rival)}"
            due = "must have as many numbers as ours" if self.form else "must be left out, as there is no form"
            raise ValueError(f"{given}: {due}")

    def between(self) -> tuple[float, float]:
        """Return the 95 % interval: the stored one, or Student's t over the training seeds."""
        if self.interval is not None:
            return self.interval
        return _student(self.ours)

    def size_of_effect(self) -> float:
        """Return the mean over the training seeds; the middle of the interval where there are none."""
        return fmean(self.ours or self.between())

    def why(self) -> str:
        """Return what the verdict rests on, in words: ``margin, five seeds: 0.0046 (0.0014 to 0.0079) for 0.034``."""
        told = self.of
        if self.ours or self.interval:
            told += f": {_short(self.size_of_effect())}"
        if self.interval:
            told += " ({} to {})".format(*map(_short, self.interval))
        elif len(self.ours) > 1:
            told += f" ({', '.join(map(_short, self.ours))})"
        if self.published is not None and (self.ours or self.interval):
            told += f" for {_short(self.published)}"
        form = self.form and f"{self.form} explains {_short(fmean(self.fit))}, its rival {_short(fmean(self.rival))}"
        at = f"at a smaller size: {self.size}" if self.size else ""
        parts = (told, form, at, self.stand_in, self.trend or TREND.get(self.over, ""), self.cannot, too_few(self))
        return ". Beside it ".join(["; ".join(filter(None, parts)), *(other.why() for other in self.beside)])


def _student(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean, by Student's t."""
    spread = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / sqrt(len(values))
    return fmean(values) - spread, fmean(values) + spread


def _short(value: float) -> str:
    """Return three digits, without a power of ten from a thousand on."""
    short = f"{value:.3g}"
    return short if abs(float(short)) < 1000 else f"{float(short):,.0f}"


def decide(evidence: Construction | Experiment) -> str:
    """Return one of `VERDICTS`, by the rule at the head of this file."""
    if isinstance(evidence, Construction):
        if not evidence.exact:
            return UNASSESSED if evidence.stand_in else DIFFERENT
        agrees = WEAKER if evidence.stand_in or evidence.trend else REPRODUCED
        return agrees if evidence.fails else UNASSESSED
    verdict = _of_size(evidence)
    fails_beside = any(_of_size(other) == DIFFERENT for other in evidence.beside)
    return WEAKER if verdict == REPRODUCED and fails_beside else verdict


def _of_size(evidence: Experiment) -> str:
    """Return the verdict on an experiment at its own size."""
    if evidence.cannot or not _enough(evidence):
        return UNASSESSED
    leads, (low, high) = _leads(evidence)
    if not (low > 0 or min(leads) > 0):
        return DIFFERENT if _contradicts(evidence, leads, high) else UNASSESSED
    if _at_most_weaker(evidence):
        return WEAKER
    return REPRODUCED if _met(evidence, *evidence.between(), min(leads)) else WEAKER


def _leads(evidence: Experiment) -> tuple[Sequence[float], tuple[float, float]]:
    """Return what must be above 0, by seed, and its 95 % interval: ours, or of a form by how much it explains more than
    its rival. Where seeds are too few, the ends of the interval take their place.
    """
    if evidence.form:
        leads = [fit - rival for fit, rival in zip(evidence.fit, evidence.rival, strict=True)]
        return leads, _student(leads)
    interval = evidence.between()
    return evidence.ours if len(evidence.ours) >= SEEDS else interval, interval


def _contradicts(evidence: Experiment, leads: Sequence[float], high: float) -> bool:
    """Return whether what is not on the source's side is against the source, and not merely open."""
    if evidence.stand_in:  # the disagreement may be the stand-in's
        return False
    other_sign = high < 0 or max(leads) <= 0
    return other_sign or (not evidence.form and evidence.published is not None and high < evidence.published / 2)


def _at_most_weaker(evidence: Experiment) -> bool:
    """Return whether the verdict cannot be better than weaker, however large the effect is."""
    explains_too_little = min(evidence.fit, default=1) < FITS
    return bool(evidence.stand_in or evidence.trend or evidence.over in TREND) or explains_too_little


def too_few(evidence: Construction | Experiment) -> str:
    """Return of what there is too little for a verdict: "one trained network"; empty where that is not the reason."""
    if isinstance(evidence, Construction) or evidence.cannot or _enough(evidence):
        return ""
    return FEW.get(evidence.over, "fewer than three draws, and no interval")


def _enough(evidence: Experiment) -> bool:
    fits = len(evidence.fit) >= SEEDS if evidence.form else evidence.interval is not None
    return evidence.over != "prompts" and (fits or len(evidence.ours) >= SEEDS)


def _met(evidence: Experiment, low: float, high: float, least: float) -> bool:
    """Return whether enough of the published effect is there."""
    ours, published = evidence.size_of_effect(), evidence.published
    if published is None:  # an interval alone does not say that every seed has the ordering
        return len(evidence.ours) >= SEEDS and least > 0
    beyond = ours > published and evidence.measure != "value"
    if evidence.size:
        return beyond or published / 2 <= ours <= 2 * published
    near = 2 if evidence.measure == "points" else published / 10
    return beyond or abs(ours - published) <= near or (0 < low <= published <= high and high - low <= published)


def tally(verdicts: Iterable[str]) -> str:
    """Count each: "2 reproduced; 0 same direction, weaker; 1 different; 0 not assessed"; without any, "none"."""
    counts = Counter(verdicts)
    counts.pop("", None)  # of a claim of the course's own
    return "; ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS) if counts else "none"


def in_all(verdicts: Sequence[str]) -> str:
    """Return how many published claims have which verdict: "Of 3 published claims: 2 reproduced, ..., 0 not assessed.";
    where there are none, `NONE_PUBLISHED`.
    """
    return f"Of {len(verdicts)} published claims: {tally(verdicts)}." if verdicts else NONE_PUBLISHED
