"""What lesson 12 shows of runs longer than its own: hops along pointers, parities of unfair coins, and worst flips."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from companion.core.decoder import Decoder, DecoderConfig
from companion.core.measuring import Row, measurement
from companion.core.recipe import Recipe, recipe
from companion.core.training import seeded
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
from companion.topics.limits.model import StepModel
from companion.topics.limits.probes import changes_by_place, sharpen
from companion.topics.limits.recipes import DEPTHS, FINDING_DEPTHS, STATE_DEPTHS

NETWORKS = (*map(str, DEPTHS), "2-crowded")
COUNTERS = ("limits-prefix", "limits-prefix-lstm")
SHARES = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)  # the probability of a 1
FACTORS = {  # of a random network's scores, by the length
    "as they are": lambda length: 1,
    "doubled": lambda length: 2,
    "times log T": math.log,
    "hard": lambda length: 1000,
}


@torch.no_grad()
def hop_errors(model: StepModel, along: Callable = rings, batch: int = 2000) -> list[float]:
    """Measure the share of places from which a trained network of `hopping` comes to a wrong one, after each number of
    hops that it was trained on; ``along`` draws the pointers that it is asked about.
    """
    n, most = model.config.context - 1, model.config.vocabulary - model.config.context + 1
    maps = along(batch, n, generator=0)
    return [
        (model(hops_asked(maps, k))[:, 1:].argmax(-1) != follow(maps, k)).double().mean().item()
        for k in range(1, most + 1)
    ]


@measurement(
    "limits-hop-errors",
    "wrong places after 1 to 8 hops, by networks of one to three layers, and by two layers where pointers may meet",
    cells=[{"network": network} for network in NETWORKS],
    recipes=lambda scale: [recipe(f"limits-hops-{network}", scale) for network in NETWORKS],
    tolerance=0.1,
    because="the hops that a network does not reach are guesses, and where it stops learning depends on rounding",
)
def errors_by_hops(seed: int, scale: str, network: str) -> list[Row]:
    """Train a network and measure its `hop_errors` along what it was trained on."""
    model, _ = recipe(f"limits-hops-{network}", scale).train(seed=seed)
    along = crowded_pointers if network.endswith("crowded") else rings
    return [{"hops": k, "error": error} for k, error in enumerate(hop_errors(model, along=along), 1)]


@torch.no_grad()
def found_errors(model: StepModel, letters: int, batch: int = 2000) -> list[float]:
    """Measure the share of places from which a network of `hops_to_find` says a wrong letter, after 0 hops and each
    number that it was trained on; places from which these hops lead nowhere count for nothing.
    """
    read = unlike_neighbours(batch, model.config.context - 1, letters, generator=0)
    errors = []
    for k in range(model.config.vocabulary - letters - 1):
        tokens, ends = found_hops(read, torch.full((batch,), k), letters)
        there = (ends >= 0) & (ends < letters)
        errors.append((model(tokens).argmax(-1) != ends)[there].double().mean().item())
    return errors


@measurement(
    "limits-found-hops",
    "wrong letters after 0 to 8 hops to places that must be found, by two to four layers, untrained and trained",
    cells=[{"layers": layers} for layers in FINDING_DEPTHS],
    recipes=lambda scale: [recipe(f"limits-found-{layers}", scale) for layers in FINDING_DEPTHS],
    tolerance=0.2,
    because="how many hops are learned by the end of training depends on rounding",
)
def found_hops_by_layers(seed: int, scale: str, layers: int) -> list[Row]:
    """Measure `found_errors` of a network before and after its training."""
    plan = recipe(f"limits-found-{layers}", scale)
    before, after = plan.model(seed=seed), plan.train(seed=seed)[0]
    errors = [found_errors(model, **plan.task) for model in (before, after)]
    return [
        {"hops": k, "untrained": untrained, "trained": trained}
        for k, (untrained, trained) in enumerate(zip(*errors, strict=True))
    ]


@measurement(
    "limits-states-by-depth",
    "how often the state of S5 is right after 1 to 32 symbols, by one to five layers, after 1,500 and 4,500 steps",
    cells=[{"layers": layers, "times": times} for times in (1, 3) for layers in STATE_DEPTHS],
    recipes=lambda scale: [recipe(f"limits-states-{layers}", scale) for layers in STATE_DEPTHS],
    tolerance=0.2,
    because="how long the words are that a network has learned by the end of training depends on rounding",
)
def states_by_depth(seed: int, scale: str, layers: int, times: int) -> list[Row]:
    """Measure by length the share of 2,000 fresh words of which a trained network names the state."""
    plan = recipe(f"limits-states-{layers}", scale)
    model, _ = plan.longer(times).train(seed=seed)
    letters, states = letters_and_states(2000, plan.config.context, **plan.task, generator=10_000)
    with torch.no_grad():
        right = (model(letters).argmax(-1) == states).double().mean(0)
    return [{"length": length, "right": share} for length, share in enumerate(right.tolist(), 1)]


def on_32_bits(name: str, scale: str) -> Recipe:
    """Return a recipe of prefix parities with strings of 32 bits, of which training shows next to none."""
    plan = recipe(name, scale)
    return plan if scale == "smoke" else plan.with_(config=replace(plan.config, context=32))


@measurement(
    "limits-parity-by-coins",
    "the parity of 32 bits by one layer of attention and by an LSTM, both trained on fair coins, for unfair coins",
    cells=[{"network": network} for network in COUNTERS],
    seeds=range(6),
    recipes=lambda scale: [on_32_bits(network, scale) for network in COUNTERS],
    tolerance=0.3,
    because="what a network says of counts that training never showed depends on rounding",
)
def parity_by_coins(seed: int, scale: str, network: str) -> list[Row]:
    """Train a network on fair coins, and measure its accuracy at the last bit for coins of every share."""
    plan = on_32_bits(network, scale)
    model, _ = plan.train(seed=seed)
    drawn = [coins(2000, plan.config.context, share, generator=99) for share in SHARES]
    with torch.no_grad():
        right = [(model(bits)[:, -1].argmax(-1) == bits.sum(1) % 2).double().mean().item() for bits in drawn]
    return [{"share": share, "right": each} for share, each in zip(SHARES, right, strict=True)]


@measurement(
    "limits-worst-flips",
    "how far the worst flip of a symbol, and the mean one, moves the last place of random networks, by length",
    cells=[{"scores": scores} for scores in FACTORS],
    tolerance=0.01,
    because="sums of float32 round otherwise on another machine",
)
def worst_flips(seed: int, scale: str, scores: str) -> list[Row]:
    """Measure `changes_by_place` in a random network of two layers and width 32, for strings of 16 symbols and more."""
    rows = []
    for length in (16, 32) if scale == "smoke" else (16, 32, 64, 128, 256, 512):
        with seeded(seed):
            network = Decoder(DecoderConfig(32, 2, 2, length, positions=False))
            symbols = 2.0 * torch.randint(2, (length, 32)) - 1
        changes = changes_by_place(sharpen(network, FACTORS[scores](length)), symbols)
        rows.append({"length": length, "worst": changes.max().item(), "mean": changes.mean().item()})
    return rows
