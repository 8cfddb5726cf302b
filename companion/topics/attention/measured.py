"""What lesson 01 shows of runs longer than its own: one layer of attention that gets wider and wider."""

from dataclasses import replace

import torch

from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.attention.data import Repetitions
from companion.topics.attention.model import TokenModel

WIDER = (4, 8, 16, 32)  # heads of one layer, of as many dimensions each as the recipe's
BASES = {1: "attention-one-layer", 2: "attention-two-layers"}


@torch.no_grad()
def settled_accuracy(model: TokenModel, sample: Repetitions) -> float:
    """Measure the share of tokens that follow from those before and that the model names."""
    right = model(sample.tokens[:, :-1]).argmax(-1) == sample.tokens[:, 1:]
    return right[sample.settled].double().mean().item()


@measurement(
    "attention-wide-layers",
    "the determined tokens of repeated phrases that one layer of 4 to 32 heads names, and two layers of four",
    cells=[*({"layers": 1, "heads": heads} for heads in WIDER), {"layers": 2, "heads": 4}],
    recipes=lambda scale: [recipe(name, scale) for name in BASES.values()],
    tolerance=0.1,
    because="what a layer guesses that has not learned the task depends on rounding",
)
def accuracy_by_width(seed: int, scale: str, layers: int, heads: int) -> list[Row]:
    """Measure what a model names before and after it is trained by the recipe, with its width in proportion to its
    heads.
    """
    plan = recipe(BASES[layers], scale)
    width = plan.config.width // plan.config.heads * heads
    plan = plan.with_(config=replace(plan.config, width=width, heads=heads))
    sample = plan.draw(256, torch.Generator().manual_seed(78))
    models = plan.model(seed=seed), plan.train(seed=seed)[0]
    return [dict(zip(("untrained", "trained"), (settled_accuracy(model, sample) for model in models), strict=True))]
