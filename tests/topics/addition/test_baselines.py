"""Embeddings from company, against a loop and NumPy's eigenvectors; cosines, against NumPy; the scale."""

import math

import numpy as np
import pytest
import torch
from refusals import refusals

from companion.topics.addition.baselines import PERIODS, fourier_embeddings, narrowed, ppmi_embeddings, with_rms
from companion.topics.addition.data import cooccurrences, counting

COUNTS = cooccurrences(counting(60, 30, steps={1: 0.5, 3: 0.5}, terms=5, generator=1), 30)


def information(counts: np.ndarray) -> np.ndarray:
    """PPMI by its definition, entry by entry."""
    found, total = np.zeros_like(counts), counts.sum()
    for i, j in zip(*counts.nonzero(), strict=True):
        joint, chance = counts[i, j] / total, counts[i].sum() / total * counts[:, j].sum() / total
        found[i, j] = max(0.0, math.log(joint / chance))
    return found


@pytest.mark.parametrize("width", [1, 7, 30])
def test_company_is_factored(width):
    sizes, vectors = np.linalg.eigh(information(COUNTS.numpy()))
    largest = np.argsort(-np.abs(sizes))[:width]
    expected = (vectors[:, largest] * np.abs(sizes[largest])) @ vectors[:, largest].T
    found = ppmi_embeddings(COUNTS, width)
    assert found.shape == (30, width)
    np.testing.assert_allclose((found @ found.mT).numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("power", [0.5, 0.75, 1.0, 0.0])
def test_columns_are_orthogonal_and_the_strongest_come_first(power):
    found = ppmi_embeddings(COUNTS, 12, power=power)
    gram = found.mT @ found
    sizes = np.linalg.svd(information(COUNTS.numpy()), compute_uv=False)[:12]
    np.testing.assert_allclose(gram.numpy(), np.diag(sizes ** (2 * power)), atol=1e-9)


def test_a_number_that_never_occurs_has_no_embedding():
    counts = COUNTS.clone()
    counts[4] = counts[:, 4] = 0
    found = ppmi_embeddings(counts, 8)
    assert found.isfinite().all()
    assert found[4].abs().max() < 1e-9 < found[5].abs().max()


def test_cosines_and_sines_of_five_periods():
    found = fourier_embeddings(120, 16)
    for n in (0, 1, 37, 119):
        expected = [wave(2 * np.pi * n / period) for wave in (np.cos, np.sin) for period in PERIODS]
        np.testing.assert_allclose(found[n], [*expected, *[0.0] * 6], atol=1e-12)


def test_the_periods_may_be_others():
    found = fourier_embeddings(8, 2, periods=(4.0,))
    np.testing.assert_allclose(found[:4], [[1, 0], [0, 1], [-1, 0], [0, -1]], atol=1e-12)
    torch.testing.assert_close(found[4:], found[:4])


def test_the_root_mean_square_is_set_and_nothing_else():
    table = torch.randn(9, 5, dtype=torch.float64)
    scaled = with_rms(table, 0.3)
    assert np.sqrt((scaled.numpy() ** 2).mean()) == pytest.approx(0.3)
    torch.testing.assert_close(scaled / scaled[0, 0], table / table[0, 0])


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: ppmi_embeddings(COUNTS, 0), "width = 0: must be 1 to 30"),
    (lambda: ppmi_embeddings(COUNTS, 31), "width = 31: must be 1 to 30"),
    (lambda: ppmi_embeddings(COUNTS, 5, power=-0.5), "power = -0.5: must be at least 0"),
    (lambda: ppmi_embeddings(COUNTS, 5, power=math.nan), "power = nan"),
    (lambda: fourier_embeddings(0, 10), "numbers = 0: must be at least 1"),
    (lambda: fourier_embeddings(5, 9), "width = 9: must be at least 10"),
    (lambda: with_rms(torch.ones(2, 2), 0.0), "rms = 0.0: must be positive"),
    (lambda: with_rms(torch.ones(2, 2), math.nan), "rms = nan"),
)


def test_narrowed_embeddings_keep_what_the_width_has_room_for():
    given = torch.randn(30, 12, dtype=torch.float64) * torch.logspace(0, -2, 12)
    for width in (12, 20):
        kept = narrowed(given, width)
        assert kept.shape == (30, width)
        torch.testing.assert_close(kept @ kept.mT, given @ given.mT)
    U, S, _ = np.linalg.svd(given.numpy())
    best = (U[:, :5] * S[:5] ** 2) @ U[:, :5].T
    np.testing.assert_allclose(narrowed(given, 5) @ narrowed(given, 5).mT, best, atol=1e-9)
    with pytest.raises(ValueError, match="width = 0: must be at least 1"):
        narrowed(given, 0)
