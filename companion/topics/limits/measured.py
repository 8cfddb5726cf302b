"""What lesson 12 shows of networks that learned to hop along pointers."""

from collections.abc import Callable

import torch

from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.limits.baselines import follow
from companion.topics.limits.data import crowded_pointers, hops_asked, rings
from companion.topics.limits.model import StepModel
from companion.topics.limits.recipes import DEPTHS

NETWORKS = (*map(str, DEPTHS), "2-crowded")


@torch.no_grad()
def hop_errors(model: StepModel, *, along: Callable = rings, batch: int = 2000, seed: int = 0) -> list[float]:
    """The share of places from which a trained network of `hopping` comes to a wrong one, after each number of hops
    that it was trained on. Raises ValueError for batch < 1.

    ``model``: a network.
    ``along``: what draws the pointers that it is asked about.
    ``batch``: how many maps of pointers are drawn.
    ``seed``: of these.
    """
    n, most = model.config.context - 1, model.config.vocabulary - model.config.context + 1
    maps = along(batch, n, generator=seed)
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
