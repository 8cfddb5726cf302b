"""The LSTM against its equations in NumPy, and how much it can know of the past."""

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.special import expit

from companion.core.lstm import LSTM, LSTMConfig


def lstm(width=6, layers=3) -> LSTM:
    """An LSTM in float64 whose every parameter, biases included, is random."""
    model = LSTM(LSTMConfig(width, layers)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.7)
    return model


def numpy_streams(model: LSTM, x: np.ndarray) -> list[np.ndarray]:
    """Hochreiter and Schmidhuber's cell with forget gates, one sequence, position and layer at a time."""
    width, streams = model.config.width, [x]
    for layer in model.layers:
        W, U, b, b2 = (parameter.numpy() for parameter in layer.parameters())
        states = np.zeros_like(streams[-1])
        for sequence in range(len(x)):
            h, c = np.zeros(width), np.zeros(width)
            for t in range(x.shape[1]):
                i, f, g, o = np.split(W @ streams[-1][sequence, t] + b + U @ h + b2, 4)
                c = expit(f) * c + expit(i) * np.tanh(g)
                h = expit(o) * np.tanh(c)
                states[sequence, t] = h
        streams.append(states)
    return streams


@torch.no_grad()
@pytest.mark.parametrize(("width", "layers"), [(6, 3), (1, 1), (16, 2)])
def test_every_stream_equals_the_equations(width, layers):
    model, x = lstm(width, layers), torch.randn(2, 7, width, dtype=torch.float64)
    for ours, reference in zip(model.streams(x), numpy_streams(model, x.numpy()), strict=True):
        np.testing.assert_allclose(ours.numpy(), reference, rtol=1e-10, atol=1e-10)
    assert torch.equal(model(x), model.streams(x)[-1])


def test_forget_gates_start_open_and_the_others_do_not():
    for layer in LSTM(LSTMConfig(32, 2)).layers:
        i, f, g, o = layer.bias_ih_l0.chunk(4)
        assert torch.equal(f, torch.ones(32))
        assert max(gate.abs().max() for gate in (i, g, o)) < 0.5


def test_memory_is_the_same_for_every_length():
    assert lstm(6, 3).memory(5) == lstm(6, 3).memory(500) == 2 * 6 * 3


test_a_wrong_config_is_named_with_its_value = refusals(
    ({"width": 0}, "width = 0"),
    ({"layers": 0}, "layers = 0"),
    of=lambda wrong: LSTMConfig(**{"width": 4, "layers": 2} | wrong),
)
