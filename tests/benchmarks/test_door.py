"""What hooks cost a decoder that is asked for nothing, beside the same forward pass without one.

Both must give the same answers, which every run of the tests asserts; only ``--benchmark-enable`` asserts the ratio.
"""

import statistics
import time

import pytest
import torch
import torch.nn.functional as F

from companion.core.decoder import Decoder, DecoderConfig

SIZES = {"small": (64, 4, 4, 16, 32), "lesson": (128, 8, 4, 41, 64)}  # width, layers, heads, length, batch


def plain_forward(model, x):
    """The decoder without names: what its forward pass computes, and nothing beside."""
    batch, length, width = x.shape
    x = x + model.positions[:length]
    for block in model.blocks:
        qkv = block.attention.qkv(block.norm1(x)).view(batch, length, 3, model.config.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + block.attention.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + block.mlp(x)
    return model.norm(x)


def seconds(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


@pytest.mark.parametrize("size", SIZES)
@torch.no_grad()
def test_a_door_that_nobody_uses_costs_next_to_nothing(benchmark, capsys, size):
    width, layers, heads, length, batch = SIZES[size]
    model = Decoder(DecoderConfig(width, layers, heads, context=length))
    x = torch.randn(batch, length, width)
    assert torch.equal(benchmark.pedantic(model, (x,), rounds=20, warmup_rounds=3), plain_forward(model, x))
    if benchmark.enabled:  # in turns, so that whatever else the machine does falls on both
        pairs = [(seconds(lambda: model(x)), seconds(lambda: plain_forward(model, x))) for _ in range(60)]
        ratio = statistics.median(ours / plain for ours, plain in pairs)
        benchmark.extra_info |= {"ratio": ratio}
        with capsys.disabled():
            print(f"\na decoder with unused hooks, {size}: {ratio:.3f} times the plain forward pass")
        assert ratio < 1.05
