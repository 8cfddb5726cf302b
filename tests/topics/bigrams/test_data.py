"""The trigger-bigram task against loops over plain lists, and against the table it is drawn from."""

import csv
from collections import Counter
from itertools import pairwise, permutations, product

import numpy as np
import pytest
import torch
from laws import laws, quarters
from refusals import refusals

from companion.topics.bigrams.data import (
    SHAKESPEARE,
    Bigrams,
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


SMALL = Bigrams("abc", torch.tensor([[3.0, 1, 0], [1, 1, 2], [0, 1, 1]]).double())


def triggered(K, fixed, noise):
    """The law of two tokens and one, of the triggers and of their outputs, token by token."""
    sums, law = SMALL.counts.sum(1, keepdim=True), Counter()
    first, after = (sums[:, 0] / sums.sum()).tolist(), (SMALL.counts / sums).tolist()
    for triggers, outputs in product(permutations(range(3), K), product(range(3), repeat=K)):
        chance = float(triggers == (0, 1)[:K]) if fixed else first[triggers[0]]
        if K == 2 and not fixed:
            chance *= first[triggers[1]] / (1 - first[triggers[0]])
        for tokens in product(range(4), repeat=3):
            p, rows = chance, [3, *tokens]
            for here, said in pairwise(rows):
                if here in triggers:
                    p *= noise if said == 3 else (1 - noise) * (said == outputs[triggers.index(here)])
                else:
                    p *= (*(first if here == 3 else after[here]), 0)[said]
            if p:
                law[(*tokens, *triggers, *outputs)] += p
    return law


def chained(cells=200):
    """The law of two chances to stay, in quarters, and of a token and the next: mean over a grid."""
    u = (np.arange(cells) + 0.5) / cells
    stay, law = np.stack(np.meshgrid(u, u, indexing="ij")), Counter()
    start = np.stack([1 - stay[1], 1 - stay[0]]) / (2 - stay.sum(0))
    for z, y in product(range(2), repeat=2):
        p = (start[z] * (stay[z] if z == y else 1 - stay[z])).reshape(4, cells // 4, 4, -1).mean((1, 3))
        law.update({(i, j, z, y): p[i, j] for i, j in product(range(4), repeat=2)})
    return law


def chains(generator):
    tokens, transitions = markov_chains(40_000, 2, 2, generator=generator)
    stay = transitions.diagonal(dim1=1, dim2=2)
    return torch.cat([quarters(stay, lambda p: p), tokens[:, :2]], 1)


def recurring():
    """All five tokens that end with one which stood once before, and what followed it there."""
    for *tokens, q in product(range(3), repeat=5):
        if tokens.count(q) == 1 and tokens[3] != q:
            yield *tokens, q, tokens[tokens.index(q) + 1]


OPTIONS = (
    {"K": 2, "fixed": True, "noise": 0.0},
    {"K": 1, "fixed": False, "noise": 0.3},
    {"K": 2, "fixed": False, "noise": 0.0},
)


def columns(options):
    def draw(generator):
        tokens, _, triggers, outputs = trigger_sequences(60_000, 2, SMALL, generator=generator, **options)
        return torch.cat([tokens, triggers, outputs], 1)

    return draw


test_draws_follow_their_laws = laws(
    *((columns(options), triggered(**options)) for options in OPTIONS),
    (chains, chained()),
    (lambda g: torch.column_stack(recurrences(20_000, 5, 3, generator=g)), recurring()),
)


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
