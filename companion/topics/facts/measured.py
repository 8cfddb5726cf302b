"""What lesson 07 shows of the smallest models of facts with other learning rates."""

from dataclasses import replace

import torch

from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.core.training import seeded, train
from companion.topics.facts.data import every_fact
from companion.topics.facts.model import Bank
from companion.topics.facts.probes import recall_accuracy
from companion.topics.facts.recipes import about_facts, cross_entropy, facts_of


def facts_at(rate: float, d: int = 16, *, steps: int = 5000, seed: int = 0) -> float:
    """How many facts a model of width ``d`` stores of the world that suits it best, trained with another learning rate.

    All else is as in the recipe facts-capacity-d at the scale course, with one try for each of its four worlds.
    Guessing is subtracted: with D answers a share p of S R facts counts as (p - 1/D) / (1 - 1/D) S R. Raises ValueError
    for rate <= 0 or steps < 1.

    ``rate``: the peak of the learning rate.
    ``d``: one of `CAPACITY`.
    ``steps``: how long it trains.
    ``seed``: of the weights and the sentences.
    """
    chosen = recipe(f"facts-capacity-{d}")
    config = replace(chosen.config, members=chosen.config.members[::2])
    schedule = replace(chosen.schedule, lr=rate, steps=steps)
    with seeded(seed):
        bank = Bank(config)
    train(bank, about_facts(config), cross_entropy, schedule, seed=seed, label=f"d = {d}, rate {rate:g}")
    right = recall_accuracy(bank, every_fact(facts_of(config), config.length, generator=seed))
    guessing = 1 / config.answers
    facts = torch.tensor([member.subjects * member.relations for member in config.members])
    return ((right - guessing).clamp_min(0) / (1 - guessing) * facts).max().item()


@measurement(
    "facts-by-learning-rate",
    "facts that a model of width 16 stores, by learning rate; the recipe's own is 0.01",
    seeds=(0,),
    cells=[{"rate": rate} for rate in (0.003, 0.03, 0.1)],
    recipes=lambda scale: [recipe("facts-capacity-16", scale)],
    tolerance=0.05,
    because="at these rates runs drift apart by rounding; a twentieth is far less than from one rate to the next",
)
def by_learning_rate(seed: int, scale: str, rate: float) -> list[Row]:
    """Measure how many facts the model stores, a whole number."""
    return [{"facts": round(facts_at(rate, steps=20 if scale == "smoke" else 5000, seed=seed))}]
