"""Sketches against loops over dicts, and against what theory says of their errors."""

from collections import Counter
from statistics import median

import pytest
import torch

from companion.topics.structures.baselines.sketches import count_min, count_sketch
from companion.topics.structures.data import zipf_streams

ITEMS = 50


def hashes(batch, rows, width, seed):
    """The same hash functions that the sketches draw: for each stream, row and item, a counter and a sign."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(width, (batch, rows, ITEMS), generator=generator)
    return places.tolist(), (2 * torch.randint(2, (batch, rows, ITEMS), generator=generator) - 1).tolist()


def streams(batch, length=200):
    return zipf_streams(batch, length, ITEMS, generator=batch)


def truth(stream):
    return torch.stack([row.bincount(minlength=ITEMS) for row in stream])


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_count_min_is_a_dict_for_each_row(rows, conservative):
    stream = streams(20)
    expected = []
    for items, places in zip(stream.tolist(), hashes(20, rows, 32 // rows, 3)[0], strict=True):
        counters = [Counter() for _ in range(rows)]
        for item in items:
            least = min(counter[place[item]] for counter, place in zip(counters, places, strict=True))
            for counter, place in zip(counters, places, strict=True):
                if not conservative or counter[place[item]] == least:
                    counter[place[item]] += 1
        expected.append(
            [
                min(counter[place[item]] for counter, place in zip(counters, places, strict=True))
                for item in range(ITEMS)
            ]
        )
    assert count_min(stream, ITEMS, 32, rows=rows, conservative=conservative, generator=3).tolist() == expected


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_count_sketch_is_a_signed_dict_for_each_row(rows):
    stream, memory = streams(20), 10 * rows
    expected = []
    for items, places, signs in zip(stream.tolist(), *hashes(20, rows, 10, 4), strict=True):
        counters = [Counter() for _ in range(rows)]
        for item in items:
            for counter, place, sign in zip(counters, places, signs, strict=True):
                counter[place[item]] += sign[item]
        expected.append(
            [
                median(s[item] * c[p[item]] for c, p, s in zip(counters, places, signs, strict=True))
                for item in range(ITEMS)
            ]
        )
    assert count_sketch(stream, ITEMS, memory, rows=rows, generator=4).tolist() == expected


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_count_min_never_says_too_little_and_the_conservative_one_never_more(rows):
    stream = streams(500)
    plain, conservative = (
        count_min(stream, ITEMS, 16, rows=rows, conservative=which, generator=5) for which in (False, True)
    )
    assert (truth(stream) <= conservative).all() and (conservative <= plain).all()
    assert (conservative < plain).any() == (rows > 1)  # with one row there is nothing to hold back


def test_strangers_in_a_row_of_count_min_are_spread_evenly():
    """One row: the expected error is (length - count) / width, over the choice of hash functions."""
    stream = streams(1)
    error = (count_min(stream.repeat(20_000, 1), ITEMS, 8, rows=1, generator=6) - truth(stream)).double()
    expected = (200 - truth(stream)[0]) / 8
    assert ((error.mean(0) - expected).abs() < 4.5 * error.std(0) / 20_000**0.5).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_count_sketch_is_unbiased_and_count_min_is_not(rows):
    stream, many = streams(1), 20_000
    repeated = stream.repeat(many, 1)
    error = (count_sketch(repeated, ITEMS, 4 * rows, rows=rows, generator=7) - truth(stream)).double()
    assert (error.mean(0).abs() < 4.5 * error.std(0) / many**0.5).all()
    biased = (count_min(repeated, ITEMS, 4 * rows, rows=rows, generator=7) - truth(stream)).double()
    assert (biased.mean(0) > 4.5 * biased.std(0) / many**0.5).all()


def test_streams_and_hash_functions_do_not_mix():
    """Each stream alone has the estimates that it has among others whose items do not matter."""
    stream = streams(3)
    other = torch.stack([stream[0], torch.zeros_like(stream[1]), stream[2]])
    for sketch in (count_min, count_sketch):
        ours, theirs = (sketch(each, ITEMS, 12, rows=3, generator=8) for each in (stream, other))
        assert torch.equal(ours[::2], theirs[::2]) and not torch.equal(ours[1], theirs[1])


@pytest.mark.parametrize("sketch", [count_min, count_sketch])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": 0}, "items = 0: must be at least 1"),
        ({"memory": 0}, "memory = 0: must be at least 1"),
        ({"rows": 0}, "rows = 0: must be at least 1"),
        ({"rows": 5}, "memory = 12: must be a multiple of rows = 5"),
        ({"items": 3}, "stream: 3 is out of range; must be 0 to 2"),
    ],
)
def test_bad_arguments_are_named_with_their_value(sketch, changes, message):
    with pytest.raises(ValueError, match=message):
        sketch(torch.tensor([[0, 3, 1]]), **{"items": 4, "memory": 12, "rows": 2, "generator": 0} | changes)
    with pytest.raises(ValueError, match="stream: -1 is out of range"):
        sketch(torch.tensor([[-1]]), 4, 12, rows=2, generator=0)
