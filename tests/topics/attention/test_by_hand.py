"""Heads from explicit weights against plain loops over tokens, on other seeds and sizes."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from refusals import refusals

from companion.topics.attention.baselines import latest, ngram, shares
from companion.topics.attention.by_hand import (
    Blocks,
    Head,
    broad_head,
    circle,
    circle_shift,
    embed,
    match_head,
    run,
    shift_head,
    skip_gram_head,
)

SIZES = pytest.mark.parametrize(("V", "T", "seed"), [(20, 64, 0), (5, 12, 1), (40, 30, 2), (3, 90, 3)])


def sentence(V, T, seed):
    """Tokens 0 .. V - 1 after a first one, V, that nothing else is."""
    return torch.cat([torch.tensor([V]), torch.randint(V, (T - 1,), generator=torch.Generator().manual_seed(seed))])


def written(layers, blocks, tokens, block="out"):
    return run(layers, embed(blocks, tokens))[-1][:, blocks[block]]


def one_hot(numbers, V):
    return F.one_hot(numbers.clamp_min(0), V).double()


def test_a_head_is_scaled_dot_product_attention_with_its_two_matrices():
    x, qk, ov = (torch.randn(shape, dtype=torch.float64) for shape in ((7, 5), (5, 5), (5, 5)))
    reference = F.scaled_dot_product_attention((x @ qk)[None], x[None], (x @ ov.mT)[None], is_causal=True, scale=1.0)[0]
    torch.testing.assert_close(Head(qk, ov)(x), reference)


def test_rows_of_two_blocks_make_the_matrix_between_them():
    blocks = Blocks(token=3, position=5, previous=3)
    token, previous = blocks.rows("token"), blocks.rows("previous")
    assert token.shape == (3, 11)
    assert torch.equal(token @ token.mT, torch.eye(3, dtype=torch.float64))
    assert torch.equal(previous.mT @ token, blocks.matrix("previous", "token"))


@SIZES
@pytest.mark.parametrize("by", [1, 2])
def test_a_shift_head_copies_the_token_before(V, T, seed, by):
    tokens, blocks = sentence(V, T, seed), Blocks(token=V + 1, position=T, previous=V + 1)
    copied = written([[shift_head(blocks, 12, by=by)]], blocks, tokens, "previous")
    assert (copied[by:] - one_hot(tokens[:-by], V + 1)).abs().max() < T * math.exp(-12)


@SIZES
def test_the_broad_head_is_the_exact_mean(V, T, seed):
    tokens, blocks = sentence(V, T, seed), Blocks(token=V + 1, position=T, out=V + 1)
    torch.testing.assert_close(written([[broad_head(blocks)]], blocks, tokens), shares(tokens, V + 1))


@SIZES
def test_a_skip_gram_head_finds_its_word_and_averages_elsewhere(V, T, seed):
    tokens, blocks = sentence(V, T, seed), Blocks(token=V + 1, position=T, out=V + 1)
    out = written([[skip_gram_head(blocks, 30, query=1, key=0)]], blocks, tokens)
    asks = (tokens == 1) & ((tokens == 0).cumsum(0) > 0)
    assert (out[asks] - one_hot(torch.zeros(1, dtype=torch.long), V + 1)).abs().sum() < 2 * T * T * math.exp(-30)
    torch.testing.assert_close(out[tokens != 1], shares(tokens, V + 1)[tokens != 1])


@SIZES
@pytest.mark.parametrize(("beta", "bound"), [(20, 1e-5), (40, 1e-13)])
def test_two_heads_are_the_in_context_bigram(V, T, seed, beta, bound):
    tokens, blocks = sentence(V, T, seed), Blocks(token=V + 1, position=T, previous=V + 1, out=V + 1)
    expected = ngram(tokens, V + 1)
    defined = ~expected.isnan().any(1)
    out = written([[shift_head(blocks, beta)], [match_head(blocks, beta)]], blocks, tokens)
    assert (out - expected)[defined].abs().max() < bound


@SIZES
def test_with_recency_the_latest_match_wins(V, T, seed):
    tokens, blocks = sentence(V, T, seed), Blocks(token=V + 1, position=T, previous=V + 1, out=V + 1)
    expected = latest(tokens)
    out = written([[shift_head(blocks, 2000)], [match_head(blocks, 2000, recency=18)]], blocks, tokens)
    assert (out - one_hot(expected, V + 1))[expected >= 0].abs().max() < 1e-6


@pytest.mark.parametrize("n", [3, 4])
def test_more_shift_heads_make_an_ngram(n):
    V, T = 3, 60
    tokens, names = sentence(V, T, n), ["token", *(f"back{by}" for by in range(1, n))]
    blocks = Blocks(position=T, out=V + 1, **dict.fromkeys(names, V + 1))
    shifts = [shift_head(blocks, 40, by=by, write=f"back{by}") for by in range(1, n)]
    pairs = dict(pairwise(names))
    expected = ngram(tokens, V + 1, n)
    defined = ~expected.isnan().any(1) & (torch.arange(T) >= n)
    assert defined.any()
    assert (written([shifts, [match_head(blocks, 40, pairs=pairs)]], blocks, tokens) - expected)[
        defined
    ].abs().max() < 1e-10


def test_a_match_that_minds_the_role_passes_over_the_same_name_in_another():
    """Token 1 comes after 0 twice; the role, token 2 two places back, tells which of the two is meant."""
    tokens = torch.tensor([2, 0, 1, 3, 0, 4, 0])
    blocks = Blocks(token=5, position=7, previous=5, before=5, out=5)
    shifts = [shift_head(blocks, 40), shift_head(blocks, 40, by=2, write="before")]
    for role, answer in ((2, 1), (3, 4)):
        match = match_head(blocks, 40, role=blocks.rows("before")[role])
        assert written([shifts, [match]], blocks, tokens)[-1, answer] > 0.999
    blind = written([shifts, [match_head(blocks, 40)]], blocks, tokens)[-1]
    assert blind[[1, 4]].tolist() == pytest.approx([0.5, 0.5], abs=1e-6)


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_one_more_layer_is_one_more_hop(hops):
    V, T = 9, 50
    tokens = sentence(V, T, hops)
    blocks = Blocks(token=V + 1, position=T, previous=V + 1, **{f"hop{k}": V + 1 for k in range(1, hops + 1)})
    layers = [[shift_head(blocks, 2000)]]
    for k in range(1, hops + 1):
        layers.append(
            [
                match_head(
                    blocks, 2000, pairs={"token" if k == 1 else f"hop{k - 1}": "previous"}, recency=20, write=f"hop{k}"
                )
            ]
        )
    expected = latest(tokens, hops)
    settled = (expected >= 0) & (torch.arange(T) > 25)  # every token has been seen, and followed
    out = written(layers, blocks, tokens, f"hop{hops}")
    assert settled.sum() > 10
    assert (out - one_hot(expected, V + 1))[settled].abs().max() < 1e-6


@pytest.mark.parametrize("T", [4, 17, 100])
def test_the_circle_turns_back_by_one_and_is_as_sharp_as_promised(T):
    beta = math.log(2 / 1e-4) / (1 - math.cos(2 * math.pi / T))
    scores = circle(T) @ circle_shift(T, beta) @ circle(T).mT
    angle = 2 * np.pi * (np.arange(T)[:, None] - 1 - np.arange(T)) / T
    np.testing.assert_allclose(scores, beta * np.cos(angle), rtol=1e-9, atol=1e-9 * beta)
    assert 1 - scores.softmax(-1).diagonal(-1).min() < 1.01e-4


@pytest.mark.parametrize(("n", "d", "seed"), [(10, 16, 0), (40, 8, 1)])
def test_two_heads_over_vectors_find_the_nearest_key(n, d, seed):
    """Keys at even places, each followed by its answer; the last place asks with a vector that is no key."""
    generator = torch.Generator().manual_seed(seed)
    blocks = Blocks(token=2 * n + 1, position=2 * n + 1, near=d, before=d, out=2 * n + 1)
    x, vectors = (
        embed(blocks, torch.arange(2 * n + 1)),
        F.normalize(torch.randn(n + 1, d, generator=generator, dtype=torch.float64), dim=1),
    )
    x[::2, blocks["near"]] = vectors
    layers = [
        [shift_head(blocks, 60, read="near", write="before")],
        [match_head(blocks, 5000, pairs={"near": "before"})],
    ]
    out = run(layers, x)[-1][-1, blocks["out"]]
    nearest = torch.cdist(vectors[-1:], vectors[:-1]).argmin()
    assert out.argmax() == 2 * nearest + 1
    assert out.max() > 0.999


@pytest.mark.parametrize(("T", "seed"), [(6, 0), (23, 1), (40, 2)])
def test_a_head_with_positions_on_a_circle_copies_the_token_before(T, seed):
    tokens, blocks = sentence(5, T, seed), Blocks(token=6, position=2, previous=6)
    beta = math.log(2 / 1e-6) / (1 - math.cos(2 * math.pi / T))
    head = Head(blocks.matrix("position", "position", circle_shift(T, beta)), blocks.matrix("previous", "token"))
    copied = head(embed(blocks, tokens, circle(T)))[:, blocks["previous"]]
    assert (copied[1:] - one_hot(tokens[:-1], 6)).abs().max() < 1.01e-6


BLOCKS = Blocks(token=4, position=6, previous=4, out=4)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: Blocks(token=0), "token = 0"),
    (lambda: BLOCKS["nothing"], "block = 'nothing': must be one of token, position"),
    (lambda: embed(BLOCKS, torch.tensor([1])), "length = 1"),
    (lambda: embed(BLOCKS, torch.zeros(7, dtype=torch.long)), "length = 7: must be at least 2 and at most 6"),
    (lambda: embed(BLOCKS, torch.tensor([1, 4])), "tokens: 4 is out of range"),
    (lambda: embed(BLOCKS, torch.tensor([2, -1])), "tokens: -1 is out of range"),
    (lambda: embed(BLOCKS, torch.tensor([1, 2]), circle(9)), r"positions of shape \(9, 2\): must have 6 channels"),
    (
        lambda: BLOCKS.matrix("position", "token"),
        r"values of shape \(6, 6\): must be \(6, 4\), the channels of position and of token",
    ),
    (lambda: shift_head(BLOCKS, 3.0, by=0), "by = 0"),
    (lambda: shift_head(BLOCKS, 3.0, by=6), "by = 6: must be at least 1 and below 6"),
    (lambda: shift_head(BLOCKS, 0), "beta = 0"),
    (lambda: match_head(BLOCKS, -1.0), "beta = -1"),
    (lambda: match_head(BLOCKS, 1.0, recency=-1.0), "recency = -1"),
    (lambda: skip_gram_head(BLOCKS, math.inf, query=0, key=1), "beta = inf"),
    (lambda: skip_gram_head(BLOCKS, 1.0, query=9, key=1), "query: 9 is out of range"),
    (lambda: circle(1), "T = 1"),
    (lambda: circle_shift(1, 2.0), "T = 1"),
    (lambda: circle_shift(8, 0.0), "beta = 0"),
)
