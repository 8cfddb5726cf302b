"""Named blocks against slices written out, and a head against loops over queries and keys."""

import math

import numpy as np
import pytest
import torch

from companion.core.blocks import Blocks, Head
from companion.topics.attention import by_hand as attention
from companion.topics.regression import by_hand as regression


def test_blocks_lie_side_by_side_in_the_order_of_their_names():
    blocks = Blocks(token=5, position=8, previous=5)
    assert blocks.width == 18
    assert [blocks[name] for name in ("token", "position", "previous")] == [slice(0, 5), slice(5, 13), slice(13, 18)]
    assert blocks.size("position") == 8


def test_a_matrix_reads_one_block_and_writes_another():
    blocks, values = Blocks(a=2, b=3), torch.randn(3, 2, dtype=torch.float64)
    x = torch.randn(5, dtype=torch.float64)
    written = blocks.matrix("b", "a", values) @ x
    assert torch.equal(written[2:], values @ x[:2])
    assert not written[:2].any()
    blocks = Blocks(a=2, b=2)
    assert torch.equal(blocks.matrix("a", "b") @ torch.arange(4.0).double(), torch.tensor([2.0, 3, 0, 0]).double())


@pytest.mark.parametrize("kind", ["softmax", "relu"])
def test_a_head_adds_what_its_weights_find(kind):
    def relu(scores):
        return scores.relu() / 7

    x, qk, ov = (torch.randn(shape, dtype=torch.float64) for shape in ((2, 6, 4), (4, 4), (4, 4)))
    head = Head(qk, ov) if kind == "softmax" else Head(qk, ov, weights=relu)
    found, pattern = head(x), head.pattern(x)
    for b, t in np.ndindex(2, 6):
        scores = [float(x[b, t] @ qk @ x[b, s]) for s in range(6)]
        if kind == "softmax":
            total = sum(math.exp(score) for score in scores[: t + 1])
            weights = [math.exp(score) / total if s <= t else 0 for s, score in enumerate(scores)]
        else:
            weights = [max(score, 0) / 7 for score in scores]
        np.testing.assert_allclose(pattern[b, t], weights, atol=1e-12)
        added = sum(weight * (ov @ x[b, s]) for s, weight in enumerate(weights))
        np.testing.assert_allclose(found[b, t], added, atol=1e-10)


def test_all_constructions_have_one_head_and_one_kind_of_blocks():
    network = regression.NewtonTransformer(2, 5, 1, 0.1)
    assert attention.Head is regression.Head is Head
    assert attention.Blocks is type(network.blocks) is Blocks
    with pytest.raises(ValueError, match="block = 'z': must be one of a, b, q, w, y, t, out"):
        network.blocks["z"]
