"""Sums without a leak between training and testing; lines that count; company, by a double loop."""

from collections import Counter
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
import torch
from laws import drawn, laws
from refusals import refusals

from companion.topics.addition.data import (
    batch_of,
    cooccurrences,
    counting,
    embedded_numbers,
    embedded_rows,
    sums,
)


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


def on_training(generator):
    """Which unordered pairs of 0, 1, 2 are drawn for training."""
    return tuple(sorted({tuple(sorted(pair)) for pair in pairs(sums(3, share=0.33, generator=generator)[0])}))


UNORDERED, (TRAINING, _) = [*combinations_with_replacement(range(3), 2)], sums(4, share=0.5)
test_draws_follow_their_laws = laws(
    (drawn(1000, on_training), combinations(UNORDERED, 2)),
    (lambda g: batch_of(TRAINING, 20_000, g).operands, pairs(TRAINING)),
    (
        lambda g: counting(20_000, 8, steps={1: 0.7, 3: 0.3}, terms=3, generator=g),
        {(a, a + s, a + 2 * s): p / (8 - 2 * s) for s, p in ((1, 0.7), (3, 0.3)) for a in range(8 - 2 * s)},
    ),
)


def test_the_longest_line_just_fits():
    assert counting(3, 111, steps={10: 1.0})[:, [0, -1]].tolist() == [[0, 110]] * 3


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


@pytest.mark.parametrize(("name", "shape"), [("glove", (1000, 50)), ("minilm", (342, 384))])
def test_vectors_of_others_are_those_of_the_numbers_in_their_order(name, shape):
    table, rows = embedded_numbers(name), embedded_rows(name)
    assert table.shape == shape and table.dtype == torch.float32
    assert len(rows.unique()) == len(rows) == len(table)
    apart = torch.stack([(table[step:] - table[:-step]).norm(dim=1).median() for step in (10, 67, 201)])
    assert apart.argsort().tolist() == [0, 1, 2], "what is near in number is near in the table"


def test_frequent_numbers_have_early_rows():
    rows = embedded_rows("glove")
    assert rows[[1, 10, 100]].max() < rows[[417, 783, 961]].min(), "round ones are written more often"


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: sums(1), "numbers = 1: must be at least 2"),
    (lambda: sums(5, share=0.0), "share = 0.0"),
    (lambda: sums(5, share=1.0), "share = 1.0: of 15 pairs, must leave at least one in and one out of training"),
    (lambda: sums(5, share=0.99), "share = 0.99"),
    (lambda: embedded_numbers("gpt2"), "name = 'gpt2': must be one of glove, minilm"),
    (lambda: counting(0, 200), "sequences = 0: must be at least 1"),
    (lambda: counting(2, 200, terms=1), "terms = 1: must be at least 2"),
    (lambda: counting(2, 110), r"numbers = 110: must be above \(terms - 1\) \* 10 = 110"),
)
