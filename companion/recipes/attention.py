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

from companion.baselines.attention import l1_logistic
from companion.models.attention import BitHeads, BitMLPs, TokenModel, TokenModelConfig
from companion.recipes import register
from companion.samplers.attention import conjunctions, repetitions
from companion.training import Schedule, train


def repetition_loss(model, tokens, periods):
    """Cross-entropy of the next token, wherever it follows from those before: from the first repetition on.

    ``tokens`` (batch, length), ``periods`` (batch,): token t follows from those before where t >= its row's period.
    """
    logits, targets = model(tokens[:, :-1]), tokens[:, 1:]
    settled = torch.arange(1, tokens.shape[1], device=tokens.device) >= periods[:, None]
    return F.cross_entropy(logits[settled], targets[settled])


def repeated_phrases(config: TokenModelConfig, shortest: int, longest: int):
    """Sentences that fill the context, and the lengths of the phrases that they repeat (`repetitions`).

    A function of (batch, generator) that gives tokens (batch, context) and periods (batch,), ``shortest`` to
    ``longest``.
    """

    def draw(batch, generator):
        return repetitions(
            batch, config.context, config.vocabulary, shortest=shortest, longest=longest, generator=generator
        )

    return draw


for _layers, _words, _longer in ((1, "one-layer", 1), (2, "two-layers", 1), (1, "one-layer-long", 6)):
    register(
        f"attention-{_words}",
        f"{_words.replace('-', ' ')} of attention on repeated phrases (lesson 01)",
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

    All runs train at once, each with its own rule, data and initialisation, by full-batch Adam; a run with fewer
    samples than the largest number sees its own again and again. Raises ValueError for a kind that is not there, a
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
    most, runs = max(samples), [(count, seed) for count in samples for seed in seeds]
    data = [conjunctions(most + fresh, length, which=7 * seed + 1, generator=10_000 + seed) for _, seed in runs]
    rows = [torch.arange(most) % count for count, _ in runs]
    xs = torch.stack([sample.xs[row] for sample, row in zip(data, rows, strict=True)])
    ys = torch.stack([sample.ys[row] for sample, row in zip(data, rows, strict=True)])
    unseen = torch.stack([sample.xs[most:] for sample in data])
    if kind == "l1":
        strength = torch.tensor([0.1 * (math.log(length) / count) ** 0.5 for count, _ in runs])
        weights, bias = l1_logistic(xs, ys, strength, steps=steps)
        logits = (unseen @ weights[..., None])[..., 0] + bias[:, None]
    else:
        logits = _trained(kind, xs, ys, unseen, seeds.start, steps)
    right = (logits > 0) == (torch.stack([sample.ys[most:] for sample in data]) > 0)
    return (right.float().mean(-1) >= 0.95).view(len(samples), len(seeds))


def _trained(kind, xs, ys, unseen, seed, steps):
    """Logits on ``unseen`` bits of all runs after training."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = {"head": BitHeads, "mlp": BitMLPs}[kind](len(xs), xs.shape[-1])
    train(
        model,
        lambda batch, generator: (xs, ys),  # the same data at every step
        lambda model, xs, ys: F.binary_cross_entropy_with_logits(model(xs), ys),
        Schedule(steps, batch=len(xs), lr=0.1 if kind == "head" else 0.01, warmup=1),
        device="cpu",
        label=f"{kind}, {xs.shape[-1]} bits, {len(xs)} runs",
    )
    with torch.no_grad():
        return model(unseen)
