"""The rivals agree with scipy, and take the rounds that the mathematics gives them."""

import math

import pytest
import torch
from scipy.sparse.csgraph import connected_components, shortest_path

from companion.topics.graphs.baselines import breadth_first, degree_rule, diameters, rounds, union_find
from companion.topics.graphs.data import connected, disjoint, erdos_renyi


def test_distances_are_scipys():
    graphs = erdos_renyi(50, 12, 0.05, 0.2, generator=1)
    for graph, distance in zip(graphs, breadth_first(graphs), strict=True):
        assert torch.equal(distance, torch.tensor(shortest_path(graph.numpy(), unweighted=True)).float())


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 9, 10, 16, 17, 27, 28])
def test_rounds_are_logarithms_of_the_diameter(length):
    chains = disjoint(3, "chain", (length + 1, 2), generator=2)
    assert diameters(chains).tolist() == [length] * 3
    for factors in (2, 3):
        exact = next(k for k in range(10) if factors**k >= length)
        assert rounds(chains, factors).tolist() == [exact] * 3


def test_graphs_in_one_batch_are_counted_apart():
    batch = torch.cat([disjoint(1, "chain", (10,), generator=3), disjoint(1, "clique", (10,), generator=3)])
    assert rounds(batch, 3).tolist() == [2, 0] and rounds(batch, 2).tolist() == [4, 0]


def test_union_find_labels_components_by_their_smallest_node():
    for graph in erdos_renyi(40, 15, 0.02, 0.2, generator=4):
        labels, followed = union_find(graph)
        many, scipys = connected_components(graph.numpy())
        assert len(labels.unique()) == many and followed >= 0
        for label in labels.unique():
            same = (labels == label).nonzero().flatten()
            assert label == same[0] and len(set(scipys[same.tolist()])) == 1


def test_the_degree_rule_errs_on_cliques_and_knows_neighbours():
    cliques, chains = disjoint(2, "clique", (4, 4), generator=5), disjoint(2, "chain", (4, 4), generator=5)
    assert degree_rule(cliques, 9).all() and not connected(cliques).all()
    assert torch.equal(degree_rule(chains, math.inf), chains > 0)
