"""Streams have Zipf's law and no favourites, and counts are counts."""

from collections import Counter

import pytest
import torch
from scipy.stats import chisquare

from companion.samplers.structures import counts, zipf_streams

# --- Streams of items


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.7])
def test_ranks_follow_zipf_s_law(exponent):
    items, length, streams = 12, 4000, 20
    observed = counts(zipf_streams(streams, length, items, exponent=exponent, generator=1), items)
    law = torch.arange(1, items + 1, dtype=torch.float64) ** -exponent
    expected = (streams * length * law / law.sum()).numpy()
    if exponent == 0:  # no ranks to sort by: all items alike, in any order
        assert chisquare(observed.sum(0).double().numpy(), expected).pvalue > 1e-3
    else:  # so long a stream that the popular come in their order; the tail, where neighbours change places, is one class
        by_rank = observed.sort(descending=True).values.sum(0).double().numpy()
        assert chisquare([*by_rank[:4], by_rank[4:].sum()], [*expected[:4], expected[4:].sum()]).pvalue > 1e-3


def test_every_item_is_as_often_the_most_popular():
    first = counts(zipf_streams(4000, 60, 8, exponent=2.0, generator=2), 8).argmax(1).bincount(minlength=8)
    assert chisquare(first.numpy()).pvalue > 1e-3


def test_arrivals_do_not_depend_on_those_before():
    stream = zipf_streams(20_000, 2, 5, generator=3)
    law = 1 / torch.arange(1, 6, dtype=torch.float64)
    law /= law.sum()
    assert (stream[:, 0] == stream[:, 1]).double().mean().item() == pytest.approx(law.square().sum().item(), abs=0.015)


def test_counts_are_counter_s():
    stream = zipf_streams(5, 30, 10, generator=4)
    for row, counted in zip(stream.tolist(), counts(stream, 10).tolist(), strict=True):
        assert counted == [Counter(row)[item] for item in range(10)]


def test_a_seed_is_a_stream():
    assert torch.equal(zipf_streams(3, 9, 7, generator=5), zipf_streams(3, 9, 7, generator=torch.Generator().manual_seed(5)))
    assert not torch.equal(zipf_streams(3, 9, 7, generator=5), zipf_streams(3, 9, 7, generator=6))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 0}, "batch = 0: must be at least 1"),
        ({"length": 0}, "length = 0: must be at least 1"),
        ({"items": -2}, "items = -2: must be at least 1"),
        ({"exponent": -0.5}, "exponent = -0.5: must be at least 0"),
    ],
)
def test_bad_streams_are_named_with_their_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        zipf_streams(**{"batch": 2, "length": 3, "items": 4, "generator": 0} | arguments)
