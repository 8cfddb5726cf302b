"""Memories from explicit weights, each against a loop, autograd, numpy or torch's own; and what the lesson says that
they show.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from refusals import refusals

from companion.topics.memories.by_hand import (
    dense_update,
    gradient,
    hermite,
    mlp_logits,
    random_factors,
    read,
    softmax_update,
    write,
)
from companion.topics.memories.data import embeddings, flipped, sign_patterns
from companion.topics.memories.probes import accuracy


def double(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_memory_is_a_sum_of_outer_products_read_by_inner_products():
    U, V, q = double(6, 5, seed=1), double(4, 5, seed=2), double(6, seed=3)
    answers = torch.tensor([0, 3, 3, 1, 0, 2])
    W = sum(q[z] * torch.outer(V[answers[z]], U[z]) for z in range(6))
    torch.testing.assert_close(write(U, V, answers, q), W)
    logits = read(W, U, V)
    assert all(logits[z, k].item() == pytest.approx((V[k] @ W @ U[z]).item()) for z in range(6) for k in range(4))


def test_runs_in_front_are_independent_memories():
    U, V, answers = double(3, 6, 5, seed=1), double(3, 6, 5, seed=2), torch.arange(6)
    W = write(U, V, answers)
    for run in range(3):
        torch.testing.assert_close(W[run], write(U[run], V[run], answers))
        torch.testing.assert_close(read(W, U, V)[run], read(W[run], U[run], V[run]))


@pytest.mark.parametrize(("n", "m", "d"), [(7, 3, 4), (20, 20, 9), (5, 30, 16)])
def test_gradients_are_memories(n, m, d):
    W, U, V = double(d, d, seed=n), double(n, d, seed=m), double(m, d, seed=d)
    p = double(n * m, seed=1).softmax(0).view(n, m)
    W.requires_grad_()
    loss = -(p * (U @ W.mT @ V.mT).log_softmax(1)).sum()
    (expected,) = torch.autograd.grad(loss, W)
    assert (gradient(W.detach(), U, V, p) - expected).abs().max() < 1e-13


@pytest.mark.parametrize("seed", [11, 12])
def test_one_step_from_zero_gives_two_levels(seed):
    N, d = 60, 500
    U, V = torch.linalg.qr(double(d, N, seed=seed)).Q.mT, torch.linalg.qr(double(d, N, seed=seed + 50)).Q.mT
    f = torch.randperm(N, generator=torch.Generator().manual_seed(seed))
    p = F.one_hot(f, N).double() / N
    logits = read(-N * gradient(torch.zeros(d, d, dtype=torch.float64), U, V, p), U, V)
    torch.testing.assert_close(logits, F.one_hot(f, N).double() - 1 / N)
    assert accuracy(logits, f) == 1


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_hermite_polynomials_are_numpys_and_orthonormal(degree):
    x = torch.linspace(-3, 3, 50, dtype=torch.float64)
    numpys = np.polynomial.hermite_e.hermeval(x.numpy(), [0] * degree + [1]) / np.sqrt(
        float(np.prod(range(1, degree + 1)))
    )
    assert np.abs(hermite(x, degree).numpy() - numpys).max() < 1e-12
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    values = [hermite(torch.from_numpy(nodes), k).numpy() for k in (degree, degree + 1)]
    assert weights @ values[0] ** 2 / weights.sum() == pytest.approx(1)
    assert abs(weights @ (values[0] * values[1]) / weights.sum()) < 1e-9


def test_the_mlp_is_a_sum_over_units_and_tends_to_a_kernel():
    U, V = embeddings(5, 4, unit=True, generator=1, dtype=torch.float64), double(6, 4, seed=2)
    answers = torch.tensor([0, 5, 2, 2, 1])
    width, generator = 200_000, torch.Generator().manual_seed(3)
    logits = mlp_logits(U, V, answers, width, 3, generator=generator)
    torch.testing.assert_close(logits, (U @ U.mT) ** 3 @ V[answers] @ V.mT, atol=0.2, rtol=0.05)
    w = torch.randn(30, 4, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    out = [sum(hermite(unit @ U[z], 2) * V[answers[z]] for z in range(5)) / 30 for unit in w]
    expected = torch.stack([sum(a * hermite(unit @ u, 2) for a, unit in zip(out, w, strict=True)) @ V.mT for u in U])
    torch.testing.assert_close(mlp_logits(U, V, answers, 30, 2, generator=torch.Generator().manual_seed(4)), expected)


def test_two_inputs_need_a_nonlinearity():
    S, d, width = 12, 64, 1024
    for seed in (5, 6):
        A, B = (embeddings(S, d, unit=True, generator=seed + k) for k in (0, 100))
        U = F.normalize((A[:, None] + B).flatten(0, 1), dim=1)
        V, answers = embeddings(S * S, d, unit=True, generator=seed + 200), torch.arange(S * S)
        scores = [
            accuracy(mlp_logits(U, V, answers, width, degree, generator=seed + 300), answers) for degree in (1, 3)
        ]
        assert scores[0] < 0.4
        assert scores[1] > 0.95


def test_a_low_rank_memory_is_near_the_full_one_when_the_rank_is_large():
    W = double(12, 12, seed=1)
    left, right = random_factors(W, 5, generator=2)
    assert left.shape == right.shape == (5, 12)
    assert torch.linalg.matrix_rank(left.mT @ right) == 5
    wide = embeddings(30, 400, generator=1), embeddings(30, 400, generator=2)
    full = write(*wide, torch.arange(30))
    left, right = random_factors(full, 400, generator=3)
    assert left.var().item() == pytest.approx(1 / 400, rel=0.05)
    assert accuracy(read(left.mT @ right, *wide), torch.arange(30)) == 1


@pytest.mark.parametrize("power", [2, 3, 4, 5])
def test_the_dense_update_is_the_loop_over_signs(power):
    X = sign_patterns(9, 7, generator=power)
    states = flipped(X[:4], 0.3, generator=1)
    expected = states.clone()
    for t, s in enumerate(states):
        for i in range(7):
            gap = 0.0
            for x in X:
                o = float(x @ s - x[i] * s[i])
                gap += (o + float(x[i])) ** power - (o - float(x[i])) ** power
            expected[t, i] = s[i] if gap == 0 else np.sign(gap)
    assert torch.equal(dense_update(X, states, power), expected)


def test_power_two_is_hopfields_network():
    X = sign_patterns(20, 101, generator=1)
    s = flipped(X[:5], 0.2, generator=2)
    couplings = X.mT @ X - 20 * torch.eye(101)
    field = s @ couplings
    assert torch.equal(dense_update(X, s, 2), torch.where(field == 0, s, field.sign()))


@pytest.mark.parametrize(("n", "d", "beta"), [(10, 6, 1.0), (300, 32, 0.25), (50, 8, 5.0)])
def test_softmax_retrieval_is_attention(n, d, beta):
    X, q = double(n, d, seed=n), double(7, d, seed=d)
    attention = F.scaled_dot_product_attention(q[None], X[None], X[None], scale=beta)[0]
    assert (softmax_update(X, q, beta) - attention).abs().max() < 1e-12


U, V = embeddings(3, 4, generator=0), embeddings(2, 4, generator=1)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: write(U, V, torch.tensor([0, 1, 2])), "answers: 2 is out of range; must be 0 to 1"),
    (lambda: write(U, V, torch.tensor([0, -1, 1])), "answers: -1 is out of range"),
    (lambda: mlp_logits(U, V, torch.tensor([0, 1, 5]), 8, 2), "answers: 5 is out of range"),
    (lambda: mlp_logits(U, V, torch.tensor([0, 1, 1]), 0, 2), "width = 0"),
    (lambda: mlp_logits(U, V, torch.tensor([0, 1, 1]), 8, 0), "degree = 0"),
    (
        lambda: gradient(torch.zeros(4, 4), U, V, torch.ones(3, 2)),
        "p: probabilities must be at least 0 and sum to 1, not to 6",
    ),
    (lambda: random_factors(torch.zeros(4, 4), 0), "rank = 0: must be at least 1 and at most 4"),
    (lambda: random_factors(torch.zeros(4, 4), 5), "rank = 5"),
    (lambda: dense_update(sign_patterns(3, 4), sign_patterns(1, 4), 1), "power = 1: must be at least 2"),
    (lambda: softmax_update(U, U, 0.0), "beta = 0.0: must be positive and finite"),
    (lambda: softmax_update(U, U, -1.0), "beta = -1.0"),
    (lambda: softmax_update(U, U, float("inf")), "beta = inf"),
)
