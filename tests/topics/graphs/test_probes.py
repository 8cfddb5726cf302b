"""Exact matches count graphs, distances are told apart, and the degree channel can be removed and felt."""

import math

import matplotlib.pyplot as plt
import pytest
import torch

from companion.topics.graphs.baselines import breadth_first
from companion.topics.graphs.data import connected, disjoint, erdos_renyi, reach
from companion.topics.graphs.model import Channels, ChannelsConfig
from companion.topics.graphs.probes import by_distance, draw_graph, exact_match, felt, without


def test_one_wrong_pair_loses_the_graph():
    answers = connected(erdos_renyi(4, 5, 0.2, 0.2, generator=1))
    logits = torch.where(answers, 1.0, -1.0)[:, None].repeat(1, 2, 1, 1)
    logits[2, 1, 0, 3] *= -1
    assert exact_match(logits, answers).tolist() == [1.0, 0.75]
    assert exact_match(logits[:, 1], answers).item() == 0.75


def test_pairs_are_told_apart_by_distance():
    chains = disjoint(3, "chain", (6, 1), generator=2)
    assert by_distance(reach(chains, 3), breadth_first(chains)) == {
        0.0: 1.0, 1.0: 1.0, 2.0: 1.0, 3.0: 1.0, 4.0: 0.0, 5.0: 0.0, math.inf: 0.0
    }  # fmt: skip


def test_the_degree_channel_goes_and_the_model_stays():
    model = Channels(ChannelsConfig(1, 2))
    graphs = erdos_renyi(3, 6, 0.3, 0.3, generator=3)[:, None]
    before = model(graphs)
    less = without(model, "degree")
    assert not less.degree[0].any() and not less.read_degree.any() and less.read_local.all()
    assert not without(model, "local").local[0].any() and without(model, "local").degree[0].all()
    with pytest.raises(ValueError, match="channel = 'J'"):
        without(model, "J")
    scores, readout = (without(model, "degree", part) for part in ("scores", "readout"))
    assert not scores.degree[0].any() and scores.read_degree.all() and scores.local[0].all()
    assert not readout.read_degree.any() and readout.degree[0].all() and readout.read_local.all()
    with pytest.raises(ValueError, match="part = 'bias'"):
        without(model, "degree", "bias")
    torch.testing.assert_close(model(graphs), before)
    assert not torch.allclose(less(graphs), before)


def test_what_is_felt_is_the_derivative():
    model = Channels(ChannelsConfig(1, 2)).double()
    graphs = erdos_renyi(3, 6, 0.3, 0.3, generator=4)[:, None].double()
    more = Channels(ChannelsConfig(1, 2)).double()
    more.load_state_dict(model.state_dict())
    more.degree[0].data[:, -1, -1] += 1e-4
    torch.testing.assert_close(
        felt(model, graphs), ((more(graphs) - model(graphs)) / 1e-4).detach(), rtol=1e-6, atol=1e-6
    )


def test_a_drawing_has_a_line_for_each_edge():
    figure, ax = plt.subplots()
    draw_graph(ax, disjoint(1, "cycle", (5, 1), generator=5)[0], ["white"] * 6, order=[5, 4, 3, 2, 1, 0])
    assert len(ax.lines) == 5 and len(ax.collections[0].get_offsets()) == 6
    draw_graph(ax, torch.eye(6), ["white"] * 6, marked=disjoint(1, "chain", (3, 3), generator=5)[0] > 0)
    assert len(ax.lines) == 5 + 4 and all(line.is_dashed() for line in ax.lines[5:])
    plt.close(figure)
