"""Recipes of lesson 07: one model of facts, and banks of many that differ in one or two sizes.

Setting: Nichani, Lee, Bietti (2024), arXiv:2412.06538, section 6, at sizes that a CPU trains in minutes: random frozen
embeddings, Adam, fresh sentences. Facts are those of `random_world` with seed 0. A bank's loss is the sum of its
members', and its gradient is clipped as one.
"""

import torch
import torch.nn.functional as F

from companion.core.recipe import register
from companion.core.training import Schedule
from companion.topics.facts.data import World, random_world, sentences
from companion.topics.facts.model import Bank, BankConfig, Member


def facts_of(config: BankConfig) -> World:
    """The facts that a bank of this shape is trained on."""
    return random_world(config.largest("subjects"), config.largest("relations"), config.answers, noise=config.noise)


def cross_entropy(model, tokens, answer):
    """Cross-entropy of the right answer: the mean over sentences, summed over members.

    ``tokens`` (batch, members, length), ``answer`` (batch, members). So every member's gradient is its own.
    """
    logits = model(tokens.transpose(0, 1))
    return F.cross_entropy(logits.flatten(0, 1), answer.mT.flatten()) * logits.shape[0]


def about_facts(config: BankConfig):
    """Sentences for every member of a bank, each about its own facts of the bank's world.

    A function of (batch, generator) that gives tokens (batch, members, length) and answers (batch, members).
    """
    facts = facts_of(config)

    def draw(batch, generator):
        drawn = [
            sentences(batch, facts, config.length, subjects=m.subjects, relations=m.relations, generator=generator)
            for m in config.members
        ]
        return torch.stack([each.tokens for each in drawn], 1), torch.stack([each.answer for each in drawn], 1)

    return draw


CAPACITY = (16, 24, 32, 48, 64)  # widths of the models whose capacity is measured, one bank for each


Members = tuple[list[Member], int]  # and how many answers each of their relations has


def _bank(name: str, about: str, *, smoke: Members, course: Members, paper: Members, steps: int = 2000) -> None:
    """Register a bank, which learns for ``steps`` at the scale ``course``."""

    def config(members: list[Member], answers: int, length: int) -> BankConfig:
        return BankConfig(tuple(members), answers, noise=16, length=length)

    register(
        name,
        about,
        model=Bank,
        sampler=about_facts,
        loss=cross_entropy,
        smoke=(config(*smoke, length=8), Schedule(steps=60, batch=64, lr=1e-2, warmup=10)),
        course=(config(*course, length=16), Schedule(steps, batch=256, lr=1e-2, warmup=30)),
        paper=(config(*paper, length=32), Schedule(steps=20_000, batch=1024, lr=3e-3, warmup=300)),
        stored=torch.bfloat16,
    )


def _capacity(d: int) -> list[Member]:
    """Models of one width, all sizes in proportion to it, on worlds of four sizes, twice each."""
    return [
        Member(d, d // 4, 8, 2 * d, n, n)
        for n in (round(ratio * d) for ratio in (1.2, 1.6, 2.0, 2.5))
        for _ in range(2)
    ]


_bank(
    "facts",
    "one model, attention and MLP (lesson 07)",
    smoke=([Member(16, 4, 4, 16, 8, 4)], 4),
    course=([Member(32, 8, 8, 64, 24, 24)], 8),
    paper=([Member(128, 16, 16, 512, 128, 128)], 16),
)
_bank(
    "facts-heads",
    "numbers of heads against widths of the MLP (lesson 07)",
    smoke=([Member(16, H, 4, m, 8, 8) for H in (1, 4) for m in (0, 16)], 4),
    course=([Member(32, H, 8, m, 24, 24) for H in (1, 2, 4, 8) for m in (0, 16, 32, 64, 128)], 8),
    paper=([Member(64, H, 16, m, 64, 64) for H in (1, 2, 4, 8, 16) for m in (0, 32, 64, 128, 256)], 8),
)
_bank(
    "facts-head-width",
    "widths of four heads against widths of the MLP (lesson 07)",
    smoke=([Member(16, 4, h, m, 8, 8) for h in (1, 4) for m in (0, 16)], 4),
    course=([Member(32, 4, h, m, 24, 24) for h in (2, 4, 8, 16) for m in (0, 16, 32, 64, 128)], 8),
    paper=([Member(64, 8, h, m, 64, 64) for h in (2, 4, 8, 16, 32) for m in (0, 32, 64, 128, 256)], 8),
)
_bank(
    "facts-attention",
    "attention alone: dimensions against numbers of relations (lesson 07)",
    smoke=([Member(d, 4, 4, 0, 8, R) for R in (4, 8) for d in (8, 16)], 4),
    course=([Member(d, 8, 8, 0, 24, R) for R in (8, 16, 32) for d in (8, 16, 24, 32, 48, 64)], 8),
    paper=([Member(d, 16, 16, 0, 64, R) for R in (16, 32, 64) for d in (16, 32, 64, 128, 256)], 16),
)
for _d in CAPACITY:
    _bank(
        f"facts-capacity-{_d}",
        f"how many facts models of {_d} dimensions hold (lesson 07)",
        steps=5000,
        smoke=([Member(_d // 2, 2, 4, _d, n, n) for n in (6, 10)], 4),
        course=(_capacity(_d), 4),
        paper=(_capacity(4 * _d), 4),
    )
