"""The Fourier basis against NumPy, spectra of planted waves, and filters against least squares."""

import numpy as np
import pytest
import torch
from refusals import refusals

from companion.topics.addition.fourier import (
    band_filter,
    basis,
    high_waves,
    longest_period,
    low_waves,
    peaks,
    periods,
    relative_spectrum,
    shuffled_level,
    spectrum,
)


def wave(n: int, k: int, shift: float = 0.0) -> np.ndarray:
    return np.cos(2 * np.pi * k * np.arange(n) / longest_period(n) - shift)


@pytest.mark.parametrize(("n", "P"), [(2, 20), (20, 20), (21, 20), (22, 40), (199, 200), (521, 520)])
def test_the_longest_period_is_a_multiple_of_20(n, P):
    assert longest_period(n) == P
    found = periods(n).tolist()
    assert found == pytest.approx([P / k for k in range(1, P // 2 + 1)])
    assert {2.0, 2.5, 5.0, 10.0} <= set(found)


@pytest.mark.parametrize("n", [2, 21, 61, 199])
def test_rows_are_cosines_then_sines_of_length_1(n):
    half = longest_period(n) // 2
    expected = [wave(n, k) for k in range(half + 1)] + [
        wave(n, k, np.pi / 2) for k in range(1, half)
    ]  # sines of 0 and of period 2 vanish
    rows = basis(n)
    assert rows.shape == (longest_period(n), n)
    np.testing.assert_allclose(rows, [row / np.linalg.norm(row) for row in expected], atol=1e-9)


def test_a_part_of_the_waves_can_be_asked_for():
    every = basis(61)
    half = longest_period(61) // 2
    for waves in (range(3, 6), [3, 4, 5], torch.tensor([3, 4, 5])):
        torch.testing.assert_close(basis(61, waves), every[[3, 4, 5, half + 3, half + 4, half + 5]])
    assert basis(61, [0, half]).shape == (2, 61)


@pytest.mark.parametrize("n", [61, 199, 521])
def test_rows_are_nearly_orthogonal(n):
    rows = basis(n)
    assert 1e-6 < (rows @ rows.mT - torch.eye(len(rows))).abs().max() < 2.5 / n


@pytest.mark.parametrize("n", [61, 199])
@pytest.mark.parametrize("period", [2, 2.5, 5, 10])
def test_a_planted_wave_is_the_peak_of_the_spectrum(n, period):
    k = round(longest_period(n) / period)
    values = np.outer(wave(n, k), [1, 2, -1, 0]) + np.outer(wave(n, k, 0.7), [0, 1, 1, 3])
    found = spectrum(torch.tensor(values))
    assert len(found) == len(periods(n)) == longest_period(n) // 2
    assert periods(n)[found.argmax()] == period
    assert found[torch.arange(len(found)) != k - 1].max() < 0.1 * found.max()


def test_a_spectrum_is_a_norm_over_channels_and_both_rows():
    values = torch.randn(61, 3)
    found = spectrum(values)
    for k in range(1, 31):
        rows = [
            row / np.linalg.norm(row) for row in (wave(61, k), wave(61, k, np.pi / 2)) if np.linalg.norm(row) > 1e-6
        ]
        expected = np.sqrt(sum((row @ values.double().numpy()[:, c]) ** 2 for row in rows for c in range(3)))
        assert found[k - 1].item() == pytest.approx(expected * (2**0.5 if k == 30 else 1))


def test_noise_has_the_same_size_at_every_period():
    """Period 2 has one row where others have two."""
    noise = torch.randn(300, 199, generator=torch.Generator().manual_seed(0))
    squares = torch.stack([spectrum(row[:, None]).square() for row in noise]).mean(0)
    # the mean of 300 squares of one normal number scatters by sqrt(2 / 300)
    assert abs(squares[-1] / squares[:-1].mean() - 1) < 4 * (2 / 300) ** 0.5


def test_shuffled_rows_know_no_wave():
    x = torch.arange(199)[:, None]
    planted = 0.3 * (2 * torch.pi * x / 10).cos() @ torch.ones(1, 8) / 8**0.5
    noise = torch.randn(199, 8, generator=torch.Generator().manual_seed(0))
    level = shuffled_level(planted + noise, generator=1)
    assert level == shuffled_level(planted + noise, generator=1)
    assert 1 < level < relative_spectrum(3 * planted + noise).max()
    again = [
        relative_spectrum(noise[torch.randperm(199, generator=torch.Generator().manual_seed(s))]) for s in range(50)
    ]
    assert sum(bool(waves.max() > level) for waves in again) <= 10
    with pytest.raises(ValueError, match="shuffles = 5: must be at least 20"):
        shuffled_level(noise, shuffles=5)


def test_low_and_high_waves_are_all_of_them():
    for cut in (1, 7, 30):
        assert [*low_waves(61, cut), *high_waves(61, cut)] == list(range(31))
    assert list(low_waves(61, 1)) == [0]
    assert list(high_waves(61, 30)) == [30]


@pytest.mark.parametrize("waves", [range(4), range(20, 31), [6, 12, 30]])
def test_a_filter_leaves_the_nearest_stream_without_the_band(waves):
    unembedding, x = torch.randn(61, 40, dtype=torch.float64), torch.randn(5, 40, dtype=torch.float64)
    keep = band_filter(unembedding, waves)
    torch.testing.assert_close(keep @ keep, keep)
    torch.testing.assert_close(keep, keep.mT)
    left = x @ keep
    assert (basis(61, waves) @ unembedding @ left.mT).abs().max() < 1e-6 < left.abs().max()
    read = (basis(61, waves) @ unembedding).numpy()
    for row, stays in zip(x.numpy(), left, strict=True):
        removed = np.linalg.lstsq(read.T, row, rcond=None)[0] @ read  # the nearest point in the rows' span
        np.testing.assert_allclose(stays, row - removed, atol=1e-9)
    assert keep.trace().item() == pytest.approx(40 - np.linalg.matrix_rank(read))


def test_a_filter_has_the_type_of_the_unembedding():
    unembedding = torch.randn(61, 40)
    keep = band_filter(unembedding, range(5))
    assert keep.dtype == torch.float32
    assert (basis(61, range(5)) @ unembedding.double() @ keep.double()).abs().max() < 1e-5


def test_rows_that_depend_on_each_other_count_once():
    unembedding = torch.randn(61, 3, dtype=torch.float64) @ torch.randn(3, 12, dtype=torch.float64)
    keep = band_filter(unembedding, range(31))  # 60 rows, but the unembedding has rank 3
    assert keep.trace().item() == pytest.approx(9)
    assert (unembedding @ keep).abs().max() < 1e-9


@pytest.mark.parametrize(("size", "removed"), [(1e-6, 4), (1e-12, 4), (5e-14, 4), (1e-15, 3), (1e-17, 3)])
def test_a_direction_counts_down_to_the_rounding_of_the_largest(size, removed):
    """Four directions, one of them ``size`` as large as the others: it is removed unless it is rounding error, which
    is where NumPy's rank draws the line, too.
    """
    directions = torch.linalg.qr(torch.randn(12, 12, dtype=torch.float64))[0][:4]
    columns = torch.linalg.qr(basis(61, range(20)).mT)[0][:, :4]  # in the numbers' space, where the waves read
    unembedding = 1e-6 * columns * torch.tensor([5.0, 4.0, 3.0, 5.0 * size], dtype=torch.float64) @ directions
    keep = band_filter(unembedding, range(20))
    assert keep.trace().item() == pytest.approx(12 - removed)
    assert np.linalg.matrix_rank((basis(61, range(20)) @ unembedding).numpy()) == removed
    assert (keep @ directions[3]).norm().item() == pytest.approx(float(removed == 3), abs=0.05)


@pytest.mark.parametrize("width", [7, 4])
def test_a_width_without_room_is_refused(width):
    with pytest.raises(ValueError, match=f"width = {width}: must be above {width}, the number of directions"):
        band_filter(torch.randn(61, width), range(4))
    assert band_filter(torch.randn(61, 8), range(4)).trace().item() == pytest.approx(1, abs=1e-4)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: longest_period(1), "n = 1: must be at least 2"),
    (lambda: periods(0), "n = 0"),
    (lambda: basis(61, [3, 31]), "waves: 31 is out of range; must be 0 to 30"),
    (lambda: basis(61, [-1]), "waves: -1 is out of range"),
    (lambda: low_waves(61, 0), "cut = 0: must be 1 to 30"),
    (lambda: high_waves(61, 31), "cut = 31: must be 1 to 30"),
    (lambda: band_filter(torch.randn(61, 40), range(40)), "waves: 31 is out of range"),
)


def test_peaks_stand_out_where_a_wave_was_added_and_nowhere_else():
    n = 199
    sizes = torch.ones(100)
    sizes[longest_period(n) // 5 - 1] = 4  # the wave of period 5
    assert peaks(sizes, n) == [1, 4, 1, 1, 1]
    with pytest.raises(ValueError, match="sizes: has 100 entries; must have 260, one for each wave of 521 numbers"):
        peaks(sizes, 521)
