"""Recipes of lesson 01: one layer and two on sentences that repeat themselves; and how many samples a rule about a few
bits takes.

Not a published setting: the task is ours, in the spirit of Sanford, Hsu, Telgarsky (2024), arXiv:2408.14332, who show
that one layer needs exponentially larger size than two to be an induction head.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool

from companion.core.recipe import as_sampler, register
from companion.core.training import Schedule, seeded, train
from companion.topics.attention.baselines import l1_logistic
from companion.topics.attention.data import Repetitions, conjunctions, repetitions
from companion.topics.attention.model import BitHeads, BitMLPs, TokenModel, TokenModelConfig


def repetition_loss(model, tokens, periods):
    """Cross-entropy of the next token, wherever it follows from those before: from the first repetition on.

    ``tokens`` (batch, length), ``periods`` (batch,): token t follows from those before where t >= its row's period.
    """
    logits, targets = model(tokens[:, :-1]), tokens[:, 1:]
    settled = Repetitions(tokens, periods).settled
    return F.cross_entropy(logits[settled], targets[settled])


@as_sampler
def repeated_phrases(config: TokenModelConfig, batch, generator, *, shortest: int, longest: int):
    """Sentences that fill the context, and the lengths of the phrases that they repeat (`repetitions`).

    A function of (batch, generator) that gives tokens (batch, context) and periods (batch,), ``shortest`` to
    ``longest``.
    """
    return repetitions(
        batch, config.context, config.vocabulary, shortest=shortest, longest=longest, generator=generator
    )


for _name, _about, _layers, _longer in (
    ("one-layer", "one layer", 1, 1),
    ("two-layers", "two layers", 2, 1),
    ("one-layer-long", "one layer, six times as long,", 1, 6),
):
    register(
        f"attention-{_name}",
        f"{_about} of attention on repeated phrases (lesson 01)",
        model=TokenModel,
        sampler=repeated_phrases,
        loss=repetition_loss,
        smoke=(
            TokenModelConfig(16, 24, 32, _layers, 4),
            Schedule(steps=60 * _longer, batch=32, lr=5e-3, warmup=10),
            {"shortest": 4, "longest": 8},
        ),
        course=(
            TokenModelConfig(32, 40, 64, _layers, 4),
            Schedule(steps=500 * _longer, batch=64, lr=3e-3, warmup=50),
            {"shortest": 6, "longest": 14},
        ),
        paper=(
            TokenModelConfig(256, 256, 256, _layers, 4),
            Schedule(steps=10_000 * _longer, batch=256, lr=1e-3, warmup=500),
            {"shortest": 16, "longest": 64},
        ),
        stored=torch.bfloat16,
    )


def runs_that_learn(
    kind: Literal["head", "mlp", "l1"],
    length: int,
    samples: list[int],
    seeds: range,
    *,
    steps: int = 300,
    fresh: int = 1000,
) -> Bool[torch.Tensor, "samples seeds"]:
    """Which runs learn the AND of 3 of ``length`` bits: 95 % right on fresh data, for every number of samples and every
    seed.

    All runs train at once, each with its own rule, data and initialisation, by full-batch Adam; runs of one seed share
    rule and data, of which each sees as much as it may. Raises ValueError for a kind that is not there, a
    number of samples below 1, or no seeds.

    ``kind``: "head" of attention (`BitHeads`), "mlp" (`BitMLPs`), or "l1", logistic regression with an L1 penalty of
        0.1 sqrt(ln length / samples): the rate is theory's (Ng 2004), the constant was found by hand, once.
    ``length``: how many bits there are.
    ``samples``: the numbers of training samples.
    ``seeds``: of rules, data and initialisations.
    ``steps``: how long each run trains.
    ``fresh``: on how many new samples it is judged.
    """
    if kind not in ("head", "mlp", "l1"):
        raise ValueError(f"kind = {kind!r}: must be 'head', 'mlp' or 'l1'")
    if not samples or min(samples) < 1:
        raise ValueError(f"samples = {samples!r}: must be at least one number, none below 1")
    if not seeds:
        raise ValueError(f"seeds = {seeds!r}: must be at least one")
    most = max(samples)
    drawn = [conjunctions(most + fresh, length, which=7 * seed + 1, generator=10_000 + seed) for seed in seeds]
    xs, ys = torch.stack([sample.xs for sample in drawn]), torch.stack([sample.ys for sample in drawn])
    if kind == "l1":
        logits = [_penalised(xs[:, :count], ys[:, :count], xs[:, most:], steps) for count in samples]
    else:
        logits = _trained(kind, xs, ys, samples, seeds.start, steps)
    right = (torch.stack(logits) > 0) == (ys[:, most:] > 0)
    return right.float().mean(-1) >= 0.95


def _penalised(xs, ys, unseen, steps):
    """Logits on ``unseen`` bits of logistic regressions with an L1 penalty, one a run."""
    runs, count, length = xs.shape
    strength = torch.full((runs,), 0.1 * (math.log(length) / count) ** 0.5)
    weights, bias = l1_logistic(xs, ys, strength, steps=steps)
    return (unseen @ weights[..., None])[..., 0] + bias[:, None]


def _trained(kind, xs, ys, samples, seed, steps):
    """For each number of samples the logits, after training on so many rows of ``xs``, on those beyond the largest."""
    runs, _, length = xs.shape
    network = {"head": BitHeads, "mlp": BitMLPs}[kind]
    rows = [part[:, :count].contiguous() for part in (network.seen(xs), ys) for count in samples]
    with seeded(seed):
        model = network(runs * len(samples), length)

    def loss(model, *rows):
        """The mean over all runs: each knows its own rows only."""
        seen, labels = rows[: len(samples)], rows[len(samples) :]
        return sum(map(F.binary_cross_entropy_with_logits, model.in_groups(seen), labels)) / len(samples)

    train(
        model,
        lambda batch, generator: tuple(row.to(generator.device) for row in rows),  # the same data at every step
        loss,
        Schedule(steps, batch=len(xs), lr=0.1 if kind == "head" else 0.01, warmup=1),
        label=f"{kind}, {length} bits, {runs * len(samples)} runs",
    )
    with torch.no_grad():
        return model.in_groups([network.seen(xs[:, max(samples) :])] * len(samples))
