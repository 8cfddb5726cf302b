"""Facts stored by hand, every one of them asked; and what happens without a head, or without enough dimensions."""

import pytest
import torch
from refusals import refusals

from companion.topics.facts.by_hand import attention_only, dual, with_mlp
from companion.topics.facts.data import every_fact, random_world


def asked(bank, facts, length, seed=0):
    sentences = every_fact(facts, length, generator=seed)
    return bank(sentences.tokens[None])[0].argmax(-1) == sentences.answer, sentences


def test_duals_read_one_embedding_and_no_other():
    embeddings = torch.randn(10, 24, dtype=torch.float64)
    torch.testing.assert_close(dual(embeddings) @ embeddings.mT, torch.eye(10, dtype=torch.float64), atol=1e-10, rtol=0)
    more = torch.randn(60, 24, dtype=torch.float64)
    read = dual(more) @ more.mT
    torch.testing.assert_close(read.diagonal(), torch.ones(60, dtype=torch.float64))
    plain = more @ more.mT / more.square().sum(1)[:, None]
    assert (read - torch.eye(60)).square().mean() < (plain - torch.eye(60)).square().mean()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("subjects", "relations", "answers", "noise", "length"),
    [(32, 8, 8, 16, 12), (48, 6, 4, 99, 40), (24, 10, 8, 50, 8)],
)
def test_attention_alone_stores_every_fact(subjects, relations, answers, noise, length, seed):
    facts = random_world(subjects, relations, answers, noise=noise, generator=seed)
    torch.manual_seed(seed)
    d = 12 * (relations + answers)
    bank = attention_only(facts.table, answers, d=d, head_width=4, noise=noise, length=length)
    member = bank.config.members[0]
    assert member.mlp == 0
    assert member.heads * member.head_width <= subjects + relations + 6  # full heads, but for two
    assert asked(bank, facts, length, seed)[0].all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("subjects", "relations", "answers", "d"), [(32, 8, 8, 64), (64, 16, 8, 128), (96, 8, 4, 128)])
def test_heads_and_neurons_store_every_fact(subjects, relations, answers, d, seed):
    facts = random_world(subjects, relations, answers, noise=16, generator=seed)
    torch.manual_seed(seed)
    bank = with_mlp(facts.table, answers, d=d, head_width=4, each=8, noise=16, length=12)
    assert bank.config.members[0].mlp * d <= 32 * subjects * relations
    assert asked(bank, facts, 12, seed)[0].all()


@pytest.mark.parametrize("build", [attention_only, with_mlp])
def test_without_a_head_its_subjects_are_forgotten_and_no_others(build):
    facts = random_world(32, 8, 8, noise=16, generator=1)
    torch.manual_seed(1)
    bank = build(facts.table, 8, d=128, head_width=4, noise=16, length=12, **({"each": 4} if build is with_mlp else {}))
    bank.out[0, 2] = 0
    right, sentences = asked(bank, facts, 12)
    lost = (sentences.subject >= 8) & (sentences.subject < 12)
    assert right[~lost].all()
    assert right[lost].float().mean() < 0.4


def test_too_few_dimensions_do_not_do():
    facts = random_world(64, 8, 8, noise=32, generator=1)
    torch.manual_seed(0)
    assert (
        asked(attention_only(facts.table, 8, d=24, head_width=4, noise=32, length=12), facts, 12)[0].float().mean()
        < 0.6
    )


TABLE = random_world(8, 2, 2).table


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: attention_only(TABLE, 2, d=0, head_width=2, noise=4, length=5), "d = 0"),
    (lambda: attention_only(TABLE, 2, d=9, head_width=0, noise=4, length=5), "head_width = 0"),
    (lambda: attention_only(TABLE, 2, d=9, head_width=2, noise=4, length=5, beta=0.0), "beta = 0.0"),
    (
        lambda: attention_only(TABLE + 1, 2, d=9, head_width=2, noise=4, length=5),
        "under another relation; relation r must have answers from 2 r to 2 r",
    ),
    (lambda: with_mlp(TABLE, 2, d=9, head_width=2, each=0, noise=4, length=5), "each = 0"),
)
