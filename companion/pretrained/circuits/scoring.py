"""Circuits and their score: what a language model still does when all else is resampled, and what it does without them.

A circuit is a set of `Part`s, heads "16.0" and MLPs "m0", and, if wished, wires between them, "16.0 -> 18.6 by keys".
The prompts come in pairs (`companion.pretrained.circuits.behaviours`). A part that is *resampled* gives what it gives
on the corrupted prompt; what the other parts read then is the clean prompt's embedding and what each part gives. Let m
be the mean over prompts of logit(right) - logit(wrong):

    faithfulness    (m(all but the circuit resampled) - m(corrupted)) / (m(clean) - m(corrupted)), 1 for the whole model
    completeness    the same with the circuit resampled and all else kept: 0 for a circuit with no rival outside

A head to which wires are named reads, beside the embedding, these writers alone, each by its side (queries, keys or
values); of all others it reads what they give on the corrupted prompt. A head without wires reads the whole circuit.

Where this departs from the literature. Wang et al. (2022), arXiv:2211.00593, leave the MLPs as they are, put means over
other prompts in the place of heads at all places but those that a head is named for, and compare differences: |m(C) -
m(M)| for faithfulness, and the worst over subsets K of |m(C without K) - m(M without K)| for completeness; ours has K =
C alone. Conmy et al. (2023), arXiv:2304.14997, resample edges, as we do where wires are named, and measure a KL
divergence. Hanna et al. (2023), arXiv:2305.00586, and (2024), arXiv:2403.17806, resample edges, too, and normalise by
the clean and the corrupted run, as we do; MLPs and the logits are readers with wires of their own there, and not here.
Causal scrubbing (Chan et al. 2022) draws anew for each part which prompt it sees, among those that a hypothesis calls
alike; here all see the one corrupted prompt. The score is a ratio of means: a mean of ratios would be ruled by prompts
whose difference is small. Miller et al. (2024), arXiv:2407.08734, show that each of these choices moves the number; so
a score belongs to its pairs of prompts.
"""

from dataclasses import asdict, dataclass
from random import Random

import torch

from companion.core.measuring import Row
from companion.lesson.intervals import wilson
from companion.pretrained.circuits.parts import Circuit
from companion.pretrained.circuits.runs import RunReading, Runs, kept_share

REDRAWN = 2_000  # samples of a bootstrap
FLAT = 0.5  # a circuit that keeps the difference, and less than this share of the answer's probability, only flattens


@dataclass(frozen=True)
class CircuitScore:
    """What a circuit's score says, each interval one of 95 % over prompts.

    ``pairs``: how many pairs of prompts.
    ``accuracy``: the share of prompts after which the model puts the right continuation before the wrong one.
    ``faithfulness``, ``completeness``: see `companion.pretrained.circuits.scoring`.
    ``probability``, ``first``: of the right continuation the mean probability, and how often it is the first guess, by
        the circuit; ``whole_probability``, ``whole_first`` by the model.
    ``random``: the faithfulness of random circuits with as many heads and as many MLPs; ``empty``, of none.
    ``flattens``: whether the circuit keeps the difference and loses the answer.
    """

    pairs: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    heads: int
    mlps: int
    wires: int
    faithfulness: float
    faithfulness_interval: tuple[float, float]
    completeness: float
    completeness_interval: tuple[float, float]
    probability: float
    first: float
    whole_probability: float
    whole_first: float
    random: tuple[float, ...]
    empty: float
    flattens: bool

    def row(self) -> Row:
        """Return the score as a row of a table: intervals as two columns, of random circuits the mean and the best."""
        mean, best = (sum(self.random) / max(1, len(self.random)), max(self.random, default=0.0))
        row = {"size": self.heads + self.mlps, **asdict(self), "random": mean, "random_best": best}
        for name in ("accuracy", "faithfulness", "completeness"):
            row[f"{name}_low"], row[f"{name}_high"] = row.pop(f"{name}_interval")
        return row | {"flattens": int(self.flattens)}


def check_shown(runs: Runs) -> tuple[float, tuple[float, float]]:
    """Return the accuracy on a behaviour, with Wilson's interval. Raises ValueError where the model does not show the
    behaviour: the right continuation is not ahead in more than half of the prompts, or corrupting changes nothing.
    """
    ahead, trials = (runs.clean.difference > 0).double().mean().item(), len(runs.clean.difference)
    low, high = wilson(ahead, trials)
    said = f"right ahead of wrong in {ahead:.0%} of {trials} prompts (95 % interval {low:.0%} to {high:.0%})"
    if low <= 0.5:
        raise ValueError(f"behaviour: the model does not show it: {said}; the interval must lie above 50 %")
    change = runs.clean.difference - runs.corrupted.difference
    if change.mean() <= 2 * change.std() / trials**0.5:
        raise ValueError(
            f"behaviour: corrupting changes too little: logit(right) - logit(wrong) is on average "
            f"{runs.clean.difference.mean():.2f} on clean prompts and {runs.corrupted.difference.mean():.2f} on "
            "corrupted ones; must be clearly lower on corrupted ones"
        )
    return ahead, (low, min(1.0, high))


def score(runs: Runs, circuit: Circuit, *, random: int = 10, seed: int = 0) -> CircuitScore:
    """Score a ``circuit`` on the prompts of ``runs``. Raises ValueError for a part that is not there, and for a
    behaviour that the model does not show.

    ``random``: how many random circuits of its size are put beside it, drawn from ``seed``, as the bootstrap is.
    """
    accuracy, interval = check_shown(runs)
    kept, rest = runs.run(circuit), runs.run(runs.without(circuit))
    faithfulness, of_kept = _interval(runs, kept, seed)
    completeness, of_rest = _interval(runs, rest, seed)
    mlps = sum(part.head is None for part in circuit.parts)
    drawn = [runs.share(runs.run(each)) for each in random_circuits(runs, circuit, random, seed)]
    probability, whole = (each.probability.mean().item() for each in (kept, runs.clean))
    return CircuitScore(
        pairs=len(runs.clean.difference),
        accuracy=accuracy,
        accuracy_interval=interval,
        heads=len(circuit.parts) - mlps,
        mlps=mlps,
        wires=len(circuit.wires),
        faithfulness=faithfulness,
        faithfulness_interval=of_kept,
        completeness=completeness,
        completeness_interval=of_rest,
        probability=probability,
        first=kept.first.double().mean().item(),
        whole_probability=whole,
        whole_first=runs.clean.first.double().mean().item(),
        random=tuple(drawn),
        empty=runs.share(runs.run(Circuit(()))),
        flattens=faithfulness > FLAT and probability < FLAT * whole,
    )


def random_circuits(runs: Runs, circuit: Circuit, count: int, seed: int = 0) -> list[Circuit]:
    """Draw ``count`` circuits, from a ``seed``, with as many heads and MLPs of the model of ``runs`` as ``circuit``,
    without wires.
    """
    random, of_kind = Random(seed), {}
    for is_mlp in (False, True):
        there, asked = (
            [part for part in each if (part.head is None) == is_mlp] for each in (runs.parts, circuit.parts)
        )
        of_kind[is_mlp] = [random.sample(there, len(asked)) for _ in range(count)]
    return [Circuit((*heads, *mlps)) for heads, mlps in zip(of_kind[False], of_kind[True], strict=True)]


def _interval(runs: Runs, reading: RunReading, seed: int) -> tuple[float, tuple[float, float]]:
    """The share that a run keeps, and the interval of a bootstrap over prompts."""
    of = (reading.difference, runs.clean.difference, runs.corrupted.difference)
    trials = len(reading.difference)
    drawn = torch.randint(trials, (REDRAWN, trials), generator=torch.Generator().manual_seed(seed))
    low, high = (
        kept_share(*(each.double()[drawn] for each in of)).quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    )
    return runs.share(reading), (low, high)
