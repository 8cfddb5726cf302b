"""Graphs are what they say, names do not matter, and filters keep what they should."""

from itertools import combinations, permutations, product
from math import comb

import pytest
import torch
from laws import drawn, laws
from refusals import refusals
from scipy.sparse.csgraph import connected_components, shortest_path

from companion.topics.graphs.data import connected, disjoint, erdos_renyi, matched, reach, within


def adjacency(n, edges):
    """A graph with these edges and its self-loops, row by row."""
    edges = {*edges, *((j, i) for i, j in edges), *((i, i) for i in range(n))}
    return tuple(float((i, j) in edges) for i, j in product(range(n), repeat=2))


TRIANGLE, SAME = [(0, 1), (0, 2), (1, 2)], disjoint(4, "chain", (2, 2), generator=0)
test_draws_follow_their_laws = laws(
    (
        lambda g: erdos_renyi(20_000, 3, 0.0, 1.0, generator=g),  # of k edges: the integral of p^k (1 - p)^(3 - k)
        {adjacency(3, edges): 1 / comb(3, k) for k in range(4) for edges in combinations(TRIANGLE, k)},
    ),
    (
        lambda g: disjoint(4000, "chain", (3, 1), generator=g),
        [adjacency(4, [order[:2], order[1:3]]) for order in permutations(range(4))],
    ),
    (
        drawn(600, lambda g: tuple(matched(SAME, torch.tensor([True, True, False, False]), generator=g).tolist())),
        permutations([True, True, False, False]),
    ),
)


def test_reach_and_answers_are_scipys():
    graphs = erdos_renyi(60, 10, 0.05, 0.3, generator=2)
    for graph, answer, three in zip(graphs, connected(graphs), reach(graphs, 3), strict=True):
        _, labels = connected_components(graph.numpy())
        assert torch.equal(answer, torch.tensor(labels[:, None] == labels[None]))
        assert torch.equal(three, torch.tensor(shortest_path(graph.numpy(), unweighted=True) <= 3))
    assert torch.equal(reach(graphs, 0), torch.eye(10).bool().expand(60, 10, 10))
    assert torch.equal(reach(graphs, 1), graphs > 0)


@pytest.mark.parametrize(
    ("kind", "degrees"),
    [("chain", [1, 2, 2, 2, 2, 3, 3]), ("clique", [1, 2, 2, 4, 4, 4, 4]), ("cycle", [1, 2, 2, 3, 3, 3, 3])],
)
def test_components_stand_side_by_side_under_other_names(kind, degrees):
    graphs = disjoint(30, kind, (4, 2, 1), generator=3)
    assert torch.equal(graphs, graphs.mT)
    assert (graphs.sum(1).sort(-1).values == torch.tensor(degrees, dtype=torch.float)).all()
    assert sorted(connected(graphs)[0].sum(1).tolist()) == [1, 2, 2, 4, 4, 4, 4]


def test_the_filter_keeps_diameters_up_to_the_steps():
    chains = torch.cat([disjoint(1, "chain", (k, 8 - k), generator=4) for k in range(4, 8)])  # diameters 3 to 6
    for steps in range(2, 8):
        assert within(chains, steps).tolist() == [k - 1 <= steps for k in range(4, 8)]


def test_the_control_has_the_base_rate_of_the_filter_and_not_its_choice():
    graphs = erdos_renyi(3000, 8, 0.05, 0.4, generator=5)
    kept = within(graphs, 3)
    blind = matched(graphs, kept, generator=6)
    pairs = connected(graphs).flatten(1).sum(1)
    assert torch.equal(pairs[kept].sort().values, pairs[blind].sort().values)
    assert 0.1 < (~kept[blind]).double().mean() < (~kept).double().mean()


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: erdos_renyi(0, 2, 0.1, 0.1, generator=0), "batch = 0"),
    (lambda: erdos_renyi(1, 2, 0.3, 0.1, generator=0), "low = 0.3, high = 0.1"),
    (lambda: disjoint(1, "chain", (3, 0), generator=0), "sizes = 0"),
    (lambda: disjoint(1, "star", (3,), generator=0), "kind = 'star'"),
    (lambda: reach(torch.eye(3)[None], -1), "steps = -1"),
)
