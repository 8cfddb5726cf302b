"""What lesson 07 shows of the smallest models of facts with other learning rates, and of other seeds."""

import math
from dataclasses import replace

import torch

from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.core.training import seeded, train
from companion.topics.facts.data import counts, every_fact, random_world
from companion.topics.facts.exercises import learn_facts, rest
from companion.topics.facts.model import Bank, Member
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


BY_SEED = {
    "tolerance": 0.05,
    "because": "runs of Adam drift apart by rounding; from too little room to enough it is far more than a twentieth",
}


@measurement(
    "facts-heads-by-seed",
    "share of the facts that banks of other seeds than the shipped one store, by heads and neurons",
    seeds=(1, 2),
    recipes=lambda scale: [recipe("facts-heads", scale)],
    **BY_SEED,
)
def heads_by_seed(seed: int, scale: str) -> list[Row]:
    """Measure the share of all facts that each member of the bank facts-heads answers right."""
    members, right = _trained("facts-heads", seed, scale)
    return [{"heads": one.heads, "mlp": one.mlp, "right": share} for one, share in zip(members, right, strict=True)]


@measurement(
    "facts-attention-by-seed",
    "share of the facts that attention alone of other seeds than the shipped one stores, by relations and dimension",
    seeds=(1, 2),
    recipes=lambda scale: [recipe("facts-attention", scale)],
    **BY_SEED,
)
def attention_by_seed(seed: int, scale: str) -> list[Row]:
    """Measure the share of all facts that each member of the bank facts-attention answers right."""
    members, right = _trained("facts-attention", seed, scale)
    return [{"relations": one.relations, "d": one.d, "right": share} for one, share in zip(members, right, strict=True)]


def _trained(name: str, seed: int, scale: str) -> tuple[tuple[Member, ...], list[float]]:
    """The members of a bank that is trained with this seed, and the share of all facts that each answers right."""
    bank, _ = recipe(name, scale).train(seed=seed)
    asked = every_fact(facts_of(bank.config), bank.config.length, rounds=4, generator=seed)
    return bank.config.members, recall_accuracy(bank, asked).tolist()


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
