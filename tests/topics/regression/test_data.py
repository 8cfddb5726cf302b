"""Prompts are drawn from the distributions that they should come from; tolerances are multiples of standard errors."""

import itertools
import math

import pytest
import torch
from laws import laws, quarters
from refusals import refusals
from scipy import stats

from companion.topics.regression.data import SHIFTS, prompts, prompts_with_spectrum, shifted_prompts

FIVE_SIGMA = 5.0


def within_standard_errors(estimate, expected, standard_error):
    return ((estimate - expected).abs() < FIVE_SIGMA * standard_error).all()


def signs(generator):
    """Of two examples and the query of a prompt whose examples lie in one orthant."""
    return shifted_prompts("other orthant", 20_000, 2, 2, generator=generator).xs.sign()


def numbers(generator):
    """Two inputs of one dimension, the weight, and the noise of both labels, in quarters of their laws."""
    xs, ys, ws = prompts(20_000, 2, 1, noise=0.3, generator=generator)
    return quarters(torch.cat([xs[..., 0], ws, (ys - xs[..., 0] * ws) / 0.3], 1))


SIGNS = [*itertools.product((-1, 1), repeat=2)]
test_draws_follow_their_laws = laws(
    (numbers, itertools.product(range(4), repeat=5)),
    (
        lambda g: quarters(
            torch.cat([(p := prompts_with_spectrum(9000, 3, torch.ones(1), generator=g)).xs[:, -1], p.ws], 1)
        ),
        itertools.product(range(4), repeat=2),
    ),
    (signs, [(*examples, *examples, *query) for examples in SIGNS for query in SIGNS]),
)


@pytest.mark.parametrize("d", [1, 4])
def test_isotropic_inputs_and_weights_are_standard_normal(d):
    drawn = prompts(batch=3000, n=6, d=d, dtype=torch.float64)
    for values in (drawn.xs.reshape(-1, d), drawn.ws):
        count = len(values)
        assert within_standard_errors(values.mean(0), 0, count**-0.5)
        # an entry of a sample covariance has variance (1 + [i = j]) / count
        assert within_standard_errors(values.mT @ values / count, torch.eye(d), ((1 + torch.eye(d)) / count).sqrt())
        assert stats.kstest(values.flatten().numpy(), "norm").pvalue > 1e-3


@pytest.mark.parametrize("d", [2, 5, 6])
@pytest.mark.parametrize("kappa", [4, 100])
def test_half_of_the_eigenvalues_rounded_down_are_kappa_and_the_rest_one(d, kappa):
    n = 20_000
    xs = prompts(batch=4, n=n, d=d, kappa=kappa, dtype=torch.float64).xs
    eigenvalues = torch.linalg.eigvalsh(xs.mT @ xs / n)  # ascending
    expected = torch.tensor([1.0] * (d - d // 2) + [kappa] * (d // 2), dtype=torch.float64)
    # a sample eigenvalue spreads by about sqrt(2 / n) of itself, and repeated ones repel by sqrt(d / n)
    assert within_standard_errors(eigenvalues / expected, 1, math.sqrt((2 + d) / n))


def test_every_sequence_has_a_fresh_basis_and_no_direction_is_preferred():
    d, batch = 4, 600
    xs = prompts(batch=batch, n=200, d=d, kappa=100, dtype=torch.float64).xs
    _, vectors = torch.linalg.eigh(xs.mT @ xs)
    large = vectors[..., d // 2 :]
    projections = large @ large.mT  # (batch, d, d), of rank d / 2
    overlap = (projections[:-1] * projections[1:]).sum((-2, -1)) / (d // 2)  # 1 if neighbours shared their basis
    assert overlap.mean() < 0.6
    assert overlap.max() < 0.9999
    # averaged over a uniform basis, a projection of rank d / 2 is half the identity; its entries lie in [-1, 1]
    assert within_standard_errors(projections.mean(0), torch.eye(d) / 2, batch**-0.5)


@pytest.mark.parametrize("kappa", [1, 30])
def test_without_noise_labels_are_exactly_linear(kappa):
    drawn = prompts(batch=5, n=9, d=6, kappa=kappa, dtype=torch.float64)
    by_hand = torch.zeros_like(drawn.ys)
    for sequence, example, i in itertools.product(range(5), range(9), range(6)):
        by_hand[sequence, example] += drawn.xs[sequence, example, i] * drawn.ws[sequence, i]
    torch.testing.assert_close(drawn.ys, by_hand, rtol=1e-13, atol=1e-13)


def test_noise_is_normal_of_the_stated_size_and_touches_labels_alone():
    clean = prompts(batch=500, n=40, d=3, dtype=torch.float64)
    noisy = prompts(batch=500, n=40, d=3, noise=0.3, dtype=torch.float64)
    assert torch.equal(clean.xs, noisy.xs)
    assert torch.equal(clean.ws, noisy.ws)
    assert stats.kstest(((noisy.ys - clean.ys) / 0.3).flatten().numpy(), "norm").pvalue > 1e-3


def test_a_generator_is_the_same_as_its_seed_and_moves_on():
    generator = torch.Generator().manual_seed(7)
    first, second = (prompts(4, 5, 3, generator=generator) for _ in range(2))
    assert torch.equal(first.xs, prompts(4, 5, 3, generator=7).xs)
    assert not torch.equal(first.xs, second.xs)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    prompts(4, 5, 3, kappa=10, noise=0.1)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_as_asked(dtype):
    assert {tensor.dtype for tensor in prompts(2, 3, 4, kappa=2, noise=0.1, dtype=dtype)} == {dtype}


test_a_wrong_argument_is_named_with_its_value = refusals(
    ({"batch": 0}, "batch = 0"),
    ({"n": 1}, "n = 1"),
    ({"d": 0}, "d = 0"),
    ({"d": -3}, "d = -3"),
    ({"kappa": 0.5}, "kappa = 0.5"),
    ({"kappa": math.nan}, "kappa = nan"),
    ({"kappa": math.inf}, "kappa = inf"),
    ({"noise": -0.1}, "noise = -0.1"),
    ({"noise": math.nan}, "noise = nan"),
    ({"noise": math.inf}, "noise = inf"),
    ({"kappa": 2.0, "d": 1}, "kappa = 2.0 with d = 1"),
    of=lambda wrong: prompts(**{"batch": 2, "n": 3, "d": 4} | wrong),
)


def test_a_spectrum_is_the_one_that_was_asked_for():
    eigenvalues = torch.tensor([2.0, 2.0, 7.0])
    drawn = prompts_with_spectrum(4, 9, eigenvalues, generator=3)
    assert (drawn.xs.shape, drawn.ys.shape, drawn.ws.shape) == ((4, 9, 3), (4, 9), (4, 3))
    found = torch.linalg.eigvalsh(drawn.xs[:, :-1].mT @ drawn.xs[:, :-1])
    torch.testing.assert_close(found, eigenvalues.expand(4, 3), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(drawn.ys, torch.einsum("bnd,bd->bn", drawn.xs, drawn.ws), rtol=1e-5, atol=1e-5)


def test_bases_of_a_spectrum_are_drawn_anew():
    drawn = prompts_with_spectrum(3000, 5, torch.tensor([1.0, 9.0]), generator=0)
    basis = torch.linalg.eigh(drawn.xs[:, :-1].mT @ drawn.xs[:, :-1]).eigenvectors[:, :, 1]
    # the square of a coordinate of a uniform direction in the plane has mean 1/2 and variance 1/8
    assert within_standard_errors(basis.square().mean(0), 0.5, (1 / 8 / 3000) ** 0.5)


test_a_spectrum_that_no_prompt_can_have_is_refused = refusals(
    *(
        ((n, values), "must be at least one eigenvalue, none negative, and n above their number")
        for n, values in ((3, [1.0, 2.0, 3.0]), (5, [1.0, -1.0]), (5, []))
    ),
    of=lambda wrong: prompts_with_spectrum(2, wrong[0], torch.tensor(wrong[1])),
)


@pytest.mark.parametrize("shift", SHIFTS)
def test_shifted_prompts_are_linear_in_their_weights(shift):
    drawn = shifted_prompts(shift, 3, 2, 4, generator=1)
    assert drawn.xs.shape == (3, 3, 4)
    assert torch.equal(drawn.ys, torch.einsum("bnd,bd->bn", drawn.xs, drawn.ws))


def test_each_shift_changes_what_it_says():
    plain, far, heavy = (shifted_prompts(f, 400, 6, 4) for f in ("as trained", "inputs times 3", "weights times 1/2"))
    assert torch.allclose(far.xs, 3 * plain.xs) and torch.equal(far.ws, plain.ws)
    assert torch.equal(heavy.xs, plain.xs) and torch.allclose(heavy.ws, plain.ws / 2)

    half = shifted_prompts("half the dimensions", 400, 6, 4).xs
    assert (torch.linalg.matrix_rank(half, tol=1e-4) == 2).all()
    assert half.square().sum(-1).mean() == pytest.approx(4, rel=0.1)

    few = shifted_prompts("query orthogonal", 400, 2, 4).xs
    assert (few[:, :-1] @ few[:, -1:].mT).abs().max() < 1e-4
    assert torch.allclose(few[:, -1].norm(dim=-1), torch.tensor(2.0))

    again = shifted_prompts("query an example", 400, 2, 4).xs
    assert torch.equal(again[:, -1], again[:, 0])


test_an_unknown_shift_is_refused = refusals(
    (lambda: shifted_prompts("elsewhere", 2, 3, 2), "shift = 'elsewhere': must be one of as trained, ")
)
