"""Sums without a leak between training and testing; lines that count; company, by a double loop."""

from collections import Counter

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.stats import chisquare

from companion.topics.addition.data import STEPS, batch_of, cooccurrences, counting, sums


def pairs(problems):
    return [tuple(pair) for pair in problems.operands.tolist()]


@pytest.mark.parametrize(("numbers", "share"), [(2, 0.5), (12, 0.8), (25, 0.3)])
def test_every_problem_is_there_once_and_no_answer_is_had_by_swapping(numbers, share):
    training, testing = sums(numbers, share=share, generator=4)
    both = Counter(pairs(training)) + Counter(pairs(testing))
    assert both == Counter((a, b) for a in range(numbers) for b in range(numbers))
    assert {tuple(sorted(pair)) for pair in pairs(training)}.isdisjoint(tuple(sorted(pair)) for pair in pairs(testing))
    for side in (training, testing):
        assert side.answers.tolist() == [a + b for a, b in pairs(side)]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_share_is_one_of_unordered_pairs(share):
    training, testing = sums(30, share=share)
    unordered = len({tuple(sorted(pair)) for pair in pairs(training)})
    assert unordered == round(share * 30 * 31 / 2)
    assert len(testing.answers) == 900 - len(training.answers)


def test_a_seed_is_a_split():
    first, again, other = (sums(20, generator=seed)[0].operands for seed in (3, 3, 4))
    drawn = sums(20, generator=torch.Generator().manual_seed(3))[0].operands
    assert torch.equal(first, again)
    assert torch.equal(first, drawn)
    assert set(map(tuple, first.tolist())) != set(map(tuple, other.tolist()))


def test_a_batch_is_of_the_problems_each_as_often():
    training, _ = sums(8)
    batch = batch_of(training, 20_000, torch.Generator().manual_seed(1))
    assert torch.equal(batch.operands.sum(1), batch.answers)
    often = Counter(pairs(batch))
    assert set(often) == set(pairs(training))
    assert chisquare(list(often.values())).pvalue > 1e-3


def test_lines_count_by_their_steps_as_often_as_told():
    lines = counting(20_000, 150, terms=9, generator=2)
    assert lines.shape == (20_000, 9)
    assert 0 <= lines.min() <= lines.max() < 150
    steps = np.diff(lines.numpy(), axis=1)
    assert (steps == steps[:, :1]).all()
    found = Counter(steps[:, 0].tolist())
    assert found.keys() == STEPS.keys()
    assert chisquare([found[step] for step in STEPS], [20_000 * share for share in STEPS.values()]).pvalue > 1e-3


@pytest.mark.parametrize("step", [1, 4])
def test_every_start_that_leaves_room_is_as_frequent(step):
    starts = counting(20_000, 60, steps={step: 1.0}, terms=6, generator=5)[:, 0]
    often = torch.bincount(starts)
    assert len(often) == 60 - 5 * step
    assert chisquare(often.numpy()).pvalue > 1e-3


def test_the_longest_line_just_fits():
    assert counting(3, 111, steps={10: 1.0})[:, [0, -1]].tolist() == [[0, 110]] * 3


def test_the_same_seed_gives_the_same_lines():
    first, again, other = (counting(50, 200, generator=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_company_is_counted_by_pairs():
    lines, expected = counting(40, 60, terms=5, generator=3), np.zeros((60, 60))
    for line in lines.tolist():
        for i, x in enumerate(line):
            for j, y in enumerate(line[i:], start=i):
                for pair in ((x, y), (y, x)):
                    expected[pair] += 1 - (j - i) / 5
    np.testing.assert_allclose(cooccurrences(lines, 60).numpy(), expected, atol=1e-12)


def test_a_number_that_comes_back_keeps_company_with_itself():
    assert cooccurrences(torch.tensor([[1, 0, 1]]), 3)[1, 1].item() == pytest.approx(2 * (1 + 1 + 1 / 3))


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: sums(1), "numbers = 1: must be at least 2"),
    (lambda: sums(5, share=0.0), "share = 0.0"),
    (lambda: sums(5, share=1.0), "share = 1.0: must leave problems on both sides, of 15 pairs"),
    (lambda: sums(5, share=0.99), "share = 0.99"),
    (lambda: counting(0, 200), "sequences = 0: must be at least 1"),
    (lambda: counting(2, 200, terms=1), "terms = 1: must be at least 2"),
    (lambda: counting(2, 110), r"numbers = 110: must be above \(terms - 1\) \* 10 = 110"),
)
