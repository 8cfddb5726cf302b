"""Seventeen numbers, two channels, no names: the disentangled transformer against its definition."""

import pytest
import torch
from refusals import refusals

from companion.topics.graphs.data import disjoint, erdos_renyi
from companion.topics.graphs.model import Channels, ChannelsConfig, GraphModel, GraphModelConfig


def dense(model, run, graph):
    """The same by matrices of the full size, h -> [h, ReLU(h W h^T) h / n], W = A (x) I + B (x) J."""
    n = len(graph)
    eye, ones = torch.eye(n), torch.ones(n, n)
    h = torch.cat([eye, graph], 1)
    for local, degree in zip(model.local, model.degree, strict=True):
        W = torch.kron(local[run], eye) + torch.kron(degree[run], ones)
        h = torch.cat([h, (h @ W @ h.T).relu() @ h / n], 1)
    W = torch.kron(model.read_local[run, :, None], eye) + torch.kron(model.read_degree[run, :, None], ones)
    return h @ W + model.bias[run]


@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_the_disentangled_transformer(layers):
    model = Channels(ChannelsConfig(layers, 3))
    for numbers in model.parameters():
        torch.nn.init.normal_(numbers)
    graphs = erdos_renyi(4, 6, 0.3, 0.3, generator=1)
    logits = model(graphs[:, None])
    for b in range(4):
        for run in range(3):
            torch.testing.assert_close(logits[b, run], dense(model, run, graphs[b]), rtol=1e-4, atol=1e-4)
    apart = model(graphs[:3][None])  # each run its own graph
    torch.testing.assert_close(apart[0], logits[torch.arange(3), torch.arange(3)], rtol=1e-4, atol=1e-4)


def test_one_layer_has_seventeen_numbers_and_names_do_not_matter():
    model = Channels(ChannelsConfig())
    assert sum(numbers.numel() for numbers in model.parameters()) == 17
    graphs = erdos_renyi(3, 7, 0.3, 0.3, generator=2)
    order = torch.randperm(7)
    torch.testing.assert_close(
        model(graphs[:, order][:, :, order][:, None]), model(graphs[:, None])[:, :, order][:, :, :, order]
    )


def test_runs_do_not_share_gradients():
    model = Channels(ChannelsConfig(1, 2))
    model(disjoint(2, "chain", (3, 2), generator=0)[:, None])[:, 0].sum().backward()
    assert model.local[0].grad[0].any() and not model.local[0].grad[1].any()


def test_the_standard_model_reads_rows_and_answers_rows():
    model = GraphModel(GraphModelConfig(6, 16, heads=2))
    graphs = erdos_renyi(5, 6, 0.3, 0.3, generator=3)
    assert model(graphs).shape == (5, 6, 6)
    _, cache = model.run_with_cache(graphs)
    assert cache["blocks.0.attn.hook_pattern"].shape == (5, 2, 6, 6)


test_bad_arguments_are_named = refusals(
    (lambda: ChannelsConfig(1, 0), "runs = 0"), (lambda: GraphModelConfig(0), "n = 0")
)
