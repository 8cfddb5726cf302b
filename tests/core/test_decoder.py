"""The decoder against a forward pass written out in NumPy, and the properties that its switches promise."""

import numpy as np
import pytest
import torch
from core.by_hand import CONFIG, by_hand, decoder, inputs
from refusals import refusals

from companion.core.decoder import Decoder, DecoderConfig, delta_rule


@pytest.mark.parametrize(
    ("attention", "causal"),
    [
        *((kind, causal) for kind in ("softmax", "relu", "linear") for causal in (True, False)),
        ("delta", True),
        ("gated", True),
    ],
)
@pytest.mark.parametrize(
    "switches", [{}, {"norm": False}, {"mlp": 0}, {"mlp": 4}, {"positions": False}, {"heads": 1}, {"heads": 12}]
)
def test_every_stream_equals_the_forward_pass_in_numpy(attention, causal, switches):
    model = decoder(attention=attention, causal=causal, **switches)
    x = inputs(model, length=7)
    output, values = by_hand(model, x)
    streams = [value for name, value in values.items() if name.endswith(("hook_embed", "hook_resid_post"))]
    for stream, reference in zip([*model.streams(x), model(x)], [*streams, output], strict=True):
        np.testing.assert_allclose(stream, reference, rtol=1e-10, atol=1e-10)


def test_open_gates_make_fading_the_linear_attention():
    linear, gated = decoder(attention="linear"), decoder(attention="gated")
    gates = [name for name in gated.state_dict() if name.endswith("gate.weight")]
    gated.load_state_dict(linear.state_dict() | {name: torch.zeros(3, 12) for name in gates})
    for block in gated.blocks:
        block.attention.kept = lambda x: torch.ones(len(x), 3, x.shape[1], x.shape[1], dtype=x.dtype).tril()
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    torch.testing.assert_close(gated(x), linear(x))


def test_an_lstm_in_a_block_reads_the_normed_stream_and_adds_to_it():
    model = decoder(attention="lstm", layers=1, mlp=0, norm=False, positions=False)
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    mixer = model.blocks[0].attention
    torch.testing.assert_close(model(x), x + mixer.cell(x)[0] @ mixer.out.weight.T)
    assert 2 * mixer.cell.hidden_size == model.config.memory == 12 * 12 // 3


def test_a_state_that_cannot_be_two_vectors_is_refused():
    with pytest.raises(ValueError, match=r"heads = 3: .*; must be even, as an LSTM keeps two vectors"):
        DecoderConfig(width=9, layers=1, heads=3, context=4, attention="lstm")


def test_a_full_write_is_read_back_and_leaves_orthogonal_keys_alone():
    k, v = torch.eye(3, dtype=torch.float64)[[0, 1, 0]], torch.randn(3, 3, dtype=torch.float64)
    read = delta_rule(k[[0, 1, 1]], k, v, torch.ones(3, 1, dtype=torch.float64))
    torch.testing.assert_close(
        read, v[[0, 1, 1]]
    )  # the third write, to the first key, does not touch what the second holds
    replaced = delta_rule(k, k, v, torch.ones(3, 1, dtype=torch.float64))[2]
    torch.testing.assert_close(replaced, v[2])  # and replaces what the first held


@pytest.mark.parametrize(
    ("attention", "expected"),
    [("softmax", 3 * 2 * 12 * 7)] + [(kind, 3 * 3 * 16) for kind in ("linear", "gated", "delta", "lstm")],
)
def test_memory_counts_what_a_position_can_know_of_the_past(attention, expected):
    assert decoder(attention=attention).memory(7) == expected


@pytest.mark.parametrize("attention", ["softmax", "linear", "gated", "delta", "lstm"])
@pytest.mark.parametrize("position", [1, 4, 6])
def test_a_causal_decoder_does_not_see_the_future(attention, position):
    model = decoder(attention=attention)
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    changed = x.clone()
    changed[:, position:] += torch.randn_like(x[:, position:])
    for before, after in zip([*model.streams(x), model(x)], [*model.streams(changed), model(changed)], strict=True):
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=1e-12, atol=1e-12)
        assert (after[:, position:] - before[:, position:]).abs().amin(dim=(0, 2)).min() > 1e-9


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_without_the_mask_the_first_position_sees_the_last(attention):
    model = decoder(attention=attention, causal=False)
    x = torch.randn(1, 7, 12, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x)[0, 0].square().sum(), x)
    assert gradient[0, -1].abs().max() > 1e-6


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_without_mask_and_positions_tokens_are_a_set(attention):
    model = decoder(attention=attention, causal=False, positions=False)
    x, order = torch.randn(2, 7, 12, dtype=torch.float64), torch.randperm(7)
    torch.testing.assert_close(model(x[:, order]), model(x)[:, order], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("switches", [{"positions": True, "causal": False}, {"positions": False, "causal": True}])
def test_positions_or_the_mask_give_tokens_an_order(switches):
    model = decoder(**switches)
    x, order = torch.randn(2, 7, 12, dtype=torch.float64), torch.tensor([1, 0, 2, 3, 4, 5, 6])
    assert (model(x[:, order]) - model(x)[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize("positions", [True, False])
def test_streams_start_at_the_input_and_end_before_the_last_norm(positions):
    model = decoder(positions=positions)
    x = torch.randn(2, 4, 12, dtype=torch.float64)
    streams = model.streams(x)
    assert len(streams) == CONFIG["layers"] + 1
    assert torch.equal(streams[0], x + model.positions[:4] if positions else x)
    assert torch.equal(model.norm(streams[-1]), model(x))


def test_linear_attention_alone_is_a_cubic_in_its_input():
    model = decoder(attention="linear", norm=False, mlp=0, positions=False, layers=1)
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    torch.testing.assert_close(model(3 * x) - 3 * x, 27 * (model(x) - x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 4, 12])
def test_streams_start_training_at_variance_of_order_one(layers):
    model = Decoder(DecoderConfig(width=128, layers=layers, heads=4, context=16))
    variances = [stream.var().item() for stream in model.streams(torch.randn(8, 16, 128))]
    assert all(0.5 < variance < 3 for variance in variances)


def test_weights_start_at_one_over_the_root_of_the_fan_in_and_outputs_smaller_with_depth():
    model = Decoder(DecoderConfig(width=128, layers=8, heads=4, context=16))
    for name, parameter in model.blocks.named_parameters():
        if parameter.ndim == 2:
            output = name.endswith(("attention.out.weight", "mlp.3.weight"))
            expected = parameter.shape[1] ** -0.5 / (16**0.5 if output else 1)
            assert parameter.std().item() == pytest.approx(expected, rel=0.05), name


test_a_wrong_config_is_named_with_its_value = refusals(
    ({"width": 0}, "width = 0"),
    ({"layers": 0}, "layers = 0"),
    ({"heads": -1}, "heads = -1"),
    ({"context": 0}, "context = 0"),
    ({"mlp": -1}, "mlp = -1"),
    ({"heads": 5}, "heads = 5: must divide width = 12"),
    ({"attention": "delta", "causal": False}, "causal = False"),
    of=lambda wrong: DecoderConfig(**CONFIG | wrong),
)


@pytest.mark.parametrize("shape", [(2, 8, 12), (2, 5, 11)])
def test_an_input_too_long_or_of_another_width_is_refused(shape):
    with pytest.raises(ValueError, match=r"must be \(batch, length, 12\), with length at most 7"):
        Decoder(DecoderConfig(**CONFIG)).streams(torch.zeros(shape))
