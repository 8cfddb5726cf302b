"""What lesson 07 shows of other learning rates and of other seeds, and how long its loss rests."""

import math
from copy import deepcopy
from dataclasses import replace
from typing import cast

import torch

from companion.core.checkpoints import shipped, weights_path
from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.core.training import seeded, train
from companion.topics.facts.data import counts, every_fact, random_world
from companion.topics.facts.exercises import bits, learn_facts, rest
from companion.topics.facts.model import Bank
from companion.topics.facts.probes import recall_accuracy
from companion.topics.facts.recipes import about_facts, cross_entropy, facts_of


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
    """Measure how many facts the model stores of the world that suits it best, a whole number.

    All else is as in the recipe, with one try for each of its four worlds. Guessing is subtracted: with D answers a
    share p of S R facts counts as (p - 1/D) / (1 - 1/D) S R.
    """
    chosen = recipe("facts-capacity-16")
    config = replace(chosen.config, members=chosen.config.members[::2])
    schedule = replace(chosen.schedule, lr=rate, steps=20 if scale == "smoke" else 5000)
    with seeded(seed):
        bank = Bank(config)
    train(bank, about_facts(config), cross_entropy, schedule, seed=seed, label=f"rate {rate:g}")
    right = recall_accuracy(bank, every_fact(facts_of(config), config.length, generator=seed))
    guessing = 1 / config.answers
    facts = torch.tensor([member.subjects * member.relations for member in config.members])
    return [{"facts": round(((right - guessing).clamp_min(0) / (1 - guessing) * facts).max().item())}]


BANKS = ("facts-heads", "facts-attention")


@measurement(
    "facts-by-seed",
    "share of the facts that two banks store, trained with other seeds than the shipped ones, by their members' sizes",
    seeds=(1, 2),
    cells=[{"bank": name} for name in BANKS],
    recipes=lambda scale: [recipe(name, scale) for name in BANKS],
    tolerance=0.05,
    because="runs of Adam drift apart by rounding; from too little room to enough it is far more than a twentieth",
)
def by_seed(seed: int, scale: str, bank: str) -> list[Row]:
    """Measure the share of all facts that each member of a bank answers right."""
    trained, _ = recipe(bank, scale).train(seed=seed)
    asked = every_fact(facts_of(trained.config), trained.config.length, rounds=4, generator=seed)
    return [
        {"relations": one.relations, "d": one.d, "heads": one.heads, "mlp": one.mlp, "right": right}
        for one, right in zip(trained.config.members, recall_accuracy(trained, asked).tolist(), strict=True)
    ]


@measurement(
    "facts-plateau",
    "how long the loss of a model that learns facts by gradient descent rests at log D, and what it says meanwhile",
    tolerance=0.01,
    because="gradient descent in float64 from the same start differs by rounding alone",
    quick=True,
)
def rest_on_the_plateau(seed: int, scale: str) -> list[Row]:
    """Measure the share of the run within 2 % of log D on end; the largest share for a line, an exponential and a
    cosine from its first loss to its last; and there the mean probability, on fresh sentences, of the relation's
    answers and of the right one.
    """
    facts = random_world(16, 4, 8, noise=20, generator=seed)
    rounds = 4 if scale == "smoke" else 32
    taught, asked = (every_fact(facts, 32, rounds=many, generator=seed + many) for many in (rounds, 8))
    film = learn_facts.answer(counts(taught.tokens, facts.words).double(), taught.answer, facts.all_answers, 400)

    def logits(sentences):
        return (counts(sentences.tokens, facts.words).double() * film[:, -1:]) @ film[:, :-1].mT

    losses = torch.stack([torch.nn.functional.cross_entropy(each, taught.answer) for each in logits(taught)])
    time, (start, end), level = torch.linspace(0, 1, 400), losses[[0, -1]], math.log(facts.answers)
    smooth = [
        start + (end - start) * time,
        start * (end / start) ** time,
        end + (start - end) * (1 + torch.cos(math.pi * time)) / 2,
    ]
    rests = [rest.answer(curve, level, 0.02).item() / 400 for curve in (losses, *smooth)]
    p = logits(asked)[(losses / level - 1).abs() <= 0.02].softmax(-1)
    own = torch.arange(facts.all_answers) // facts.answers == asked.relation[:, None]
    relation, right = (p * own).sum(-1).mean().item(), p[:, torch.arange(len(own)), asked.answer].mean().item()
    return [{"rests": rests[0], "smooth": max(rests[1:]), "relation": relation, "right": right}]


def rounded(bank: Bank, precision: int) -> Bank:
    """Return a copy whose trained numbers have 2^precision levels, evenly between the extremes of each tensor of each
    member.
    """
    copy = deepcopy(bank)
    for parameter in copy.parameters():
        step = parameter.detach().abs().flatten(1).amax(1).clamp_min(1e-12) / (2 ** (precision - 1) - 0.5)
        step = step.view(-1, *[1] * (parameter.dim() - 1))
        parameter.data = ((parameter / step).floor() + 0.5) * step * (parameter != 0)
    return copy


@measurement(
    "facts-rounded",
    "bits of knowledge a parameter in models of width 32 whose numbers keep 2, 4, 8 or all of their bits",
    recipes=lambda scale: [recipe("facts-capacity-32", scale)],
    tolerance=0.05,
    because="another machine trains another model, as another seed does",
)
def knowledge_when_rounded(seed: int, scale: str) -> list[Row]:
    """Measure the member of a bank that knows most, after each rounding: of the shipped bank, which is stored in 16
    bits, and of other seeds one that is trained. ``precision`` 32 is all.
    """
    there, plan = weights_path("facts-capacity-32", scale, seed).is_file(), recipe("facts-capacity-32", scale)
    config, bank = plan.config, cast("Bank", (shipped(plan.name, scale, seed) if there else plan.train(seed=seed))[0])
    asked = every_fact(facts_of(config), config.length, generator=seed + 5)
    stored = torch.tensor([member.subjects * member.relations for member in config.members])
    sizes = torch.tensor([member.parameters for member in config.members])
    rows = []
    for precision in (2, 4, 8, 32):
        right = recall_accuracy(bank if precision == 32 else rounded(bank, precision), asked)
        held = bits.answer(right.double().cpu(), stored, config.answers) / sizes
        rows.append({"precision": precision, "held": held.max().item()})
    return rows
