"""A decoder's patterns, put in place of its fused attention, must give its own streams again."""

import pytest
import torch

from companion.models.decoder import Decoder, DecoderConfig
from companion.probes.attention import patterns


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("width", "layers", "heads", "mlp"), [(12, 2, 3, 0), (8, 3, 1, 2), (16, 1, 4, 4)])
def test_the_patterns_are_what_the_decoder_uses(causal, width, layers, heads, mlp):
    decoder = Decoder(DecoderConfig(width, layers, heads, context=9, causal=causal, mlp=mlp)).double()
    x = torch.randn(2, 7, width, dtype=torch.float64)
    found, streams = patterns(decoder, x), decoder.streams(x)
    assert [tuple(pattern.shape) for pattern in found] == [(2, heads, 7, 7)] * layers
    for block, pattern, stream in zip(decoder.blocks, found, streams[:-1], strict=True):
        normed = block.norm1(stream)
        values = normed @ block.attention.qkv.weight[2 * width :].T
        mixed = [pattern[:, head] @ part for head, part in enumerate(values.split(width // heads, dim=-1))]
        torch.testing.assert_close(block.attention(normed), torch.cat(mixed, dim=-1) @ block.attention.out.weight.T)
        torch.testing.assert_close(pattern.sum(-1), torch.ones_like(pattern[..., 0]))


def test_a_causal_pattern_does_not_look_ahead():
    found = patterns(Decoder(DecoderConfig(8, 2, 2, context=6)), torch.randn(3, 6, 8))
    assert not any(pattern.triu(1).any() for pattern in found)


@pytest.mark.parametrize("kind", ["linear", "delta"])
def test_other_kinds_of_attention_have_no_patterns(kind):
    with pytest.raises(ValueError, match=f"attention = '{kind}'"):
        patterns(Decoder(DecoderConfig(8, 1, 2, context=6, attention=kind)), torch.randn(1, 6, 8))
