"""Identity weights reach 3^L steps in the course's decoder, and not one more."""

import networkx as nx
import pytest
import torch
from refusals import refusals
from scipy.sparse.csgraph import connected_components

from companion.topics.graphs.by_hand import PowerDecoder
from companion.topics.graphs.data import connected, disjoint, erdos_renyi, reach, within


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_chain_of_diameter_three_to_the_layers_is_right_and_the_next_is_wrong(layers):
    for more in (0, 1):
        chain = disjoint(2, "chain", (3**layers + 1 + more,), generator=layers)
        said = PowerDecoder(chain.shape[-1], layers)(chain)
        assert torch.equal(said, reach(chain, 3**layers))
        assert said.all() == (more == 0)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_thousand_random_graphs_agree_with_scipy_just_where_they_are_within_capacity(layers):
    graphs = erdos_renyi(1000, 12, 0.05, 0.25, generator=1)
    said = PowerDecoder(12, layers)(graphs)
    inside = within(graphs, 3**layers)
    assert inside.double().mean() > 0.2 and (layers == 2 or inside.double().mean() < 0.9)
    for graph, answer, may in zip(graphs, said, inside, strict=True):
        _, labels = connected_components(graph.numpy())
        assert torch.equal(answer, torch.tensor(labels[:, None] == labels[None])) == may


@pytest.mark.parametrize("layers", [1, 2])
def test_a_thousand_random_graphs_agree_with_networkx_just_where_they_are_within_capacity(layers):
    graphs = erdos_renyi(1000, 12, 0.05, 0.25, generator=2)
    beyond = []
    for graph, answer in zip(graphs, PowerDecoder(12, layers)(graphs), strict=True):
        apart = dict(nx.all_pairs_shortest_path_length(nx.from_numpy_array(graph.numpy())))
        reached = torch.tensor([[j in apart[i] for j in range(12)] for i in range(12)])
        beyond.append(max(max(steps.values()) for steps in apart.values()) > 3**layers)
        assert torch.equal(answer, reached) != beyond[-1]
    assert any(beyond) or layers == 2  # so many nodes hardly ever lie more than nine steps apart


def test_the_smallest_positive_entry_is_what_the_docstring_says():
    stream = PowerDecoder(28, 3).stream(disjoint(1, "chain", (28,), generator=0))
    assert stream.min().item() == pytest.approx(28.0**-13, rel=1e-6)
    assert connected(disjoint(1, "chain", (28,), generator=0)).all()


test_bad_arguments_are_named = refusals((lambda: PowerDecoder(4, 0), "layers = 0"))
