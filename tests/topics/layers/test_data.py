"""Keys that are written twice: what is shown, that it can be answered from that, and not from the earlier value."""

import pytest
import torch
from torch import Generator

from companion.core.task import tasks
from companion.topics.layers.data import written_twice

RECALL = tasks("smoke")["recall"]
TWICE = written_twice(RECALL)


def drawn(size, seed=0):
    return TWICE.draw(500, Generator().manual_seed(seed), size)


@pytest.mark.parametrize("size", (*RECALL.sizes, None))
def test_the_best_answer_is_always_right_and_a_blind_one_by_chance(size):
    problems = drawn(size)
    assert TWICE.score(TWICE.best(problems.inputs), problems) == 1
    assert TWICE.score(TWICE.blind(problems.inputs), problems) == pytest.approx(1 / RECALL.outputs, abs=0.04)
    assert problems.inputs.max() < TWICE.vocabulary
    assert problems.counts.sum(1).eq(problems.inputs.shape[1] // 3).all()


def test_a_seed_decides_what_is_drawn():
    first, again, other = (drawn(4, seed).inputs for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_every_key_is_written_twice_with_values_of_which_the_earlier_is_no_answer():
    inputs, targets, counts = drawn(4)
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
