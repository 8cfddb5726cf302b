"""The rivals agree with loops, and take the rounds that the mathematics gives them."""

import math
from itertools import product

import pytest
import torch
from hypothesis.strategies import integers, sets, tuples
from laws import holds

from companion.topics.graphs.baselines import breadth_first, degree_rule, diameters, rounds, union_find
from companion.topics.graphs.data import connected, disjoint


@holds(edges=sets(tuples(integers(0, 5), integers(0, 5)), max_size=9), threshold=integers(1, 20))
def test_rivals_are_plain_loops(edges, threshold):
    edges = {*edges, *((j, i) for i, j in edges), *((i, i) for i in range(6))}
    graph = torch.tensor([[float((i, j) in edges) for j in range(6)] for i in range(6)])[None]
    apart = {(i, j): 0 if i == j else 1 if (i, j) in edges else math.inf for i, j in product(range(6), repeat=2)}
    for over, i, j in product(range(6), repeat=3):  # Floyd and Warshall
        apart[i, j] = min(apart[i, j], apart[i, over] + apart[over, j])
    most = max(steps for steps in apart.values() if steps < math.inf)
    assert breadth_first(graph).flatten().tolist() == [apart[pair] for pair in sorted(apart)]
    assert diameters(graph).item() == most
    for factors in (2, 3):
        assert rounds(graph, factors).item() == next(k for k in range(4) if factors**k >= most)
    labels, followed = union_find(graph[0])
    assert labels.tolist() == [min(j for j in range(6) if apart[i, j] < math.inf) for i in range(6)] and followed >= 0
    degrees = [sum((i, j) in edges for j in range(6)) for i in range(6)]
    said = [(i, j) in edges or degrees[i] * degrees[j] > threshold for i, j in sorted(apart)]
    assert degree_rule(graph, threshold).flatten().tolist() == said


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 9, 10, 16, 17, 27, 28])
def test_rounds_are_logarithms_of_the_diameter(length):
    chains = disjoint(3, "chain", (length + 1, 2), generator=2)
    assert diameters(chains).tolist() == [length] * 3
    for factors in (2, 3):
        exact = next(k for k in range(10) if factors**k >= length)
        assert rounds(chains, factors).tolist() == [exact] * 3


def test_pointers_that_are_followed_are_counted():
    assert [
        union_find(graph)[1] for graph in (torch.eye(3), torch.ones(2, 2), disjoint(1, "clique", (3,), generator=0)[0])
    ] == [0, 1, 4]


def test_graphs_in_one_batch_are_counted_apart():
    batch = torch.cat([disjoint(1, "chain", (10,), generator=3), disjoint(1, "clique", (10,), generator=3)])
    assert rounds(batch, 3).tolist() == [2, 0] and rounds(batch, 2).tolist() == [4, 0]


def test_the_degree_rule_errs_on_cliques_and_knows_neighbours():
    cliques, chains = disjoint(2, "clique", (4, 4), generator=5), disjoint(2, "chain", (4, 4), generator=5)
    assert degree_rule(cliques, 9).all() and not connected(cliques).all()
    assert torch.equal(degree_rule(chains, math.inf), chains > 0)
