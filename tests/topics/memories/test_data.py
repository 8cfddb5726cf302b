"""Embeddings, frequencies, tokens and patterns are what their docstrings say, for other sizes and seeds too."""

from itertools import product

import pytest
import torch
from laws import laws, quarters
from refusals import refusals

from companion.topics.memories.data import embeddings, flipped, sign_patterns, tokens, zipf


@pytest.mark.parametrize(("n", "d"), [(40, 25), (30, 400), (7, 3000)])
def test_embeddings_are_nearly_orthonormal(n, d):
    U = embeddings(n, d, generator=n, dtype=torch.float64)
    gram = U @ U.mT
    assert gram.diagonal().mean().item() == pytest.approx(1, abs=4 * (2 / (n * d)) ** 0.5)
    off = gram[~torch.eye(n, dtype=torch.bool)]
    assert off.square().mean().item() == pytest.approx(1 / d, rel=0.3)


def test_unit_embeddings_have_length_one():
    U = embeddings(5, 8, runs=(2, 3), unit=True, generator=1, dtype=torch.float64)
    assert U.shape == (2, 3, 5, 8)
    torch.testing.assert_close(U.norm(dim=-1), torch.ones(2, 3, 5, dtype=torch.float64))


@pytest.mark.parametrize("alpha", [1.2, 2.0, 3.5])
def test_zipf_is_a_power_law(alpha):
    p = zipf(50, alpha)
    assert len(p) == 50 and p.sum().item() == pytest.approx(1)
    assert (p[7] / p[31]).item() == pytest.approx((32 / 8) ** alpha)


def angles(generator):
    """The quarter of the circle that each of two unit vectors points to."""
    U = embeddings(2, 2, runs=(20_000,), unit=True, generator=generator)
    return quarters(torch.atan2(U[..., 1], U[..., 0]), lambda angle: angle / (2 * torch.pi) + 0.5)


SIGNS, SIGNED, P = [*product((-1, 1), repeat=2)], torch.tensor([[1.0, -1.0]]).expand(20_000, 2), (0.5, 0.3, 0.2)
test_draws_follow_their_laws = laws(
    (lambda g: quarters(2**0.5 * embeddings(2, 2, runs=(20_000,), generator=g)), product(range(4), repeat=4)),
    (angles, product(range(4), repeat=2)),
    (
        lambda g: tokens(torch.tensor(P), 2, runs=20_000, generator=g),
        {(i, j): P[i] * P[j] for i, j in product(range(3), repeat=2)},
    ),
    (lambda g: sign_patterns(20_000, 2, generator=g), SIGNS),
    (lambda g: flipped(SIGNED, 0.2, generator=g), {(a, b): 4.0 ** ((a == 1) + (b == -1)) for a, b in SIGNS}),
)


def test_no_noise_flips_nothing():
    X = sign_patterns(20, 30, generator=5)
    assert torch.equal(flipped(X, 0.0), X)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: embeddings(0, 4), "n = 0: must be at least 1"),
    (lambda: embeddings(4, 0), "d = 0: must be at least 1"),
    (lambda: zipf(0, 2.0), "N = 0"),
    (lambda: zipf(10, 1.0), "alpha = 1.0: must be above 1"),
    (lambda: zipf(10, float("nan")), "alpha = nan"),
    (lambda: tokens(zipf(5, 2.0), 0), "n = 0"),
    (lambda: tokens(zipf(5, 2.0), 3, runs=0), "runs = 0"),
    (lambda: tokens(torch.tensor([0.5, 0.6]), 3), "sum to 1, not to 1.1"),
    (lambda: tokens(torch.tensor([1.5, -0.5]), 3), "p: probabilities"),
    (lambda: sign_patterns(3, 0), "d = 0"),
    (lambda: flipped(sign_patterns(3, 3), 1.0), "share = 1.0"),
    (lambda: flipped(sign_patterns(3, 3), -0.1), "share = -0.1"),
)
