"""Intervals of shares: those of scipy and of a printed example, and they hold the truth as often as they say."""

import numpy as np
import pytest
from scipy.stats import binomtest

from companion.lesson.intervals import hoeffding, least_ahead, points, points_ahead, ratio, share_of_lead, wilson


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (384, 384), (1, 2000)])
def test_wilsons_is_scipys(hits, trials):
    expected = binomtest(hits, trials).proportion_ci(method="wilson")
    assert wilson(hits / trials, trials) == pytest.approx(tuple(expected), abs=1e-4)
    assert points(hits / trials, trials)["interval"] == pytest.approx([100 * end for end in expected], abs=0.01)


def test_newcombes_is_the_printed_one():
    """Newcombe (1998), table II, method 10: 9 of 10 less 3 of 10."""
    found = points_ahead(0.9, 0.3, 10)
    assert found["ours"] == pytest.approx([60])
    assert found["interval"] == pytest.approx([17.05, 80.90], abs=0.01)
    assert least_ahead([0.9, 0.5], [0.3, 0.4], 10) == points_ahead(0.5, 0.4, 10)


def test_the_share_of_a_lead_is_one_where_both_lead_alike_and_none_at_chance():
    assert share_of_lead(0.6, 0.6, 0.2, 100)["ours"] == pytest.approx([1])
    assert share_of_lead(0.2, 0.6, 0.2, 100)["ours"] == pytest.approx([0])
    low, high = ratio(0.4, 0.6, 100)["interval"]
    expected = [(low * 0.6 - 0.2) / 0.4, (high * 0.6 - 0.2) / 0.4]
    assert share_of_lead(0.4, 0.6, 0.2, 100)["interval"] == pytest.approx(expected)


def test_the_others_hold_the_truth_as_often_as_they_say():
    random = np.random.default_rng(0)
    ratios, means = [], []
    for _ in range(400):
        one, other = (random.binomial(500, share) / 500 for share in (0.6, 0.4))
        low, high = ratio(one, other, 500)["interval"]
        ratios.append(low < 1.5 < high)
        low, high = hoeffding(random.uniform(-1, 1, 100).mean(), 2, 100)["interval"]
        means.append(low < 0 < high)
    assert 0.92 < np.mean(ratios) < 0.98
    assert np.mean(means) > 0.95
