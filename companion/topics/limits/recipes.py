"""Recipes of lesson 12: prefix parities, pointers, and states with and without worked steps.

All sizes are ours: the sources train longer, wider networks (Liu et al. 2023; Sanford, Hsu, Telgarsky 2024), and the
scale ``paper`` stands for theirs.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from companion.core.recipe import as_sampler, register
from companion.core.training import Schedule
from companion.topics.limits.baselines import follow
from companion.topics.limits.data import (
    coins,
    crowded_pointers,
    found_hops,
    hops_asked,
    letters_and_states,
    rings,
    unlike_neighbours,
)
from companion.topics.limits.model import StepModel, StepModelConfig


def every_place(model, *drawn):
    """Cross-entropy of ``drawn``, what the model reads and behind it the targets; a target -1 asks for nothing."""
    *read, targets = drawn
    return F.cross_entropy(model(*read).flatten(0, -2), targets.flatten(), ignore_index=-1)


@as_sampler
def prefix_parities(config: StepModelConfig, batch, generator):
    """Fair coins, and the parity of every prefix."""
    bits = coins(batch, config.context, generator=generator)
    return bits, bits.cumsum(1) % 2


@as_sampler
def short_prefixes(config: StepModelConfig, batch, generator, *, length: int, anywhere: bool):
    """The same for fewer coins than there are places, behind a token 2 that says where they begin; and that place, the
    first or ``anywhere``.
    """
    bits = coins(batch, length, generator=generator)
    last = config.context - length - 1 if anywhere else 0
    start = torch.randint(last + 1, (batch,), generator=generator, device=generator.device)
    first = torch.full_like(start, 2)[:, None]
    return torch.cat([first, bits], 1), start, torch.cat([first - 3, bits.cumsum(1) % 2], 1)


@as_sampler
def hopping(config: StepModelConfig, batch, generator, *, along: Callable):
    """Pointers, how many hops are asked for, one to as many as tokens are left for, and where they lead.

    ``along``: what draws the pointers.
    """
    n, most = config.context - 1, config.vocabulary - config.context + 1
    maps = along(batch, n, generator=generator)
    k = torch.randint(1, most + 1, (batch,), generator=generator, device=generator.device)
    led = torch.stack([follow(maps, hops) for hops in range(1, most + 1)])
    led = led[k - 1, torch.arange(batch, device=maps.device)]
    return hops_asked(maps, k), F.pad(led, (1, 0), value=-1)


@as_sampler
def hops_to_find(config: StepModelConfig, batch, generator, *, letters: int):
    """Letters, and as many hops to find along them, none to as many as tokens are left for."""
    most = config.vocabulary - letters - 2
    read = unlike_neighbours(batch, config.context - 1, letters, generator=generator)
    k = torch.randint(most + 1, (batch,), generator=generator, device=generator.device)
    return found_hops(read, k, letters)


@as_sampler
def every_state(config: StepModelConfig, batch, generator, *, points: int):
    """Words of two letters, and the state after every prefix."""
    return letters_and_states(batch, config.context, points, generator=generator)


@as_sampler
def parity_in_steps(config: StepModelConfig, batch, generator, *, asked: int, steps: int):
    """Coins, of which the parity of the first ``asked`` is wanted, and ``steps`` tokens behind them: running parities
    after equally many bits each, the last of them the answer. A step's token is asked for at the place before it.
    """
    bits_shown = config.context - steps + 1
    bits = coins(batch, bits_shown, generator=generator)
    written = (bits[:, :asked].cumsum(1) % 2)[:, asked // steps - 1 :: asked // steps]
    tokens = torch.cat([bits, written[:, :-1]], 1)
    return tokens, torch.cat([torch.full_like(bits[:, 1:], -1), written], 1)


@as_sampler
def states_in_steps(config: StepModelConfig, batch, generator, *, points: int, steps: int):
    """A word of two letters, and ``steps`` tokens behind it: the state after equally many letters each, the last of
    them the answer. A state is a token, too, and a step is asked for at the place before it.
    """
    length = config.context - steps + 1
    letters, states = letters_and_states(batch, length, points, generator=generator)
    written = states[:, length // steps - 1 :: length // steps] + 2
    tokens = torch.cat([letters, written[:, :-1]], 1)
    return tokens, torch.cat([torch.full_like(letters[:, 1:], -1), written], 1)


TINY = Schedule(steps=60, batch=64, lr=1e-2, warmup=5)
DEPTHS = (1, 2, 3)  # layers that 1 to 8 hops are learned with
FINDING_DEPTHS = (2, 3, 4)  # layers that find their hops
STATE_DEPTHS = (1, 2, 3, 4, 5)  # layers that follow the states of S5
DIAL = (32, 8, 1)  # states written for a word of 32 symbols; 1 is the answer alone
_step_model = partial(register, model=StepModel, loss=every_place)

for name, recurrent, steps in (("prefix", False, 4000), ("prefix-lstm", True, 800)):  # the LSTM has it long before
    shape = {"layers": 1, "heads": 4, "recurrent": recurrent}
    _step_model(
        f"limits-{name}",
        f"the parity of every prefix, by {'an LSTM' if recurrent else 'one layer of attention'} (lesson 12)",
        sampler=prefix_parities,
        smoke=(StepModelConfig(2, 2, 16, **shape), TINY),
        course=(StepModelConfig(2, 12, 48, **shape), Schedule(steps, 64, 3e-3, warmup=50)),
        paper=(StepModelConfig(2, 100, 512, 4, 8, recurrent=recurrent), Schedule(20_000, 64, 1e-4)),
    )
for layers, along in [*((layers, rings) for layers in DEPTHS), (2, crowded_pointers)]:
    shape = {"layers": layers, "heads": 4, "mlp": 2, "causal": False}
    where = "a ring of 16 places" if along is rings else "16 pointers of which several may meet"
    _step_model(
        f"limits-hops-{layers}{'-crowded' * (along is crowded_pointers)}",
        f"1 to 8 hops along {where}, by {layers} layer{'s' * (layers > 1)} (lesson 12)",
        sampler=partial(hopping, along=along),
        smoke=(StepModelConfig(6, 5, 16, **shape), TINY),
        course=(StepModelConfig(24, 17, 64, **shape), Schedule(4000, 64, 4e-3, warmup=50, muon=True)),
        paper=(StepModelConfig(80, 65, 128, **shape), Schedule(100_000, 32, 1e-4)),
    )
for layers in FINDING_DEPTHS:
    shape = {"layers": layers, "heads": 4}
    _step_model(
        f"limits-found-{layers}",
        f"0 to 8 hops to places that must be found among 48 of four letters, by {layers} layers (lesson 12)",
        sampler=hops_to_find,
        smoke=(StepModelConfig(7, 9, 16, **shape), TINY, {"letters": 3}),
        course=(
            StepModelConfig(14, 49, 64, mlp=2, **shape),
            Schedule(2500, 32, 4e-3, warmup=100, muon=True),
            {"letters": 4},
        ),
        paper=(StepModelConfig(22, 99, 128, **shape), Schedule(100_000, 32, 1e-4, warmup=1000), {"letters": 4}),
    )
for layers in STATE_DEPTHS:
    shape = {"layers": layers, "heads": 4, "own_places": True}
    _step_model(
        f"limits-states-{layers}",
        f"the state of S5 after every prefix of 32 symbols, by {layers} layer{'s' * (layers > 1)} (lesson 12)",
        sampler=every_state,
        smoke=(StepModelConfig(6, 8, 16, **shape), TINY, {"points": 3}),
        course=(StepModelConfig(120, 32, 64, **shape), Schedule(1500, 32, 3e-3, warmup=200), {"points": 5}),
        paper=(StepModelConfig(120, 100, 512, **shape), Schedule(20_000, 64, 1e-4), {"points": 5}),
    )
for name, steps in (("steps", 8), ("no-steps", 1)):
    shape = {"layers": 1, "heads": 4}
    _step_model(
        f"limits-{name}",
        f"the parity of 8 of 16 bits, {'a step for every bit' if steps > 1 else 'without worked steps'} (lesson 12)",
        sampler=parity_in_steps,
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
for name, anywhere in (("offsets", True), ("no-offsets", False)):
    shape = {"layers": 1, "heads": 4, "own_places": True}
    where = "begin anywhere" if anywhere else "always begin at the first"
    _step_model(
        f"limits-{name}",
        f"the parity of every prefix of 8 symbols that {where} of 25 places (lesson 12)",
        sampler=short_prefixes,
        smoke=(StepModelConfig(3, 5, 16, **shape), TINY, {"length": 2, "anywhere": anywhere}),
        course=(
            StepModelConfig(3, 25, 48, **shape),
            Schedule(1500, 64, 3e-3, warmup=50),
            {"length": 8, "anywhere": anywhere},
        ),
        paper=(
            StepModelConfig(3, 201, 512, 4, 8, own_places=True),
            Schedule(20_000, 64, 1e-4),
            {"length": 100, "anywhere": anywhere},
        ),
    )
for steps in DIAL:
    shape = {"layers": 1, "heads": 4, "own_places": True}
    _step_model(
        f"limits-dial-1-{steps}",
        f"the state of S5 after 32 symbols, by one layer that writes {steps} of them (lesson 12)",
        sampler=states_in_steps,
        smoke=(StepModelConfig(8, 31 + steps, 16, **shape), TINY, {"points": 3, "steps": steps}),
        course=(StepModelConfig(122, 31 + steps, 64, **shape), Schedule(600, 32, 3e-3), {"points": 5, "steps": steps}),
        paper=(
            StepModelConfig(122, 31 + steps, 256, 4, 8, own_places=True),
            Schedule(20_000, 256, 1e-3),
            {"points": 5, "steps": steps},
        ),
    )
