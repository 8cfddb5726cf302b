"""Each suspect solves its sentences, and needs layer 1 in the wires that are said, measured by heads as they are."""

import pytest
import torch

from companion.core.blocks import causal_softmax
from companion.topics.attention.suspects import CARRIES, suspects


def accuracy(drawn, suspect, reads, adds_to):
    """The fraction of settled tokens that layer 2 gets right, if its three wires read these streams."""
    WQ, WK, WV, WO = drawn["second"][suspect]
    q, k, v = (torch.einsum("ntd,hcd->nhtc", x, W) for x, W in zip(reads, (WQ, WK, WV), strict=True))
    added = torch.einsum("nhts,nhsc,hcd->ntd", causal_softmax(q @ k.mT), v, WO)
    logits = (adds_to + added) @ drawn["unembed"][suspect].mT
    return (logits.argmax(-1) == drawn["targets"])[drawn["settled"]].double().mean()


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("suspect", range(3))
def test_a_suspect_needs_layer_1_where_it_is_said_to(suspect, seed):
    drawn = suspects(8, torch.Generator().manual_seed(seed))
    before, after = drawn["before"][suspect], drawn["after"][suspect]
    assert accuracy(drawn, suspect, [after] * 3, after) > 0.95
    assert accuracy(drawn, suspect, [before] * 3, before) < 0.5
    for wire, carries in enumerate(CARRIES[suspect]):
        reads = [before if wire == other else after for other in range(3)]
        assert (accuracy(drawn, suspect, reads, after) < 0.5) == carries


def test_whoever_adds_to_another_stream_is_misled():
    drawn = suspects(8, torch.Generator().manual_seed(0))
    before, after = drawn["before"][0], drawn["after"][0]
    assert accuracy(drawn, 0, [after] * 3, before) < 0.5


def test_where_layer_2_finds_nothing_a_stream_to_which_layer_1_has_written_is_wrong():
    drawn = suspects(24, torch.Generator().manual_seed(0))
    before, after = drawn["before"][2], drawn["after"][2]
    assert accuracy(drawn, 2, [after, before, before], after) < 0.02
    assert accuracy(drawn, 2, [after, before, before], before) > 0.04


def test_whoever_sees_the_future_is_misled():
    drawn = suspects(8, torch.Generator().manual_seed(0))
    tokens, settled = drawn["targets"], drawn["settled"]
    assert settled.sum(1).min() >= 8
    middle = tokens.shape[1] // 2
    assert torch.equal(tokens[:, :middle].flip(1), tokens[:, middle:])
    assert not settled[:, middle:].any()
