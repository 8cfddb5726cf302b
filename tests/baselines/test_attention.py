"""The plain look-ups, on cases that can be checked by eye and against counting with collections."""

from collections import Counter

import pytest
import torch

from companion.baselines.attention import latest, ngram, shares

TOKENS = torch.tensor([0, 1, 2, 0, 1, 3, 0, 1])


def test_shares_count_what_has_been_seen():
    assert shares(TOKENS, 4)[0].tolist() == [1, 0, 0, 0]
    assert shares(TOKENS, 4)[3].tolist() == pytest.approx([0.5, 0.25, 0.25, 0])


def test_the_bigram_is_what_followed_before():
    bigram = ngram(TOKENS, 4)
    assert bigram[:3].isnan().all()
    assert bigram[3].tolist() == [0, 1, 0, 0]
    assert bigram[7].tolist() == [0, 0, 0.5, 0.5]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_ngrams_against_counting_pairs(n):
    tokens = torch.randint(3, (60,), generator=torch.Generator().manual_seed(n))
    words, out = tokens.tolist(), ngram(tokens, 3, n)
    for t in range(60):
        pairs = Counter((tuple(words[s : s + n - 1]), words[s + n - 1]) for s in range(t - n + 2))
        context = tuple(words[t - n + 2 : t + 1]) if t >= n - 2 else None
        total = sum(count for (key, _), count in pairs.items() if key == context)
        expected = [pairs[context, token] / total for token in range(3)] if total else None
        assert (out[t].tolist() == pytest.approx(expected)) if expected else out[t].isnan().all()


def test_the_latest_match_wins_and_hops_go_on_from_what_was_found():
    assert latest(TOKENS).tolist() == [-1, -1, -1, 1, 2, -1, 1, 3]
    assert latest(TOKENS, hops=2).tolist() == [-1, -1, -1, 2, 0, -1, 3, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ngram(TOKENS, 4, 1), "n = 1"),
        (lambda: ngram(TOKENS, 3), "unknown token 3"),
        (lambda: shares(-TOKENS, 4), "unknown token -1"),
        (lambda: latest(TOKENS, 0), "hops = 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
