"""torch's defaults: float32, on the CPU, with gradients. What a notebook or a package has set for all that is computed
stays out of the course's own computations, or is named.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_defaults() -> Iterator[None]:
    """Make tensors inside as torch does where nobody has set anything, and go on outside as before."""
    dtype, device = torch.get_default_dtype(), _device()
    _set(torch.float32, torch.device("cpu"))
    try:
        yield
    finally:
        _set(dtype, device)


def set_otherwise(*, gradients: bool = False) -> str:
    """Return, in words, which of torch's defaults are changed; with ``gradients``, whether they are off, too."""
    dtype, device = torch.get_default_dtype(), _device()
    changed = [f"torch.set_default_dtype({dtype})"] * (dtype != torch.float32)
    changed += [f"torch.set_default_device({device.type!r})"] * (device.type != "cpu")
    changed += ["torch.set_grad_enabled(False)"] * (gradients and not torch.is_grad_enabled())
    return " and ".join(changed)


def set_back() -> None:
    """Set torch's defaults back, where they are set otherwise, and say so."""
    if changed := set_otherwise(gradients=True):
        _set(torch.float32, torch.device("cpu"))
        torch.set_grad_enabled(True)
        print(f"{changed} was in force here. It is taken back: the lesson computes with torch's own defaults.")


def _device() -> torch.device:
    """Return the default device. After set_default_device(None), torch 2.9 raises in get_default_device."""
    return torch.empty(0).device


def _set(dtype: torch.dtype, device: torch.device) -> None:
    torch.set_default_dtype(dtype)
    if _device() != device:  # a default device, even the CPU, costs every call something
        torch.set_default_device(None if device.type == "cpu" else device)
