"""What goes over the pipe comes out as it went in, and nothing else does."""

import pytest
import torch
from safetensors.torch import save

from companion.workshop.grading.sandbox import wire

VALUES = [
    torch.arange(6.0).reshape(2, 3).mT,
    torch.tensor(1 + 2j, dtype=torch.complex128).conj(),
    torch.zeros(0, 3),
    torch.tensor(True),
    torch.ones(2, dtype=torch.bfloat16, requires_grad=True),
    *(3, 2.5, float("inf"), "text", None, True),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_goes_over_the_wire(value):
    line, _, raw = wire.encode({"a": 1}, [value, 7]).partition(b"\n")
    message, (got, seven) = wire.decode(line.partition(b" ")[2], raw)
    assert message == {"a": 1} and seven == 7
    if not isinstance(value, torch.Tensor):
        assert got == value and type(got) is type(value)
    else:
        assert got.dtype == value.dtype and got.shape == value.shape and got.device == value.device
        assert torch.equal(got, value)


def test_what_is_no_tensor_number_or_text_stays_outside():
    with pytest.raises(wire.WireError, match="a value of type Linear cannot be passed on"):
        wire.encode({}, [torch.ones(2), torch.nn.Linear(2, 2)])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"values": 3}',
        b'{"values": [[]]}',
        b'{"values": [{"value": {}}]}',
        b'{"values": [{"tensor": "0", "complex": false}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_nothing_else_does(text):
    with pytest.raises(wire.WireError):
        wire.decode(text, b"12345678")


def test_tensors_of_a_thousand_names_are_refused_before_they_are_made():
    data = save({f"{n}": torch.zeros(1) for n in range(2_000)})
    with pytest.raises(wire.WireError, match="too many tensors"):
        wire.decode(b'{"values": []}', data)
