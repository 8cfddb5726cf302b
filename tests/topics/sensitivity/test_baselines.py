"""Formulas agree with counting, and the best answer under noise with simulation."""

import pytest
import torch
from refusals import refusals

from companion.topics.sensitivity.baselines import FORMULAS, best_under_noise, sensitivity_of
from companion.topics.sensitivity.data import Sparse, cube, strings, truth_table, turned


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("k", [1, 3, 5])
def test_formulas_agree_with_counting(kind, k):
    n = 6
    table = torch.zeros(2**k).long() if kind == "constant" else truth_table(kind, k)
    values, bits = Sparse(table, torch.arange(k)), cube(n)
    flips = [(values(bits) != values(bits ^ torch.eye(n).long()[i])).double().mean() for i in range(n)]
    assert sensitivity_of(kind, k, n) == pytest.approx(sum(flips).item() / n, abs=1e-12)


def test_the_best_answer_under_noise_is_right_most_often():
    table, p = truth_table("random", 4, generator=3), 0.3
    function, best = Sparse(table, torch.arange(4)), best_under_noise(table, p)
    clean = strings(60_000, 4, generator=4)
    seen = turned(clean, p, generator=5)
    for number in range(16):
        there = (seen << torch.arange(4)).sum(-1) == number
        share = function(clean)[there].double().mean().item()
        if abs(share - 0.5) > 0.02:
            assert best[number] == (share > 0.5)


def test_no_noise_and_full_noise():
    table = truth_table("random", 4, generator=6)
    assert torch.equal(best_under_noise(table, 0.0), table)
    assert torch.equal(best_under_noise(table, 1.0), table.flip(0)), "all bits turned: the value at the complement"


test_bad_arguments_are_named = refusals(
    (lambda: sensitivity_of("xor", 1, 1), "kind = 'xor'"),
    (lambda: sensitivity_of("majority", 4, 5), "k = 4: must be odd"),
    (lambda: sensitivity_of("parity", 4, 3), "n = 3: must be at least 4"),
)
