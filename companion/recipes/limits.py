"""Recipes of lesson 12: prefix parities, pointers, and the parity of a few bits with and without worked steps.

All sizes are ours: the sources train longer, wider networks (Liu et al. 2023; Sanford, Hsu, Telgarsky 2024), and the
scale ``paper`` stands for theirs.
"""

import torch
import torch.nn.functional as F

from companion.baselines.limits import follow
from companion.models.limits import StepModel, StepModelConfig
from companion.recipes import register
from companion.samplers.limits import coins, pointers
from companion.training import Schedule


def every_place(model, tokens, targets):
    """Cross-entropy at the places that ``targets`` asks for; -1 asks for nothing."""
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=-1)


def prefix_parities(config: StepModelConfig):
    """Fair coins, and the parity of every prefix."""

    def draw(batch, generator):
        bits = coins(batch, config.context, generator=generator)
        return bits, bits.cumsum(1) % 2

    return draw


def hopping(config: StepModelConfig, k: int):
    """Permutations, and where k hops lead from every place."""

    def draw(batch, generator):
        maps = pointers(batch, config.vocabulary, generator=generator)
        return maps, follow(maps, k)

    return draw


def parity_in_steps(config: StepModelConfig, asked: int, steps: int):
    """Coins, of which the parity of the first ``asked`` is wanted, and ``steps`` tokens behind them: running parities
    after equally many bits each, the last of them the answer. A step's token is asked for at the place before it.
    """
    bits_shown = config.context - steps + 1

    def draw(batch, generator):
        bits = coins(batch, bits_shown, generator=generator)
        written = (bits[:, :asked].cumsum(1) % 2)[:, asked // steps - 1 :: asked // steps]
        tokens = torch.cat([bits, written[:, :-1]], 1)
        return tokens, torch.cat([torch.full_like(bits[:, 1:], -1), written], 1)

    return draw


TINY = Schedule(steps=60, batch=64, lr=1e-2, warmup=5)
for name, recurrent, steps in (("prefix", False, 4000), ("prefix-lstm", True, 800)):  # the LSTM has it long before
    shape = {"layers": 1, "heads": 4, "recurrent": recurrent}
    register(
        f"limits-{name}",
        f"the parity of every prefix, by {'an LSTM' if recurrent else 'one layer of attention'} (lesson 12)",
        model=StepModel,
        sampler=prefix_parities,
        loss=every_place,
        smoke=(StepModelConfig(2, 2, 16, **shape), TINY),
        course=(StepModelConfig(2, 12, 48, **shape), Schedule(steps, 64, 3e-3, warmup=50)),
        paper=(StepModelConfig(2, 100, 512, 4, 8, recurrent=recurrent), Schedule(20_000, 64, 1e-4)),
    )
for layers in (1, 2):
    shape = {"layers": layers, "mlp": 2, "causal": False}
    register(
        f"limits-hops-{layers}",
        f"four hops along a permutation of 8, by {layers} layer{'s' * (layers > 1)} (lesson 12)",
        model=StepModel,
        sampler=hopping,
        loss=every_place,
        smoke=(StepModelConfig(2, 2, 16, **shape), TINY, {"k": 3}),
        course=(StepModelConfig(8, 8, 48, **shape), Schedule(4000, 64, 4e-3, warmup=50), {"k": 4}),
        paper=(StepModelConfig(64, 64, 128, layers, 4, causal=False), Schedule(100_000, 32, 1e-4), {"k": 16}),
    )
for name, steps in (("steps", 8), ("no-steps", 1)):
    shape = {"layers": 1, "heads": 4}
    register(
        f"limits-{name}",
        f"the parity of 8 of 16 bits, {'a step for every bit' if steps > 1 else 'without worked steps'} (lesson 12)",
        model=StepModel,
        sampler=parity_in_steps,
        loss=every_place,
        smoke=(StepModelConfig(2, 4, 16, 1, 4), TINY, {"asked": 2, "steps": 2 if steps > 1 else 1}),
        course=(
            StepModelConfig(2, 15 + steps, 32, **shape),
            Schedule(400, 64, 3e-3, warmup=50),
            {"asked": 8, "steps": steps},
        ),
        paper=(
            StepModelConfig(2, 63 + (32 if steps > 1 else 1), 128, 2, 4),
            Schedule(20_000, 256, 1e-3),
            {"asked": 32, "steps": 32 if steps > 1 else 1},
        ),
    )
