"""What goes through a layer is measured as automatic differentiation has it, and counts the states that are known."""

import pytest
import torch
from torch import nn

from companion.core.training import seeded
from companion.topics.layers.exercises import numbers_carried, sees
from companion.topics.layers.known import KNOWN
from companion.topics.layers.probes import jacobian

WIDTH = 8


class First(nn.Module):
    def forward(self, both):
        return both[0]


@pytest.fixture(params=KNOWN)
def layer(request):
    with seeded(0):
        return KNOWN[request.param](WIDTH)


def test_it_is_what_differentiation_gives(layer):
    x = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = jacobian(layer, x)
    assert {parameter.dtype for parameter in layer.parameters()} == {torch.float32}  # as it was
    layer.double()
    exact = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], x)  # [t, j, s, i]
    assert torch.allclose(found, exact.permute(2, 3, 0, 1), atol=1e-4)


def test_no_known_layer_sees_the_future_and_each_sees_the_past(layer):
    seen = sees.answer(jacobian(layer, torch.randn(6, WIDTH, generator=torch.Generator().manual_seed(1))))
    assert torch.equal(seen, torch.ones(6, 6, dtype=torch.bool).tril())


@pytest.mark.parametrize("name, state", [("linear", 16), ("delta", 16), ("gated", 16), ("lstm", 8)])
def test_the_numbers_carried_are_those_of_the_state(name, state):
    """Four heads of width 2 have four tables of 2 x 2; an LSTM of 4 hidden units has h and c."""
    with seeded(0):
        layer = KNOWN[name](WIDTH)
    x = torch.randn(20, WIDTH, generator=torch.Generator().manual_seed(1))
    found = jacobian(layer, x)
    assert [numbers_carried.answer(found, seen).item() for seen in (8, 12)] == [state] * 2


@pytest.mark.parametrize("seed", [0, 1])
def test_what_bends_strongly_counts_no_more_than_its_state(seed):
    """Steps to one side count 3 of a GRU with two units whose weights are large."""
    with seeded(seed):
        bends, read = nn.GRU(WIDTH, 2, batch_first=True), nn.Linear(2, WIDTH)
        for parameter in bends.parameters():
            parameter.data *= 4
        found = jacobian(nn.Sequential(bends, First(), read), torch.randn(20, WIDTH))
    assert [numbers_carried.answer(found, seen).item() for seen in (8, 12)] == [2, 2]


def test_what_only_a_function_is_can_be_asked_too():
    found = jacobian(lambda x: x.cumsum(1), torch.zeros(3, 2))
    assert torch.allclose(found, torch.einsum("st,ij->sitj", torch.ones(3, 3).triu(), torch.eye(2)).double())
    assert jacobian(nn.Linear(2, 1), torch.zeros(3, 2)).shape == (3, 2, 3, 1)
    assert numbers_carried.answer(found, 2) == 2  # a sum of all so far is a state of one number for each


def test_a_layer_that_raises_is_left_as_it_was():
    layer = nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match="shapes"):
        jacobian(layer, torch.zeros(3, 2))
    assert layer.weight.dtype == torch.float32
