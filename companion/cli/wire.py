"""What goes over the pipe between the grader and a sandboxed process: a line ``SIZE JSON`` and SIZE raw bytes, the tensors' entries.

Nothing here rebuilds an object by running code, and `decode` believes nothing: it is how the grader reads what hostile code wrote.
"""

import json
import math
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}


class WireError(ValueError):
    """What came over the pipe is not what `encode` writes."""


def encode(message: dict[str, Any], values: list[Any] | None = None) -> bytes:
    """``message`` with ``values``: tensors, numbers, texts or None, in order."""
    forms, raw = [], []
    for value in values or []:
        if not isinstance(value, Tensor):
            forms.append({"value": value})
            continue
        form = {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape), "meta": value.device.type == "meta"}
        if not form["meta"]:
            raw.append(value.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        forms.append(form)
    data = b"".join(raw)
    return b"%d %s\n" % (len(data), json.dumps(message | {"values": forms}).encode()) + data


def decode(text: bytes, raw: bytes) -> tuple[dict[str, Any], list[Any]]:
    """What `encode` was given. Raises WireError for anything else."""
    try:
        message = json.loads(text)
        forms = message.pop("values")
        if not isinstance(forms, list):
            raise WireError("values must be a list")
        values, start = [], 0
        for form in forms:
            if "dtype" in form:
                value, start = _tensor(form, raw, start)
                values.append(value)
            else:
                value = form["value"]
                if not isinstance(value, bool | int | float | str | None):
                    raise WireError("a value must be a tensor, a number or a text")
                values.append(value)
        return message, values
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, RuntimeError) as error:
        raise WireError(f"{type(error).__name__}: {error}"[:200]) from None


def _tensor(form: dict, raw: bytes, start: int) -> tuple[Tensor, int]:
    dtype, shape = DTYPES[form["dtype"]], form["shape"]
    if not (isinstance(shape, list) and len(shape) <= 16 and all(type(size) is int and 0 <= size < 1 << 31 for size in shape)):
        raise WireError("a shape is a list of sizes")
    if form["meta"]:
        return torch.empty(shape, dtype=dtype, device="meta"), start
    end = start + math.prod(shape) * dtype.itemsize
    if end > len(raw):
        raise WireError("fewer bytes than the shape needs")
    if end == start:
        return torch.empty(shape, dtype=dtype), start
    entries = torch.frombuffer(bytearray(raw[start:end]), dtype=torch.uint8)
    return (entries != 0 if dtype is torch.bool else entries.view(dtype)).reshape(shape), end
