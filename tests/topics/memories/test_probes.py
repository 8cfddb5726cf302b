"""Capacity and power laws, against functions whose answer is known."""

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.stats import linregress, ttest_1samp

from companion.topics.memories.probes import (
    accuracy,
    capacity,
    entropy,
    interval,
    local_slopes,
    power_law,
    recalled_bits,
    two_power_laws,
    weighted_error,
)


@pytest.mark.parametrize("edge", [3, 17, 400, 12_345])
def test_capacity_is_where_the_accuracy_gives_out(edge):
    calls = []

    def measure(N):
        calls.append(N)
        return 0.95 if edge >= N else 0.85

    found = capacity(measure, ratio=1.02)
    assert edge / 1.02 - 1 <= found <= edge
    assert len(calls) < 30


def test_nothing_is_tried_above_the_most():
    seen = []
    assert 95 <= capacity(lambda N: seen.append(N) or 1.0, most=100) <= 100
    assert max(seen) <= 100


def test_the_slope_is_that_of_least_squares_and_its_interval_covers():
    random, x = np.random.default_rng(0), [10, 20, 40, 80, 160]
    covered = 0
    for _ in range(200):
        ys = [[3 * w**1.7 * np.exp(0.2 * random.standard_normal()) for _ in range(8)] for w in x]
        law = power_law(x, ys)
        covered += law.low <= 1.7 <= law.high
    assert law.slope == pytest.approx(linregress(np.log(x), [np.log(y).mean() for y in ys]).slope)
    assert 180 <= covered <= 199  # 95 % of 200, give or take three standard deviations
    assert str(power_law([1, 10], [[2.0, 2.0], [20.0, 20.0]])) == "1.00 [1.00, 1.00]"


def test_the_interval_is_students():
    values = [0.3, 0.9, 0.4, 0.7, 0.2]
    expected = ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval(values) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("in_n", "in_d"), [(0.2, 0.25), (0.5, 1.0), (0.67, 2.0)])
def test_two_power_laws_are_told_apart_whichever_limits_more(in_n, in_d):
    n, d = [*(10**k for k in range(1, 7)), *[10**6] * 4], [*[1024] * 6, 64, 128, 256, 512]
    y = np.maximum(0.9 * np.power(n, -in_n), 8.0**in_d * np.power(d, -in_d))
    law = two_power_laws(n, d, y.tolist())
    assert law == pytest.approx((in_n, in_d, 1), rel=1e-3)
    assert two_power_laws(n, d, [*y[:5], 30 * y[5], *y[6:]]).off > 2  # one that the law does not hold for


def test_local_slopes_show_a_bend():
    assert local_slopes([1, 2, 4], [[1.0], [4.0], [8.0]]) == pytest.approx([2, 1])


def test_bits_are_those_of_a_noisy_channel():
    assert recalled_bits(10, 8, 1.0) == pytest.approx(30)
    assert recalled_bits(10, 8, 1 / 8) == pytest.approx(0)  # guessing gives nothing
    assert recalled_bits(5, 2, 0.9) == pytest.approx(5 * (1 - entropy(0.1)))
    joint = np.full((4, 4), 0.3 / 3 / 4) + np.eye(4) * (0.7 - 0.1) / 4
    mutual = (joint * np.log2(joint / (1 / 16))).sum()
    assert recalled_bits(1, 4, 0.7) == pytest.approx(mutual)
    assert entropy(0.0) == entropy(1.0) == 0


def test_accuracy_and_error_count_the_best_answer():
    logits = torch.tensor([[[3.0, 1], [0, 2], [5, 4]], [[0, 1], [0, 2], [5, 6]]])
    answers = torch.tensor([0, 1, 1])
    assert accuracy(logits, answers) == pytest.approx(4 / 6)
    p = torch.tensor([0.5, 0.3, 0.2])
    torch.testing.assert_close(weighted_error(logits, answers, p), torch.tensor([0.2, 0.5]))


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: capacity(lambda N: 1.0, level=1.0), "level = 1.0"),
    (lambda: capacity(lambda N: 1.0, start=0), "start = 0"),
    (lambda: capacity(lambda N: 1.0, start=9, most=8), "start = 9: must be at least 1 and at most 8"),
    (lambda: capacity(lambda N: 1.0, ratio=1.0), "ratio = 1.0"),
    (lambda: capacity(lambda N: 0.3), "start = 2: the accuracy 0.3 is below level = 0.9"),
    (lambda: power_law([1], [[2.0]]), "x and ys: have 1 and 1 entries"),
    (lambda: power_law([1, 2], [[2.0]]), "x and ys: have 2 and 1 entries"),
    (lambda: power_law([1, 2], [[2.0], [0.0]]), "above 0"),
    (lambda: power_law([0, 2], [[2.0], [1.0]]), "above 0"),
)
