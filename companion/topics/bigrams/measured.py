"""What lesson 06 shows of the order in which memories are learned, by optimiser, start and triggers."""

import math
from itertools import product

import torch

from companion.core.measuring import Row, measurement
from companion.core.training import seeded
from companion.topics.bigrams.data import trigger_sequences
from companion.topics.bigrams.exercises import adam_step
from companion.topics.bigrams.model import BigramModel, BigramModelConfig
from companion.topics.bigrams.probes import memories
from companion.topics.bigrams.recipes import TABLE, known_loss

SMALL = BigramModelConfig(TABLE.N, 32, 64)
STEPS = {"smoke": 30, "course": 300, "paper": 900}
EVERY = 10  # steps from one look at the memories to the next
BATCH = 32


def _momentum_step(gradient, m, v, step, lr):  # noqa: ARG001 - called as adam_step is
    """Return the change of SGD with momentum 0.9, the new m, and v as it was; all of one shape, stacked."""
    m = 0.9 * m + gradient
    return torch.stack([-lr * m, m, v])


OPTIMISERS = {"SGD": (_momentum_step, 0.03), "Adam": (adam_step.answer, 3e-3)}


@measurement(
    "bigrams-order-of-learning",
    "the step at which each memory of a two-layer model recalls one half, by optimiser, start and triggers",
    cells=[
        {"optimiser": optimiser, "start": start, "triggers": triggers}
        for optimiser, start, triggers in product(OPTIMISERS, ("zero", "random"), ("fixed", "random"))
    ],
    tolerance=0.25,
    because="rounding moves it by one look or two, or past the end where a memory turns at .45, one answer short",
    quick=True,
)
def order_of_learning(seed: int, scale: str, optimiser: str, start: str, triggers: str) -> list[Row]:
    """Train W_O of the second layer and W_K of both, as the lesson's cells do with its seed, and return the first look
    at which `memories` of each is one half; infinity, if it does not get there.
    """
    (rule, lr), fixed = OPTIMISERS[optimiser], triggers == "fixed"
    with seeded(seed + 1):
        model = BigramModel(SMALL)
        trained = {"W_O2": model.outputs(1), "W_K2": model.keys(1), "W_K1": model.keys(0)}
        if start == "random":
            for matrix in trained.values():
                matrix.normal_(std=SMALL.width**-0.5)
    first, second = (block.attention for block in model.decoder.blocks)
    keys = slice(SMALL.width, 2 * SMALL.width)  # between queries and values
    places = {
        "W_O2": (second.out.weight, slice(None)),
        "W_K2": (second.qkv.weight, keys),
        "W_K1": (first.qkv.weight, keys),
    }
    for parameter, _ in places.values():
        parameter.requires_grad_()
    zeros = torch.zeros(SMALL.width, SMALL.width)
    memory = dict.fromkeys(places, (zeros, zeros))
    drawn = trigger_sequences(BATCH * STEPS[scale], SMALL.context, TABLE, fixed=fixed, generator=seed + 1)
    batches = zip(drawn.tokens.split(BATCH), drawn.known.split(BATCH), strict=True)
    asked = TABLE.most_frequent(5 if fixed else 20)
    reached = dict.fromkeys(places, math.inf)

    def look(step: int) -> None:
        for name, recall in memories(model, asked).items():
            if recall >= 0.5:
                reached[name] = min(reached[name], step)

    look(0)
    for step, batch in enumerate(batches, 1):
        model.zero_grad()
        known_loss(model, *batch).backward()
        for name, (parameter, rows) in places.items():
            change, *memory[name] = rule(parameter.grad[rows], *memory[name], step, lr)
            parameter.data[rows] += change
        if step % EVERY == 0:
            look(step)
    return [reached]
