"""Counting predictors against loops over lists."""

import pytest
import torch
from hypothesis.strategies import integers, lists
from laws import holds
from refusals import refusals

from companion.topics.bigrams.baselines import bayes, follower
from companion.topics.bigrams.data import markov_chains


@holds(words=lists(integers(0, 2), min_size=1, max_size=12), k=integers(3, 5))
def test_shares_of_what_followed(words, k):
    batch = torch.tensor([words, words[::-1]])  # rows do not mix
    unigram, bigram, last = bayes(batch, k, order=1).tolist(), bayes(batch, k).tolist(), follower(batch).tolist()
    for b, row in enumerate(batch.tolist()):
        for t in range(len(row)):
            followers = [row[s + 1] for s in range(t) if row[s] == row[t]]
            assert unigram[b][t] == pytest.approx([(row[: t + 1].count(j) + 1) / (t + 1 + k) for j in range(k)])
            assert bigram[b][t] == pytest.approx([(followers.count(j) + 1) / (len(followers) + k) for j in range(k)])
            assert last[b][t] == [-1, *followers][-1]


def test_the_bigram_predicts_chains_better_than_the_unigram_and_nearly_as_well_as_the_truth():
    chains = markov_chains(400, 200, 3, generator=1)
    said, target = chains.tokens[:, :-1], chains.tokens[:, 1:, None]
    losses = [-p.gather(2, target).log()[:, 150:].mean() for p in (bayes(said, 3, order=1), bayes(said, 3))]
    truth = chains.transitions[torch.arange(400)[:, None], said]
    best = -truth.gather(2, target).log()[:, 150:].mean()
    assert best < losses[1] < best + 0.05 < losses[0]


test_bad_arguments_are_named = refusals(
    (lambda: bayes(torch.tensor([[0, 3]]), 3, order=2), "tokens: 3 is out of range; must be 0 to 2"),
    (lambda: bayes(torch.tensor([[0, 1]]), 3, order=3), "order = 3"),
)
