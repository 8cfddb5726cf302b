"""The table without limits, against sampling; the nearest stored vector, against a loop."""

import numpy as np
import pytest
import torch

from companion.topics.memories.baselines import nearest, unseen_mass
from companion.topics.memories.data import embeddings, tokens, zipf


def test_the_unseen_mass_is_what_samples_leave_out():
    p = zipf(200, 1.7)
    left = []
    for row in tokens(p, 60, runs=2000, generator=3):
        seen = torch.zeros(200, dtype=torch.bool)
        seen[row] = True
        left.append(p[~seen].sum().item())
    assert np.mean(left) == pytest.approx(unseen_mass(p, 60).item(), abs=4 * np.std(left) / 2000**0.5)
    assert unseen_mass(p, 0).item() == pytest.approx(1)


@pytest.mark.parametrize("alpha", [1.4, 1.8, 2.5])
def test_the_exponent_of_the_data(alpha):
    p, ns = zipf(1_000_000, alpha), [100, 1000, 10_000]
    slope = np.polyfit(np.log(ns), np.log([unseen_mass(p, n).item() for n in ns]), 1)[0]
    assert slope == pytest.approx(-(alpha - 1) / alpha, abs=0.03)


def test_the_nearest_vector_is_found():
    V, x = embeddings(700, 9, generator=1), embeddings(600, 9, generator=2)
    assert nearest(V, x).tolist() == [max(range(700), key=lambda k, row=row: row[k]) for row in (x @ V.mT).tolist()]


def test_a_negative_number_of_samples_is_refused():
    with pytest.raises(ValueError, match="n = -1: must be at least 0"):
        unseen_mass(zipf(5, 2.0), -1)
