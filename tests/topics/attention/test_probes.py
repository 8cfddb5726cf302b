"""A decoder's patterns, put in place of its fused attention, must give its own streams again."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from companion.core.decoder import Decoder, DecoderConfig
from companion.topics.attention.model import TokenModel, TokenModelConfig
from companion.topics.attention.probes import patterns


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


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_each_head_is_the_softmax_of_its_queries_and_keys(causal, heads):
    decoder = Decoder(DecoderConfig(8, 1, heads, context=6, causal=causal, norm=False, positions=False)).double()
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    found, (Q, K, _) = patterns(decoder, x)[0], decoder.blocks[0].attention.qkv.weight.detach().numpy().reshape(3, 8, 8)
    h = 8 // heads
    for sentence, head, t in np.ndindex(2, heads, 6):
        part = slice(head * h, (head + 1) * h)
        seen = x[sentence, : t + 1 if causal else 6].numpy()
        expected = softmax(seen @ K[part].T @ (Q[part] @ x[sentence, t].numpy()) / np.sqrt(h))
        np.testing.assert_allclose(found[sentence, head, t, : len(seen)], expected, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
def test_linear_attention_weights_by_products_over_the_length(causal):
    config = DecoderConfig(8, 1, 1, context=6, attention="linear", causal=causal, norm=False, positions=False)
    decoder, x = Decoder(config).double(), torch.randn(1, 6, 8, dtype=torch.float64)
    Q, K, _ = decoder.blocks[0].attention.qkv.weight.detach().split(8)
    for t, s in np.ndindex(6, 6):
        expected = 0 if causal and s > t else (Q @ x[0, t] @ (K @ x[0, s])).item() / 6
        assert patterns(decoder, x)[0][0, 0, t, s].item() == pytest.approx(expected)


def test_a_model_around_a_decoder_shows_the_patterns_of_its_decoder():
    model, tokens = TokenModel(TokenModelConfig(9, 6, 8, layers=2, heads=2)), torch.randint(9, (3, 6))
    for whole, inner in zip(patterns(model, tokens), patterns(model.decoder, model.embed(tokens)), strict=True):
        assert torch.equal(whole, inner)
        assert not whole.requires_grad


def test_the_delta_rule_has_no_patterns():
    with pytest.raises(ValueError, match="model = Decoder: must have attention patterns; has only hook_embed"):
        patterns(Decoder(DecoderConfig(8, 1, 2, context=6, attention="delta")), torch.randn(1, 6, 8))
