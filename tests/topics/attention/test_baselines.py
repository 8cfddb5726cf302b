"""The plain look-ups, against counting; what an L1 penalty leaves, by its conditions."""

import math

import pytest
import torch
from hypothesis.strategies import integers, lists
from laws import holds
from refusals import refusals

from companion.topics.attention.baselines import backward_hops, l1_logistic, latest, ngram, shares

TOKENS = torch.tensor([0, 1, 2, 0, 1, 3, 0, 1])


@holds(words=lists(integers(0, 2), min_size=1, max_size=12), n=integers(2, 4), hops=integers(1, 3))
def test_look_ups_count_the_words_before(words, n, hops):
    tokens = torch.tensor(words)
    found = shares(tokens, 3), ngram(tokens, 3, n), latest(tokens, hops), backward_hops(tokens, hops)
    for t, (share, gram, late, back) in enumerate(zip(*(each.tolist() for each in found), strict=True)):
        so_far, context, token, place = words[: t + 1], words[max(t - n + 2, 0) : t + 1], words[t], t
        assert share == pytest.approx([so_far.count(j) / (t + 1) for j in range(3)])
        after = [words[s + n - 1] for s in range(t - n + 2) if words[s : s + n - 1] == context]
        expected = [after.count(j) / len(after) if after else math.nan for j in range(3)]
        assert gram == pytest.approx(expected, nan_ok=True)
        for _ in range(hops):
            token = ([-1] + [words[s + 1] for s in range(t) if words[s] == token])[-1]
            place = ([0] + [s + 1 for s in range(place) if words[s] == words[place]])[-1]
        assert (late, back) == (token, place)


@pytest.mark.parametrize(("bits", "strength", "seed"), [(6, 0.05, 0), (12, 0.02, 1), (12, 0.2, 2)])
def test_with_an_l1_penalty_no_direction_leads_down(bits, strength, seed):
    """The subgradient conditions: |g_j| <= strength where w_j = 0, g_j = -strength sign(w_j) elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    xs = torch.randn(2, 50, bits, generator=generator, dtype=torch.float64).sign()
    ys = (xs[..., 0] + xs[..., 1] + torch.randn(2, 50, generator=generator, dtype=torch.float64) > 0).double()
    weights, bias = l1_logistic(xs, ys, torch.full((2,), strength, dtype=torch.float64), steps=3000)
    off = (torch.einsum("rij,rj->ri", xs, weights) + bias[:, None]).sigmoid() - ys
    slope = torch.einsum("ri,rij->rj", off, xs) / 50
    torch.testing.assert_close(off.mean(1), torch.zeros(2, dtype=torch.float64), atol=1e-5, rtol=0)
    used = weights != 0
    assert used.any()
    torch.testing.assert_close(slope[used], -strength * weights[used].sign(), atol=1e-5, rtol=0)
    assert slope[~used].abs().le(strength + 1e-5).all()


test_bad_arguments_are_named = refusals(
    (lambda: ngram(TOKENS, 4, 1), "n = 1"),
    (lambda: ngram(TOKENS, 3), "tokens: 3 is out of range"),
    (lambda: shares(-TOKENS, 4), "tokens: -1 is out of range"),
    (lambda: latest(TOKENS, 0), "hops = 0"),
    (lambda: backward_hops(TOKENS, 0), "hops = 0"),
    (lambda: l1_logistic(torch.ones(4, 2), torch.ones(4), torch.tensor(0.1), steps=0), "steps = 0"),
)
