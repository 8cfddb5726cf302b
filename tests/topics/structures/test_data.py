"""Points are where their docstrings say, and no place gives the answer away; streams have Zipf's law, and counts are
counts.
"""

import inspect
import math
from collections import Counter
from itertools import pairwise, permutations, product

import pytest
import torch
from laws import laws, quarters
from refusals import refusals
from scipy.stats import chisquare, kstest
from sklearn.datasets import load_digits

from companion.topics.structures.data import (
    gumbel,
    hard,
    hard_coordinates,
    item_counts,
    numbers,
    pictures,
    problems,
    redrawn,
    sphere,
    uniform,
    with_copies,
    zipf_queries,
    zipf_streams,
)

# --- Sets of points and queries

DRAWS = {
    "uniform": lambda generator: uniform(40, 9, 3, generator=generator),
    "sphere": lambda generator: sphere(40, 9, 5, generator=generator),
    "hard": lambda generator: hard(40, 3, generator=generator),
    "hard_coordinates": lambda generator: hard_coordinates(40, 3, generator=generator),
    "zipf_queries": lambda generator: zipf_queries(40, 9, generator=generator),
    "numbers": lambda generator: numbers(40, 9, generator=generator),
    "pictures": lambda generator: pictures(*numbers(40, 9, generator=0), generator=generator),
}


def coordinates(generator):
    """Of a point in the plane and of a query, in quarters of what is uniform on -1 to 1."""
    points, query, _ = uniform(20_000, 1, 2, generator=generator)
    return quarters(torch.cat([points[:, 0], query], 1), lambda x: (x + 1) / 2)


def numbers_and_asked(generator):
    """Two numbers that are shown, and two that are asked for, in quarters; all numbers come, and none twice."""
    shown, asked = numbers(20_000, 2, queries=2, generator=generator)
    assert shown.unique().tolist() == asked.unique().tolist() == list(range(200)) and (shown[:, 0] != shown[:, 1]).all()
    return torch.cat([shown, asked.view(-1, 2)], 1) // 50


def tree_of_three(generator):
    """A root and how far its children lie to the left and right, in quarters; and the places of the three."""
    points = hard(20_000, 2, generator=generator).points[..., 0]
    left, root, right = points.sort(1).values.unbind(1)
    apart = torch.stack([root / 49 / 2 + 0.5, (root - left) / 7, (right - root) / 7], 1)
    return torch.cat([quarters(apart, lambda x: x), points.argsort(1)], 1)


def copies(generator):
    """Which of a set's places names the point nearest to each of two queries."""
    points, nearest = torch.arange(3.0).view(1, 3, 1).expand(9000, 3, 1), torch.tensor([[0, 1]]).expand(9000, 2)
    many, which = with_copies(points, nearest, 7, generator)
    assert many[0, :, 0].tolist() == [0, 0, 0, 1, 1, 2, 2]
    return which


def stream_law(exponent):
    """Of three arrivals of three items, whichever item is the most popular: the r-th as 1 / r^exponent."""
    law = Counter()
    for stream, rank in product(product(range(3), repeat=3), permutations((1, 2, 3))):
        law[stream] += math.prod(rank[item] ** -exponent for item in stream)
    return law


test_draws_follow_their_laws = laws(
    (coordinates, product(range(4), repeat=4)),
    (
        numbers_and_asked,
        {
            (a, b, *asked): 50 - (a == b)
            for a, b in product(range(4), repeat=2)
            for asked in product(range(4), repeat=2)
        },
    ),
    (tree_of_three, [(*apart, *order) for apart in product(range(4), repeat=3) for order in permutations(range(3))]),
    (lambda g: quarters(gumbel(20_000, 3, generator=g), lambda x: (-(-x).exp()).exp()), product(range(4), repeat=3)),
    (copies, product(range(3), (3, 4))),
    (lambda g: zipf_streams(20_000, 3, 3, generator=g), stream_law(1)),
    *((lambda g, e=e: zipf_streams(20_000, 3, 3, exponent=e, generator=g), stream_law(e)) for e in (0.0, 1.7)),
)


@pytest.mark.parametrize("kind", DRAWS)
def test_a_seed_is_a_problem(kind):
    first, again, other = (DRAWS[kind](generator) for generator in (1, torch.Generator().manual_seed(1), 2))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("kind", ["uniform", "zipf_queries", "sphere", "hard"])
def test_distances_are_euclid_s(kind):
    points, query, distances = DRAWS[kind](3)
    expected = torch.cdist(points.double(), query[:, None].double())[..., 0]
    torch.testing.assert_close(distances, expected.float(), rtol=1e-5, atol=1e-4)


SEVERAL = {
    "uniform": lambda generator: uniform(300, 4, 2, queries=3, generator=generator),
    "zipf_queries": lambda generator: zipf_queries(300, 4, queries=3, generator=generator),
    "sphere": lambda generator: sphere(300, 4, 12, queries=3, generator=generator),
    "hard": lambda generator: hard(300, 3, queries=3, generator=generator),
    "hard_coordinates": lambda generator: hard_coordinates(300, 3, queries=3, generator=generator),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_queries_in_a_row_belong_to_a_set(kind):
    points, query, distances = SEVERAL[kind](4)
    assert len(points) == 300
    assert len(query) == len(distances) == 900
    for i in (0, 1, 2, 3, 898, 899):
        expected = (points[i // 3] - query[i]).norm(dim=-1)
        torch.testing.assert_close(distances[i], expected, rtol=1e-5, atol=1e-4)
    first, second, third = query.view(300, 3, -1).unbind(1)
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)


def test_a_query_of_its_set_is_near_one_of_its_points_wherever_it_stands_in_the_row():
    points, query, distances = sphere(2000, 5, 12, queries=3, generator=4)
    products = (points.repeat_interleave(3, 0) * query[:, None]).sum(-1)
    near = (products - 0.8).abs()
    assert near.amin(1).max() < 1e-5
    for k in range(3):
        assert chisquare(near[k::3].argmin(1).bincount(minlength=5).numpy()).pvalue > 1e-3
    assert (hard(2000, 3, queries=3, generator=4).distances.amin(1) < 5).all()  # a point plus N(0, 1)


def test_zipf_queries_fall_off_as_they_should_and_points_are_uniform():
    points, query, _ = zipf_queries(4000, 6, queries=4, generator=5)
    assert torch.equal(points, points.round())
    assert chisquare((points.flatten().long() - 1).bincount(minlength=200).numpy()).pvalue > 1e-3
    expected = torch.arange(1, 201, dtype=torch.float64) ** -1.2
    expected = 16_000 * expected / expected.sum()
    seen = (query[:, 0].long() - 1).bincount(minlength=200).double()
    seen, expected = (torch.cat([x[:20], x[20:].sum()[None]]).numpy() for x in (seen, expected))
    assert chisquare(seen, expected).pvalue > 1e-3
    _, even, _ = zipf_queries(4000, 6, exponent=0, generator=6)
    assert chisquare((even[:, 0].long() - 1).bincount(minlength=200).numpy()).pvalue > 1e-3


def test_spherical_points_are_of_length_one_and_in_no_direction():
    points, query, _ = sphere(20_000, 2, 30, generator=5)
    torch.testing.assert_close(points.norm(dim=-1), torch.ones(20_000, 2))
    torch.testing.assert_close(query.norm(dim=-1), torch.ones(20_000))
    for directions in (points.flatten(0, 1), query):
        assert directions.mean(0).norm() < 3 * len(directions) ** -0.5
        spread = directions.T @ directions / len(directions)
        torch.testing.assert_close(spread, torch.eye(30) / 30, rtol=0, atol=2e-3)


@pytest.mark.parametrize("rho", [0.0, 0.8, 1.0])
def test_a_query_on_the_sphere_has_its_inner_product_with_one_point_and_any_point_may_be_it(rho):
    points, query, distances = sphere(4000, 5, 12, rho=rho, generator=6)
    products = (points * query[:, None]).sum(-1)
    off = (products - rho).abs()
    assert off.amin(1).max() < 1e-5
    assert chisquare(off.argmin(1).bincount(minlength=5).numpy()).pvalue > 1e-3
    torch.testing.assert_close(distances.square(), 2 - 2 * products, rtol=1e-3, atol=1e-3)


# --- Hard sets: the nodes of a tree


@pytest.mark.parametrize("levels", [1, 3, 4])
def test_a_tree_has_all_its_nodes_and_the_query_is_near_one(levels):
    points, query, distances = hard(3000, levels, generator=6)
    assert points.shape == (3000, 2**levels - 1, 1)
    assert query.shape == (3000, 1)
    assert distances.amin(1).max() < 6
    assert distances.amin(1).square().mean() <= 1.1  # it is at most as far as the node that noise was added to


@pytest.mark.parametrize("levels", [3, 4])
def test_the_answer_s_place_gives_nothing_away(levels):
    answers = hard(30_000, levels, generator=7).distances.argmin(1)
    assert chisquare(answers.bincount(minlength=2**levels - 1).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("levels", [3, 4, 5])
def test_every_level_is_a_seventh_as_wide(levels):
    """Sorted, the root is in the middle, its left child at a quarter, and so on, but for the few that lie closer than a
    level below.
    """
    x = hard(20_000, levels, generator=8).points[..., 0].sort(1).values
    down = [2 ** (levels - 1 - k) - 1 for k in range(levels)]
    gaps = [(x[:, node] - x[:, child]).median().item() for node, child in pairwise(down)]
    assert gaps == pytest.approx([7 ** (levels - k - 1) / 2 for k in range(levels - 1)], rel=0.05)
    assert x[:, down[0]].abs().median().item() == pytest.approx(7**levels / 2, rel=0.05)


def test_coordinates_of_the_hard_plane_are_hard_sets_of_their_own():
    points, query, distances = hard_coordinates(4000, 4, generator=11)
    assert points.shape == (4000, 15, 2)
    assert distances.amin(1).square().mean() <= 2.2
    for axis in range(2):
        x = points[..., axis].sort(1).values
        assert (x[:, 7] - x[:, 3]).median().item() == pytest.approx(7**3 / 2, rel=0.1)
    ranks = points.argsort(1).argsort(1).double()
    assert abs(torch.corrcoef(ranks.flatten(0, 1).T)[0, 1]) < 0.02


# --- Pictures of numbers


@pytest.mark.parametrize("held_out", [False, True])
def test_pictures_show_their_numbers_in_digits_of_their_own_half(held_out):
    bundle = load_digits()
    rows = [tuple(image) for image in (bundle.images.reshape(-1, 64) / 16).astype("float32").tolist()]
    ours, others = (rows[1400:], rows[:1400]) if held_out else (rows[:1400], rows[1400:])
    shown, asked = numbers(20, 8, queries=3, generator=12)
    points, query, distances = pictures(shown, asked, held_out=held_out, generator=13)
    assert (points.shape, query.shape) == ((20, 8, 192), (60, 192))
    assert torch.equal(distances, (shown.repeat_interleave(3, 0) - asked[:, None]).abs().float())

    digits = [tuple(digit) for digit in torch.cat([points.flatten(0, 1), query]).view(-1, 64).tolist()]
    assert set(digits) <= set(ours)
    assert not set(digits) & set(others)
    says = dict(zip(rows, bundle.target.tolist(), strict=True))
    expected = [int(digit) for number in (*shown.flatten().tolist(), *asked.tolist()) for digit in f"{number:03d}"]
    assert [says[digit] for digit in digits] == expected


def test_the_same_number_is_in_many_hands():
    points = pictures(torch.full((1, 200), 137), torch.tensor([137]), generator=14).points[0]
    assert len(points.unique(dim=0)) > 190
    assert points.min() == 0
    assert points.max() == 1


def middles(digits):
    """Where the ink lies on average: (row, column), of 0 to 7."""
    ink = digits.unflatten(-1, (8, 8))
    places = torch.arange(8.0)
    return torch.stack([(ink.sum(axis) * places).sum(-1) / ink.sum((-2, -1)) for axis in (-1, -2)], -1)


def test_a_digit_is_redrawn_near_where_it_was_and_not_twice_alike():
    dots = torch.zeros(4000, 8, 8)
    dots[:, 3:5, 3:5] = 1  # in the middle, where turns and sizes move nothing
    drawn = redrawn(dots.flatten(1), torch.Generator().manual_seed(1))
    assert drawn.shape == (4000, 64)
    assert len(drawn.unique(dim=0)) == 4000
    moved = middles(drawn.clamp(min=0.3)) - 3.5
    assert moved.mean(0).abs().max() < 0.05
    whole = middles(drawn * (drawn > 0.45)) - 3.5
    assert 0.5 < whole.abs().amax() < 1.3  # .6, made longer by the slant and by what is drawn smaller
    blank = redrawn(torch.zeros(500, 64), torch.Generator().manual_seed(2))
    assert kstest((blank / 0.1).flatten(), "norm").pvalue > 1e-3


def test_a_stroke_is_turned_and_slanted_both_ways_and_no_further():
    stroke = torch.zeros(3000, 8, 8)
    stroke[:, :, 3:5] = 1
    drawn = redrawn(stroke.flatten(1), torch.Generator().manual_seed(3)).unflatten(1, (8, 8))
    ink = drawn[:, 1:7] * (drawn[:, 1:7] > 0.25)  # rows that no move empties
    columns = (ink * torch.arange(8.0)).sum(-1) / ink.sum(-1)
    lean = ((columns - columns.mean(1, keepdim=True)) * (torch.arange(6) - 2.5)).sum(1) / 17.5  # columns a row
    assert lean.mean().abs() < 0.02
    assert 0.25 < lean.abs().max() < 0.6  # tan(.25) + .2 / .85 = .49


def test_training_sees_digits_redrawn_of_the_same_numbers():
    shown, asked = numbers(6, 5, queries=2, generator=1)
    plain, changed = (pictures(shown, asked, changed=each, generator=2) for each in (False, True))
    assert torch.equal(plain.distances, changed.distances)
    off = (plain.points - changed.points).abs()
    assert (off > 0).float().mean() > 0.95
    assert off.mean() < 0.3
    drawn = problems("pictures", 5, queries=2)(6, torch.Generator().manual_seed(3))
    assert (drawn.points.min(), drawn.points.max()) != (0, 1)


test_bad_problems_are_named_with_their_value = refusals(
    (lambda: uniform(0, 3, generator=0), "batch = 0: must be at least 1"),
    (lambda: uniform(2, 0, generator=0), "n = 0: must be at least 1"),
    (lambda: uniform(2, 3, -1, generator=0), "dim = -1: must be at least 1"),
    (lambda: sphere(-1, 3, 4, generator=0), "batch = -1: must be at least 1"),
    (lambda: sphere(2, 0, 4, generator=0), "n = 0: must be at least 1"),
    (lambda: sphere(2, 3, 1, generator=0), "dim = 1: must be at least 2"),
    (lambda: sphere(2, 3, 4, rho=1.5, generator=0), "rho = 1.5: must be 0 to 1"),
    (lambda: hard_coordinates(2, 3, 0, generator=0), "dim = 0: must be at least 1"),
    (lambda: hard(0, 3, generator=0), "batch = 0: must be at least 1"),
    (lambda: hard(2, 0, generator=0), "levels = 0: must be at least 1"),
    (lambda: numbers(0, 3, generator=0), "batch = 0: must be at least 1"),
    (lambda: numbers(2, 0, generator=0), "n = 0: must be at least 1"),
    (lambda: numbers(2, 201, generator=0), "n = 201: must be at most 200"),
    (
        lambda: pictures(torch.tensor([[3, 200]]), torch.tensor([5]), generator=0),
        "shown: 200 is out of range; must be 0 to 199",
    ),
    (lambda: pictures(torch.tensor([[3, 4]]), torch.tensor([-5]), generator=0), "asked: -5 is out of range"),
    *(
        (
            lambda kind=kind, n=n: problems(kind, n),
            f"n = {n}: must be 1, 3, 7, 15, .., the numbers of nodes of balanced trees",
        )
        for kind in ("hard-line", "hard-plane")
        for n in (2, 14, 16)
    ),
)


# --- Streams of items


def test_counts_are_counter_s():
    stream = zipf_streams(5, 30, 10, generator=4)
    for row, counted in zip(stream.tolist(), item_counts(stream, 10).tolist(), strict=True):
        assert counted == [Counter(row)[item] for item in range(10)]


test_bad_streams_are_named_with_their_value = refusals(
    ({"batch": 0}, "batch = 0: must be at least 1"),
    ({"length": 0}, "length = 0: must be at least 1"),
    ({"items": -2}, "items = -2: must be at least 1"),
    ({"exponent": -0.5}, "exponent = -0.5: must be at least 0"),
    of=lambda arguments: zipf_streams(**{"batch": 2, "length": 3, "items": 4, "generator": 0} | arguments),
)


@pytest.mark.parametrize("kind", ["line", "plane", "sphere", "pictures"])
def test_another_kind_of_problem_is_refused_with_what_there_is(kind):
    problems(kind, 14)  # no tree: any number of points will do
    unchecked = inspect.unwrap(problems)  # in the tests, its annotations would refuse first
    with pytest.raises(
        ValueError,
        match=f"kind = '{kind}s': must be one of line, power-law, hard-line, plane, hard-plane, sphere, pictures",
    ):
        unchecked(f"{kind}s", 14)
