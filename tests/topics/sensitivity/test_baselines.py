"""Formulas agree with counting, and the best answer under noise with sums of odds."""

import pytest
import torch
from hypothesis.strategies import integers, lists
from laws import holds
from refusals import refusals

from companion.topics.sensitivity.baselines import FORMULAS, best_under_noise, sensitivity_of
from companion.topics.sensitivity.data import Sparse, cube, truth_table


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("k", [1, 3, 5])
def test_formulas_agree_with_counting(kind, k):
    n = 6
    table = torch.zeros(2**k).long() if kind == "constant" else truth_table(kind, k)
    values, bits = Sparse(table, torch.arange(k)), cube(n)
    flips = [(values(bits) != values(bits ^ torch.eye(n).long()[i])).double().mean() for i in range(n)]
    assert sensitivity_of(kind, k, n) == pytest.approx(sum(flips).item() / n, abs=1e-12)


@holds(table=lists(integers(0, 1), min_size=8, max_size=8), tenths=integers(0, 10))
def test_the_best_answer_under_noise_is_right_most_often(table, tenths):
    for seen, best in enumerate(best_under_noise(torch.tensor(table), tenths / 10).tolist()):
        odds = [0, 0]
        for clean, value in enumerate(table):
            apart = (seen ^ clean).bit_count()
            odds[value] += tenths**apart * (10 - tenths) ** (3 - apart)
        assert best == (odds[1] > odds[0]) or (odds[0] == odds[1] and tenths != 5)  # other ties are rounded


def test_no_noise_and_full_noise():
    table = truth_table("random", 4, generator=6)
    assert torch.equal(best_under_noise(table, 0.0), table)
    assert torch.equal(best_under_noise(table, 1.0), table.flip(0)), "all bits turned: the value at the complement"


test_bad_arguments_are_named = refusals(
    (lambda: sensitivity_of("xor", 1, 1), "kind = 'xor'"),
    (lambda: sensitivity_of("majority", 4, 5), "k = 4: must be odd"),
    (lambda: sensitivity_of("parity", 4, 3), "n = 3: must be at least 4"),
)
