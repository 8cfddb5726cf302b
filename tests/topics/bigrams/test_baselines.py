"""Counting predictors against loops over lists."""

import pytest
import torch

from companion.topics.bigrams.baselines import bayes, follower
from companion.topics.bigrams.data import markov_chains


@pytest.mark.parametrize(("k", "length"), [(2, 7), (4, 30)])
def test_shares_of_what_followed(k, length):
    tokens = torch.randint(k, (5, length))
    unigram, bigram = bayes(tokens, k, order=1), bayes(tokens, k)
    for b, row in enumerate(tokens.tolist()):
        for t in range(length):
            followers = [row[s + 1] for s in range(t) if row[s] == row[t]]
            for j in range(k):
                assert unigram[b, t, j].item() == pytest.approx((row[: t + 1].count(j) + 1) / (t + 1 + k))
                assert bigram[b, t, j].item() == pytest.approx((followers.count(j) + 1) / (len(followers) + k))


def test_the_bigram_predicts_chains_better_than_the_unigram_and_nearly_as_well_as_the_truth():
    chains = markov_chains(400, 200, 3, generator=1)
    said, target = chains.tokens[:, :-1], chains.tokens[:, 1:, None]
    losses = [-p.gather(2, target).log()[:, 150:].mean() for p in (bayes(said, 3, order=1), bayes(said, 3))]
    truth = chains.transitions[torch.arange(400)[:, None], said]
    best = -truth.gather(2, target).log()[:, 150:].mean()
    assert best < losses[1] < best + 0.05 < losses[0]


def test_the_latest_follower():
    tokens = torch.randint(4, (6, 25))
    for row, got in zip(tokens.tolist(), follower(tokens).tolist(), strict=True):
        for t in range(25):
            places = [s for s in range(t) if row[s] == row[t]]
            assert got[t] == (row[places[-1] + 1] if places else -1)


@pytest.mark.parametrize(
    ("tokens", "order", "message"),
    [([[0, 3]], 2, "tokens: 3 is out of range; must be 0 to 2"), ([[0, 1]], 3, "order = 3")],
)
def test_bad_arguments_are_named(tokens, order, message):
    with pytest.raises(ValueError, match=message):
        bayes(torch.tensor(tokens), 3, order=order)
