"""Recipes of lesson 01: one layer and two on sentences that repeat themselves; and how many samples a rule about a few bits takes.

Not a published setting: the task is ours, in the spirit of Sanford, Hsu, Telgarsky (2024), arXiv:2408.14332, who show that one layer needs
exponentially larger size than two to be an induction head.
"""

from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool

from companion.models.attention import BitHeads, BitMLPs, TokenModel, TokenModelConfig
from companion.recipes import Recipe
from companion.samplers.attention import conjunctions, repetitions
from companion.training import Schedule, train


def next_token_loss(model, tokens, periods):
    """Cross-entropy of the next token, wherever it follows from those before."""
    logits, targets = model(tokens[:, :-1]), tokens[:, 1:]
    settled = torch.arange(1, tokens.shape[1], device=tokens.device) >= periods[:, None]
    return F.cross_entropy(logits[settled], targets[settled])


def _scales(name: str, layers: int, about: str) -> dict[str, Recipe]:
    sizes = {
        "smoke": (TokenModelConfig(16, 24, 32, layers, 2), Schedule(steps=60, batch=32, lr=5e-3, warmup=10), (4, 8)),
        "course": (TokenModelConfig(32, 40, 64, layers, 2), Schedule(steps=500, batch=64, lr=3e-3, warmup=50), (6, 14)),
        "paper": (TokenModelConfig(256, 256, 256, layers, 4), Schedule(steps=10_000, batch=256, lr=1e-3, warmup=500), (16, 64)),
    }

    def draw(batch, generator, config, shortest, longest):
        return repetitions(batch, config.context, config.vocabulary, shortest=shortest, longest=longest, generator=generator)

    return {
        scale: Recipe(
            name,
            scale,
            partial(TokenModel, config),
            partial(draw, config=config, shortest=periods[0], longest=periods[1]),
            next_token_loss,
            schedule,
            about,
        )
        for scale, (config, schedule, periods) in sizes.items()
    }


RECIPES = {
    "attention-one-layer": _scales("attention-one-layer", 1, "one layer of attention on repeated phrases (lesson 01)"),
    "attention-two-layers": _scales("attention-two-layers", 2, "two layers of attention on repeated phrases (lesson 01)"),
}


def learned(
    kind: Literal["head", "mlp"], length: int, samples: list[int], seeds: range, *, steps: int = 300, fresh: int = 1000
) -> Bool[torch.Tensor, "samples seeds"]:
    """Which runs learn the AND of 3 of ``length`` bits: 95 % right on fresh data, for every number of samples and every seed.

    All runs train at once, each with its own rule, data and initialisation, by full-batch Adam; a run with fewer samples than the largest
    number sees its own again and again. Raises ValueError for a kind that is not there, a number of samples below 1, or no seeds.
    """
    if kind not in ("head", "mlp"):
        raise ValueError(f"kind = {kind!r}: must be 'head' or 'mlp'")
    if not samples or min(samples) < 1:
        raise ValueError(f"samples = {samples!r}: must be at least one number, none below 1")
    if not seeds:
        raise ValueError(f"seeds = {seeds!r}: must be at least one")
    most, runs = max(samples), [(count, seed) for count in samples for seed in seeds]
    data = [conjunctions(most + fresh, length, which=7 * seed + 1, generator=10_000 + seed) for _, seed in runs]
    rows = [torch.arange(most) % count for count, _ in runs]
    xs = torch.stack([sample.xs[row] for sample, row in zip(data, rows, strict=True)])
    ys = torch.stack([sample.ys[row] for sample, row in zip(data, rows, strict=True)])
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seeds.start)
        model = {"head": BitHeads, "mlp": BitMLPs}[kind](len(runs), length)
    train(
        model,
        lambda batch, generator: (xs, ys),  # the same data at every step
        lambda model, xs, ys: F.binary_cross_entropy_with_logits(model(xs), ys),
        Schedule(steps, batch=len(runs), lr=0.1 if kind == "head" else 0.01, warmup=1),
        device="cpu",
        label=f"{kind}, {length} bits, {len(runs)} runs",
    )
    with torch.no_grad():
        logits = model(torch.stack([sample.xs[most:] for sample in data]))
    right = (logits > 0) == (torch.stack([sample.ys[most:] for sample in data]) > 0)
    return (right.float().mean(-1) >= 0.95).view(len(samples), len(seeds))
