"""Searches counted in lookups: each against a loop that looks where it should, against brute force, and against
published figures.
"""

import heapq
import inspect
from itertools import pairwise

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.spatial import cKDTree

from companion.topics.structures.baselines.search import (
    binary_search,
    buckets,
    in_buckets,
    interpolation_search,
    kd_order,
    kd_tree,
    lsh,
    quantile_search,
    simhash,
    tree_search,
)
from companion.topics.structures.baselines.trees import treap
from companion.topics.structures.data import hard, sphere, uniform
from companion.topics.structures.probes import best_so_far


def uniform_cdf(x):
    return ((x + 1) / 2).clamp(0, 1)


def any_tree(n, device="cpu"):
    return treap(torch.rand(n, generator=torch.Generator().manual_seed(n), device=device))


SEARCHES = {
    "binary": binary_search,
    "interpolation": interpolation_search,
    "quantile": lambda points, query, lookups: quantile_search(points, query, lookups, uniform_cdf),
    "tree": lambda points, query, lookups: tree_search(
        any_tree(points.shape[1], points.device), points, query, lookups
    ),
    "k-d tree": kd_tree,
    "lsh": lambda points, query, lookups: lsh(points, query, lookups, bits=3, generator=1),
}


def accuracy(found, problem):
    return best_so_far(found, problem.distances).double().mean(0).tolist()


# -- What holds for every search


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 33])
def test_with_as_many_lookups_as_points_the_answer_is_exact(search, n):
    for problem in (
        uniform(300, n, generator=n),
        uniform(300, n, generator=n)._replace(query=torch.full((300, 1), 1.5)),
    ):
        distances = (problem.points - problem.query[:, None]).norm(dim=2)
        assert best_so_far(search(problem.points, problem.query, n), distances)[:, -1].all()


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_points_may_be_equal_and_lie_on_the_query(search):
    points, query, _ = uniform(500, 9, generator=4)
    points, query = (2 * points).round() / 2, (2 * query).round() / 2
    assert best_so_far(search(points, query, 9), (points - query[:, None]).norm(dim=2))[:, -1].all()


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_point_is_looked_at_once_until_the_search_has_ended(search):
    points, query, _ = uniform(200, 12, generator=5)
    for places in search(points, query, 12).tolist():
        different = list(dict.fromkeys(places))
        assert places == different + [different[-1]] * (len(places) - len(different))


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_one_set_serves_all_queries_and_nothing_is_changed(search):
    points, query, _ = uniform(50, 20, generator=6)
    kept = points[:1].clone(), query.clone()
    together, apart = search(points[:1], query, 5), search(points[:1].repeat(50, 1, 1), query, 5)
    assert torch.equal(together, apart)
    assert torch.equal(points[:1], kept[0]) and torch.equal(query, kept[1])


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_tensors_are_made_on_the_device_of_the_points(search):
    """Under another default device, a tensor made without saying where could not be combined with the points."""
    points, query, _ = uniform(20, 10, generator=7)
    expected = search(points, query, 4)
    with torch.device("meta"):
        found = search(points, query, 4)
    assert torch.equal(found, expected)


# -- Sorted numbers


def looked_at(points, query, lookups, place):
    """A loop over problems and lookups: place(i, values, low, high, q, known) -> rank; known: what is, of the ends."""
    found = []
    for numbers, (q,) in zip(points[..., 0].tolist(), query.tolist(), strict=True):
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        low, high, ends, places = 0, len(order), [-1.0, 1.0], []
        for i in range(lookups):
            if low < high:
                rank = min(max(place(i, low, high, q, ends), low), high - 1)
                x = numbers[order[rank]]
                if x < q:
                    low, ends[0] = rank + 1, x
                else:
                    high, ends[1] = rank, x
            places.append(order[rank])
        found.append(places)
    return found


@pytest.mark.parametrize("n", [1, 5, 16, 50])
def test_binary_search_halves(n):
    points, query, _ = uniform(200, n, generator=1)
    assert binary_search(points, query, 6).tolist() == looked_at(
        points, query, 6, lambda i, low, high, q, ends: (low + high) // 2
    )


def test_interpolation_search_looks_where_the_query_would_be():
    def place(i, low, high, q, ends):
        expected = np.linspace(ends[0], ends[1], high - low + 2)[1:-1]  # of evenly spread numbers between the ends
        return low + int(np.abs(expected - q).argmin())

    problem = uniform(500, 30, generator=2)
    points, query = problem.points.double(), problem.query.double()
    assert interpolation_search(points, query, 6).tolist() == looked_at(points, query, 6, place)


def test_quantile_search_gallops_and_then_halves():
    n = 60

    def place(i, low, high, q, ends):
        p = (q + 1) / 2
        if i == 0:
            return round((n + 1) * p) - 1
        step = max(1, round((n * p * (1 - p)) ** 0.5)) * 2 ** (i - 1)
        middle = (low + high) // 2
        if low == 0:
            return max(high - step, middle)
        return min(low - 1 + step, middle) if high == n else middle

    problem = uniform(500, n, generator=3)
    points, query = problem.points.double(), problem.query.double()
    assert quantile_search(points, query, 7, uniform_cdf).tolist() == looked_at(points, query, 7, place)


def test_binary_search_is_right_as_often_as_was_measured():
    """To sampling noise; on the hard distribution it finds what it can: one of 15 points, then three, then seven."""
    assert accuracy(binary_search(*(problem := uniform(20_000, 16, generator=1))[:2], 5), problem) == pytest.approx(
        [0.06, 0.18, 0.40, 0.91, 1], abs=0.02
    )
    problem = hard(20_000, 4, generator=2)
    assert accuracy(binary_search(problem.points, problem.query, 4), problem) == pytest.approx(
        [1 / 15, 3 / 15, 7 / 15, 1], abs=0.015
    )


def test_knowing_the_distribution_saves_lookups_on_uniform_numbers_alone():
    problem = uniform(5000, 64, generator=3)
    binary, informed = (accuracy(search(*problem[:2], 4), problem) for search in (binary_search, interpolation_search))
    assert informed[2] > 0.75 and binary[2] < 0.15
    warm = accuracy(quantile_search(*problem[:2], 4, uniform_cdf), problem)
    assert warm[0] == informed[0] > 5 * binary[0] and all(a > b for a, b in zip(warm, binary, strict=True))


# -- Buckets


def test_a_slot_names_the_point_nearest_to_the_middle_of_its_bucket():
    points, query, _ = uniform(300, 12, generator=4)
    expected = []
    for numbers, (q,) in zip(points[..., 0].tolist(), query.tolist(), strict=True):
        middle = min(np.arange(-0.8, 1, 0.4), key=lambda m, q=q: abs(m - q))  # of five buckets
        expected.append([-1, min(range(12), key=lambda k, m=middle, numbers=numbers: abs(numbers[k] - m))])
    assert buckets(points, query, 5).tolist() == expected


def test_buckets_find_what_was_published():
    """50 uniform points, two lookups, 2 to 128 slots: Salemohamed et al. (2024), to a point and a half of per cent."""
    problem = uniform(8000, 50, generator=5)
    ours = [accuracy(buckets(*problem[:2], slots), problem)[-1] for slots in (2, 4, 8, 16, 32, 64, 128)]
    assert ours == pytest.approx([0.059, 0.117, 0.236, 0.445, 0.658, 0.811, 0.895], abs=0.015)


# -- More dimensions


def kd_tree_by_hand(points, query, lookups):
    """One problem, with a heap of subtrees: (distance of the box, a number to break ties, places, depth, gaps)."""
    heap, best, places = [(0.0, 0, list(range(len(points))), 0, np.zeros(len(query)))], np.inf, []
    while heap and heap[0][0] < best and len(places) < lookups:
        _, _, subtree, depth, gaps = heapq.heappop(heap)
        axis = depth % len(query)
        subtree = sorted(subtree, key=lambda place: points[place, axis])
        middle = len(subtree) // 2
        places.append(subtree[middle])
        best = min(best, np.linalg.norm(points[places[-1]] - query))
        gap = query[axis] - points[places[-1], axis]
        for part, near in ((subtree[:middle], gap < 0), (subtree[middle + 1 :], gap >= 0)):
            beyond = gaps.copy()
            if not near:
                beyond[axis] = gap
            if part:
                heapq.heappush(
                    heap, (np.linalg.norm(beyond), len(places) + len(points) * (not near), part, depth + 1, beyond)
                )
    return places + [places[-1]] * (lookups - len(places))


@pytest.mark.parametrize(("n", "dim"), [(1, 2), (7, 1), (32, 2), (33, 3), (20, 5)])
def test_the_k_d_tree_visits_the_nearest_part_next(n, dim):
    drawn = uniform(60, n, dim, generator=7)
    points, query = drawn.points.double(), drawn.query.double()
    expected = [kd_tree_by_hand(p, q, n) for p, q in zip(points.numpy(), query.numpy(), strict=True)]
    assert kd_tree(points, query, n).tolist() == expected


@pytest.mark.parametrize("dim", [1, 2, 5, 30])
def test_the_k_d_tree_finds_what_scipys_finds(dim):
    points, query, _ = uniform(40, 50, dim, generator=8)
    found = kd_tree(points, query, 50)
    last = (points - query[:, None]).norm(dim=2).gather(1, found).amin(1)
    expected = [cKDTree(p).query(q)[0] for p, q in zip(points.numpy(), query.numpy(), strict=True)]
    assert last.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n", [7, 12])
def test_a_k_d_order_has_medians_along_one_axis_after_the_other(n):
    points = uniform(30, n, 2, generator=3).points
    order = kd_order(points)
    assert torch.equal(order.sort(1).values, torch.arange(n).expand(30, n))
    stored = points.gather(1, order[..., None].expand(-1, -1, 2))
    root = n // 2
    assert (stored[:, :root, 0] < stored[:, root, None, 0]).all()
    assert (stored[:, root + 1 :, 0] > stored[:, root, None, 0]).all()
    left = root // 2
    assert (stored[:, :left, 1] < stored[:, left, None, 1]).all()
    assert (stored[:, left + 1 : root, 1] > stored[:, left, None, 1]).all()


def test_on_a_line_the_k_d_tree_goes_down_like_binary_search():
    points, query, _ = uniform(500, 31, generator=9)
    assert torch.equal(kd_tree(points, query, 5), binary_search(points, query, 5))


def test_the_k_d_tree_finds_what_was_published():
    """100 uniform points in the plane, six lookups: 52 %, Salemohamed et al. (2024)."""
    problem = uniform(20_000, 100, 2, generator=10)
    assert accuracy(kd_tree(*problem[:2], 6), problem)[-1] == pytest.approx(0.52, abs=0.015)


def test_lsh_opens_the_nearest_buckets_first():
    points, query, _ = sphere(50, 20, 8, generator=11)
    planes = torch.randn(50, 8, 4, generator=torch.Generator().manual_seed(5)).numpy()
    expected = []
    for x, q, r in zip(points.numpy(), query.numpy(), planes, strict=True):
        cost = [sum(abs(q @ a) for a in r.T if (q @ a > 0) != (each @ a > 0)) for each in x]
        expected.append(sorted(range(20), key=lambda k, cost=cost: round(cost[k], 5))[:9])
    assert lsh(points, query, 9, bits=4, generator=5).tolist() == expected


def test_lsh_is_the_better_the_longer_its_codes():
    problem = sphere(3000, 32, 30, generator=12)
    shares = [accuracy(lsh(*problem[:2], 5, bits=bits, generator=13), problem)[-1] for bits in (1, 3, 5)]
    assert all(more > less + 0.02 for less, more in pairwise(shares))
    assert shares[0] > 5 / 32 + 0.02


def test_simhash_finds_what_was_published():
    """100 points in 30 dimensions, six lookups, the best number of bits: 30 %, Salemohamed et al. (2024), table 1."""
    problem = sphere(3000, 100, 30, generator=14)
    best = max(accuracy(simhash(*problem[:2], 6, bits=bits, generator=15), problem)[-1] for bits in (3, 4, 5))
    assert best == pytest.approx(0.30, abs=0.025)


def test_simhash_looks_into_the_query_s_bucket_first():
    """Two bits and four points of four codes: each has its bucket, and the query's point comes first."""
    points = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])[None].expand(200, 4, 2)
    first = simhash(points, points[:, 2] + 1e-3, 1, bits=2, generator=3)[:, 0]
    assert (first == 2).double().mean() > 0.45  # at random: a quarter; two of the four may share a code
    found = simhash(points, points[:, 0], 4, bits=2, generator=3)
    assert torch.equal(found.sort(1).values, torch.arange(4).expand(200, 4))


def test_a_full_bucket_sends_points_elsewhere_and_an_empty_one_leaves_the_search_to_chance():
    """Eight points in four buckets of two places: all of one code, two of them get in, and the rest fill the others."""
    codes, own = torch.zeros(4000, 8, dtype=torch.long), torch.zeros(4000, dtype=torch.long)
    found = in_buckets(codes, own, 2, buckets=4, generator=0)
    assert (found == 0).any(1).double().mean() == pytest.approx(2 / 8, abs=0.03)
    alone = codes.index_fill(1, torch.tensor([0]), 3)
    assert (in_buckets(alone, own + 3, 2, buckets=4, generator=0) == 0).any(1).double().mean() > 0.6


# -- Bad input

POINTS, QUERY = torch.zeros(3, 4, 2), torch.zeros(3, 2)
LINE = uniform(4, 9, generator=1)[:2]


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: binary_search(POINTS[..., :1], QUERY[:, :1], 0), "lookups = 0: must be at least 1"),
    (lambda: kd_tree(POINTS[:, :0], QUERY, 1), "n = 0: must be at least 1"),
    (
        lambda: inspect.unwrap(binary_search)(POINTS, QUERY, 1),
        "dim = 2: must be 1, as this search needs points on a line",
    ),
    (
        lambda: inspect.unwrap(kd_tree)(POINTS[:2], QUERY, 1),
        r"points of shape \(2, 4, 2\): must be \(1 or 3, n, 2\), as the queries are",
    ),
    (
        lambda: inspect.unwrap(lsh)(POINTS[..., :1], QUERY, 1, bits=1, generator=0),
        r"points of shape \(3, 4, 1\): must be",
    ),
    (lambda: buckets(POINTS[..., :1], QUERY[:, :1], 0), "slots = 0: must be at least 1"),
    (
        lambda: tree_search(any_tree(5), POINTS[..., :1], QUERY[:, :1], 1),
        "tree: has 5 keys; must have n = 4, one for each point",
    ),
    (lambda: lsh(POINTS, QUERY, 1, bits=0, generator=0), "bits = 0: must be at least 1"),
    (lambda: simhash(POINTS, QUERY, 1, bits=0, generator=0), "bits = 0: must be at least 1"),
    (
        lambda: in_buckets(torch.full((3, 4), 2), torch.zeros(3).long(), 1, buckets=2, generator=0),
        "codes: 2 is out of range; must be 0 to 1",
    ),
    (lambda: simhash(POINTS, QUERY, 5, bits=1, generator=0), "lookups = 5: must be at most n = 4"),
    (lambda: lsh(POINTS, QUERY, 5, bits=1, generator=0), "lookups = 5: must be at most n = 4"),
    (lambda: quantile_search(*LINE, 3, lambda x: torch.full_like(x, 2.0)), "cdf: gives 2; must be between 0 and 1"),
    (lambda: quantile_search(*LINE, 3, lambda x: x / 0 * 0), "cdf: gives nan"),
)
