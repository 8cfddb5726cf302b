"""The trigger-bigram task against loops over plain lists, and against the table it is drawn from."""

import csv

import pytest
import torch
from refusals import refusals

from companion.topics.bigrams.data import (
    SHAKESPEARE,
    Bigrams,
    Chains,
    markov_chains,
    recurrences,
    seen_before,
    trigger_sequences,
)

TABLE = Bigrams.shakespeare()


def test_the_table_is_the_published_one():
    assert TABLE.N == 65
    assert TABLE.counts.sum().item() == 1_115_393
    assert int((TABLE.counts > 0).sum()) == 1403
    entropy = -(TABLE.unigram[:, None] * TABLE.bigram * TABLE.bigram.clamp_min(1e-300).log()).sum()
    assert entropy.item() == pytest.approx(2.453, abs=5e-4)
    assert -(TABLE.unigram * TABLE.unigram.log()).sum().item() == pytest.approx(3.313, abs=5e-4)
    with SHAKESPEARE.open(newline="") as file:
        rows = list(csv.reader(file))
    at = [row[0] for row in rows].index(f"U+{ord('q'):04X}"), rows[0].index(f"U+{ord('u'):04X}")
    q, u = TABLE.characters.index("q"), TABLE.characters.index("u")
    assert TABLE.counts[q, u] == float(rows[at[0]][at[1]])
    assert TABLE.bigram[q].argmax() == u
    assert TABLE.decode(TABLE.most_frequent(5)) == " etoa"


def test_text_goes_both_ways():
    assert TABLE.decode(TABLE.encode("What's here?\n")) == "What's here?\n"


test_a_text_that_the_table_cannot_spell_is_refused = refusals(
    ("to b3e or @", "unknown token '@'"), ("t", "text = 't'"), ("", "text = ''"), of=TABLE.encode
)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("K", "seed"), [(1, 0), (5, 1), (9, 2)])
def test_triggers_are_followed_by_the_sequences_own_output(fixed, K, seed):
    tokens, known, triggers, outputs = trigger_sequences(40, 90, TABLE, K=K, fixed=fixed, generator=seed)
    assert tokens.shape == (40, 91)
    for row, mask, qs, os in zip(tokens.tolist(), known.tolist(), triggers.tolist(), outputs.tolist(), strict=True):
        assert len(set(qs)) == K
        answer = dict(zip(qs, os, strict=True))
        for t in range(90):
            if row[t] in answer:
                assert row[t + 1] == answer[row[t]]
            else:
                assert TABLE.counts[row[t], row[t + 1]] > 0
            assert mask[t] == (row[t] in answer and row[t] in row[:t])
    if fixed:
        assert triggers[0].tolist() == TABLE.most_frequent(K).tolist()
    else:
        assert len({tuple(qs) for qs in triggers.tolist()}) > 3


def test_everything_else_follows_the_table():
    """Of 500,000 pairs, those that do not begin with a trigger: each row against the table's, in total variation."""
    tokens, *_ = trigger_sequences(2000, 250, TABLE, K=5, generator=3)
    counts = torch.zeros(65, 65, dtype=torch.float64).index_put_(
        (tokens[:, :-1].flatten(), tokens[:, 1:].flatten()), torch.ones(()).double(), True
    )
    first = torch.bincount(tokens[:, 0], minlength=65) / 2000
    assert (first - TABLE.unigram).abs().sum() < 0.2
    for i in range(65):
        if i not in TABLE.most_frequent(5) and counts[i].sum() > 5000:
            assert (counts[i] / counts[i].sum() - TABLE.bigram[i]).abs().sum() < 0.1


def test_outputs_are_uniform_and_random_triggers_follow_the_unigram():
    _, _, triggers, outputs = trigger_sequences(20_000, 2, TABLE, K=1, fixed=False, generator=4)
    assert (torch.bincount(outputs.flatten(), minlength=65) / 20_000 - 1 / 65).abs().max() < 0.005
    assert (torch.bincount(triggers.flatten(), minlength=65) / 20_000 - TABLE.unigram).abs().max() < 0.01


def test_noise_comes_as_often_as_it_should_and_only_after_triggers():
    tokens, _, triggers, outputs = trigger_sequences(300, 100, TABLE, K=2, noise=0.3, generator=5)
    after = (tokens[:, :-1, None] == triggers[:, None]).any(-1)
    noise = tokens[:, 1:] == TABLE.N
    assert not (noise & ~after).any()
    assert noise[after].float().mean().item() == pytest.approx(0.3, abs=0.02)
    pairs = tokens[:, :-1, None] == triggers[:, None]
    assert (tokens[:, 1:, None] == outputs[:, None])[pairs & ~noise[..., None]].all()
    assert not (trigger_sequences(20, 30, TABLE, generator=5).tokens == TABLE.N).any()


def test_a_seed_is_a_batch():
    first, again = (
        trigger_sequences(3, 20, TABLE, generator=generator) for generator in (7, torch.Generator().manual_seed(7))
    )
    assert torch.equal(first.tokens, again.tokens)
    assert not torch.equal(first.tokens, trigger_sequences(3, 20, TABLE, generator=8).tokens)


def test_a_trigger_that_has_been_seen_is_known():
    tokens = torch.tensor([[1, 2, 1, 3, 1, 2], [3, 3, 2, 2, 2, 1]])
    known = seen_before(tokens, torch.tensor([[1, 2], [3, 1]]))
    assert known.int().tolist() == [[0, 0, 1, 0, 1, 1], [0, 1, 0, 0, 0, 0]]


test_bad_arguments_are_named = refusals(
    ({"batch": 0}, "batch = 0"),
    ({"length": 1}, "length = 1: must be at least 2"),
    ({"K": 66}, "K = 66: must be at least 1 and at most N = 65"),
    ({"K": 0}, "K = 0"),
    ({"noise": 1.0}, r"noise = 1\.0"),
    ({"noise": -0.1}, r"noise = -0\.1"),
    of=lambda wrong: trigger_sequences(**{"batch": 2, "length": 5, "table": TABLE} | wrong),
)


test_other_bad_arguments_are_named = refusals(
    (lambda: Bigrams.uniform(1), "N = 1"),
    (lambda: Bigrams("ab", torch.ones(3, 3, dtype=torch.float64)), r"counts of shape \(3, 3\)"),
    (lambda: Bigrams("ab", torch.tensor([[1.0, 1.0], [0.0, 0.0]])), "counts: .*successor"),
    (lambda: TABLE.decode([0, 65]), "tokens: 65 is out of range"),
    (lambda: markov_chains(1, 1, 3), "length = 1"),
    (lambda: markov_chains(1, 5, 1), "k = 1"),
    (lambda: markov_chains(0, 5, 2), "batch = 0"),
    (lambda: recurrences(1, 2, 5), "length = 2: must be at least 3"),
    (lambda: recurrences(1, 5, 1), "N = 1"),
    (lambda: recurrences(0, 5, 5), "batch = 0"),
)


def test_a_uniform_table_is_uniform():
    tokens, *_ = trigger_sequences(1500, 60, Bigrams.uniform(4), K=1, generator=1)
    rest = tokens[:, 1:][tokens[:, :-1] != 0]
    assert (torch.bincount(rest) / len(rest) - 0.25).abs().max() < 0.02


def test_a_chain_follows_its_transitions_from_a_stationary_start():
    chains: Chains = markov_chains(3, 60_000, 3, generator=6)
    for row, P in zip(chains.tokens, chains.transitions, strict=True):
        counts = torch.zeros(3, 3, dtype=torch.float64).index_put_(
            (row[:-1], row[1:]), torch.ones(()).double(), accumulate=True
        )
        torch.testing.assert_close(counts / counts.sum(1, keepdim=True), P, atol=0.03, rtol=0)
    many = markov_chains(40_000, 2, 3, generator=7)
    first, second = (torch.bincount(many.tokens[:, t], minlength=3) / 40_000 for t in (0, 2))
    torch.testing.assert_close(first, second, atol=0.01, rtol=0)
    assert many.transitions.var(0).mean().item() == pytest.approx(2 / 36, rel=0.05)  # Dirichlet(1, 1, 1): variance 1/18


@pytest.mark.parametrize(("length", "N"), [(3, 2), (8, 5), (16, 100)])
def test_the_last_token_has_occurred_once_before(length, N):
    tokens, targets = recurrences(500, length, N, generator=2)
    assert 0 <= int(tokens.min()) <= int(tokens.max()) < N
    places = set()
    for row, target in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert row[:-1].count(row[-1]) == 1
        place = row.index(row[-1])
        assert row[place + 1] == target != row[-1]
        places.add(place)
    assert places == set(range(length - 2))
