"""What goes over the pipe between the grader and a sandboxed process: a line ``SIZE JSON`` and SIZE bytes of
safetensors.

Nothing here rebuilds an object by running code, and `decode` believes nothing: it is how the grader reads what hostile
code wrote.
"""

import json
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
}
PLAIN = bool | int | float | str | None
HEAD = 1 << 16  # bytes in which safetensors say what there is


class WireError(ValueError):
    """What came over the pipe is not what `encode` writes, or what should go over it cannot."""


def encode(message: dict[str, Any], values: list[Any] | None = None) -> bytes:
    """``message`` with ``values``: tensors, numbers, texts or None, in order. Raises WireError for anything else."""
    forms, tensors = [], {}
    for number, value in enumerate(values or []):
        if isinstance(value, PLAIN):
            forms.append({"value": value})
        elif not isinstance(value, Tensor):
            raise WireError(
                f"a value of type {type(value).__name__} cannot be passed on; must be a tensor, a number or a text"
            )
        else:
            forms.append({"tensor": str(number), "complex": value.is_complex()})
            tensors[str(number)] = _real(value.detach().resolve_conj().resolve_neg().cpu())
    data = save(tensors) if tensors else b""
    return b"%d %s\n" % (len(data), json.dumps(message | {"values": forms}).encode()) + data


def _real(value: Tensor) -> Tensor:
    """Safetensors has no complex128: a last axis of two holds the parts. A copy, for memory may not be shared there."""
    return (torch.view_as_real(value) if value.is_complex() else value).clone(memory_format=torch.contiguous_format)


def decode(text: bytes, raw: bytes) -> tuple[dict[str, Any], list[Any]]:
    """Return what `encode` was given. Raises WireError for anything else."""
    try:
        message = json.loads(text)
        forms = message.pop("values")
        if not isinstance(forms, list):
            raise WireError("values must be a list")
        if int.from_bytes(raw[:8], "little") > HEAD:
            raise WireError("there are too many tensors, or their names are too long")
        tensors = load(raw) if raw else {}
        return message, [_value(form, tensors) for form in forms]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, RuntimeError, SafetensorError) as error:
        raise WireError(f"{type(error).__name__}: {error}"[:200]) from None


def _value(form: dict, tensors: dict[str, Tensor]) -> Any:
    if "tensor" in form:
        value = tensors[form["tensor"]]
        return torch.view_as_complex(value) if form["complex"] is True else value
    if not isinstance(form["value"], PLAIN):
        raise WireError("a value must be a tensor, a number or a text")
    return form["value"]
