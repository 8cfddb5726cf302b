"""Two arrangements of recall: what each shows, that it can be solved from that, and a layer that looks back alone."""

import pytest
import torch
from torch import Generator

from companion.core.task import tasks
from companion.topics.layers.arrangements import GatedConvolution, apart, written_twice

RECALL = tasks("smoke")["recall"]
SIZES = pytest.mark.parametrize("size", (*RECALL.sizes, None))
ARRANGED = pytest.mark.parametrize("arrange", [written_twice, apart])


def drawn(arrange, size, seed=0):
    return arrange(RECALL).draw(500, Generator().manual_seed(seed), size)


@ARRANGED
@SIZES
def test_the_best_answer_is_always_right_and_a_blind_one_by_chance(arrange, size):
    task, problems = arrange(RECALL), drawn(arrange, size)
    assert task.score(task.best(problems.inputs), problems) == 1
    assert task.score(task.blind(problems.inputs), problems) == pytest.approx(1 / RECALL.outputs, abs=0.04)
    assert problems.inputs.max() < task.vocabulary
    assert problems.counts.sum(1).eq(problems.inputs.shape[1] // 3).all()


@ARRANGED
def test_a_seed_decides_what_is_drawn(arrange):
    first, again, other = (drawn(arrange, 4, seed).inputs for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_every_key_is_written_twice_with_values_of_which_the_earlier_is_no_answer():
    inputs, targets, counts = drawn(written_twice, 4)
    earlier, later, asked = inputs.unflatten(1, (3, 4)).unbind(1)
    for block in (later, asked):
        assert torch.equal(block[..., 0].sort(1).values, earlier[..., 0].sort(1).values)
    assert (earlier[..., 1] > 0).all()
    assert (later[..., 1] > 0).all()
    assert (asked[..., 1] == 0).all()
    same = asked[..., 0][:, :, None] == earlier[..., 0][:, None]
    before = (same * earlier[..., 1][:, None]).sum(-1) - (RECALL.vocabulary - RECALL.outputs)
    right = (before == targets[counts].view(-1, 4)).double().mean()
    assert right == pytest.approx(1 / RECALL.outputs, abs=0.04)
    seen = torch.bincount(earlier[..., 1].flatten()).nonzero().flatten()
    assert len(seen) == RECALL.outputs, "every value comes"


def test_apart_shows_a_key_then_its_value_and_the_number_of_each_position():
    inputs = drawn(apart, 4).inputs
    together = RECALL.draw(500, Generator().manual_seed(0), 4).inputs
    assert torch.equal(inputs[:, :8:2, 0], together[:, :4, 0])
    assert torch.equal(inputs[:, 1:8:2, 0], together[:, :4, 1])
    assert torch.equal(inputs[:, 8:, 0], together[:, 4:, 0])
    assert torch.equal(inputs[0, :, 1], RECALL.vocabulary + torch.arange(12))


def test_a_gated_convolution_multiplies_two_maps_and_looks_back_alone():
    torch.manual_seed(0)
    layer, x = GatedConvolution(2, longest=8), torch.randn(3, 5, 2)
    weights, bias = layer.filter.weight[:, 0], layer.filter.bias  # the last weight is that of the position itself
    told = torch.stack([bias + sum(weights[:, 7 - t + s] * x[:, s] for s in range(t + 1)) for t in range(5)], 1)
    torch.testing.assert_close(layer(x), told * layer.gate(x))
