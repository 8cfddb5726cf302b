"""Calling near misses, which may do anything, and comparing what they give."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

MOST_ENTRIES = 100_000  # of a tensor on the way


class Guard(TorchFunctionMode):
    """Stops what would complain on the terminal or fill the memory, and makes least squares the same each time.

    LAPACK complains of least squares of nothing, or of what is not finite. Of too low a rank they have many solutions, of
    which the driver gelsd alone gives one (torch hands gelsy a permutation that it has not set). A tensor grows without
    end that gets an axis in each round of a loop, or a power of a power of two as its size.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.linalg.lstsq and not (args[0].numel() and all(matrix.isfinite().all() for matrix in args)):
            raise ValueError
        drivers = {"driver": "gelsd"} if function is torch.linalg.lstsq else {}
        got = function(*args, **drivers | (kwargs or {}))
        if isinstance(got, Tensor) and got.numel() > MOST_ENTRIES:
            raise ValueError
        return got


def called(function: Callable[..., Any], inputs: list[Any]) -> Tensor | None:
    """Call a function on copies; None if it crashes, or gives no tensor."""
    try:
        with torch.no_grad():
            got = function(*(value.clone() if isinstance(value, Tensor) else value for value in inputs))
    except (Exception, SystemExit):  # a near miss that does not run is none
        return None
    return got if isinstance(got, Tensor) and got.device.type == "cpu" else None


def same(got: Tensor | None, other: Tensor | None, tolerance: float) -> bool:
    """Return whether two results are equal within ``tolerance``, relative to the largest; NaN equals NaN, and no result
    none.
    """
    if got is None or other is None:
        return got is other
    if got.shape != other.shape or got.is_complex() != other.is_complex():
        return False
    if not other.numel():
        return True
    if not (got.is_floating_point() or other.is_floating_point() or got.is_complex()):
        return bool(torch.equal(got.long(), other.long()))
    wide = torch.complex128 if got.is_complex() else torch.float64
    got, other = got.to(wide), other.to(wide)
    sizes, off = other.abs(), float((got - other).abs().max())
    if math.isfinite(off):  # as are then all entries
        return off <= tolerance * float(sizes.max())
    within = tolerance * torch.where(sizes.isfinite(), sizes, 0).max()
    return torch.allclose(got, other, rtol=0, atol=float(within), equal_nan=True)


def unrestricted(inputs: dict[str, Any], seed: int, *, whole: bool = False) -> dict[str, Any]:
    """Draw inputs of the same shapes, with floating-point numbers of any size and sign; for ``whole``, fractions in the
    place of whole numbers, too.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            return 2 * torch.randn(value.shape, generator=generator, dtype=value.dtype) + 0.3
        if whole and isinstance(value, Tensor) and value.dtype == torch.int64:
            return value + torch.rand(value.shape, generator=generator, dtype=torch.float64) - 0.5
        return value

    return {name: drawn(value) for name, value in inputs.items()}
