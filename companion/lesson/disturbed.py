"""Numbers that are off by one unit in the last place, as another processor's rounding would leave them.

What is computed from such numbers tells whether an answer, or a check of it, depends on rounding: a start that is
disturbed stands for a machine that nobody has at hand. Whoever sets ``COURSE_DISTURBED`` to a whole number disturbs a
learner's process in the sandbox (`companion.workshop.grading.sandbox.worker`) in this way, and a lesson's kernel.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

VARIABLE = "COURSE_DISTURBED"
DRAWS = {
    *("rand", "rand_like", "randn", "randn_like", "normal"),
    *("cauchy_", "exponential_", "log_normal_", "normal_", "uniform_"),
    *("kaiming_normal_", "kaiming_uniform_"),  # of nn.init: the others call those above, where they are seen
}
SHARES = range(2, 65)
FRACTIONS = torch.tensor(sorted({k / n for n in SHARES for k in range(n + 1)}), dtype=torch.float64)
WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of a float


def one_unit_off(value: Tensor, seed: int) -> Tensor:
    """Return a new tensor, each entry of which is larger or smaller by one unit in the last place.

    ``seed`` and the entry's own size alone decide which: numbers that are equal stay equal, and opposite ones opposite,
    so that ties, copies and symmetries are kept. Whole numbers stay as they are (0 and 1 of a graph, counts, a mask),
    and so does what would become whole, so that numbers from [0, 1) remain there; and what is no float, or not finite.
    """
    if not value.is_floating_point():
        return value.clone()
    size = value.detach().abs().contiguous()
    bits = size.view(WHOLE[value.element_size()])
    mixed = (bits.long() + seed * 0x9E3779B1) * -0x61C8864680B583EB  # a product that overflows mixes the bits
    mixed = (mixed ^ (mixed >> 29)) * -0x40A7B892E31B1A47
    up = (mixed >> 40) & 1
    off = (bits + (2 * up - 1).to(bits.dtype)).view(value.dtype)
    kept = ~size.isfinite() | (size == size.round()) | (off == off.round())
    moved = torch.where(kept, value.detach(), off.copysign(value.detach()))
    return moved.requires_grad_(value.requires_grad)


def given(value: Any, seed: int) -> Any:
    """Return what an answer is given in the place of an input: a tensor that is `one_unit_off`, but for shares.

    Shares k / n, n up to 64, are counts that were divided: a task may ask for those that equal 13 / 20 or 1 / n, and
    would mean others if they were disturbed. For the same reason numbers that are no tensor, such as a threshold, a
    temperature or a size, stay. Seed 0 disturbs nothing. A gradient passes as if nothing had been done.
    """
    if not seed or not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    size = value.detach()
    moved = torch.where(_shares(size), size, one_unit_off(size, seed))
    return value + (moved - size).nan_to_num() if value.requires_grad else moved  # exact, where both are finite


def _shares(value: Tensor) -> Tensor:
    """Return where an entry is the float next to k / n. Few entries are near such a fraction; those alone are tried
    with every n, for a large input has millions.
    """
    part = value.abs().frac().double().contiguous()
    place = torch.searchsorted(FRACTIONS.to(part.device), part).clamp(1, len(FRACTIONS) - 1)
    off = torch.minimum((part - FRACTIONS[place - 1]).abs(), (FRACTIONS[place] - part).abs())
    near = off <= 2 * torch.finfo(value.dtype).eps * value.abs()
    likely = value[near]
    shares = torch.zeros_like(likely, dtype=torch.bool)
    for n in SHARES:
        shares |= likely == (likely * n).round() / n
    return torch.zeros_like(value, dtype=torch.bool).masked_scatter(near, shares)


class _Disturbing(TorchFunctionMode):
    """Whatever torch draws is one unit off. Initialisers of modules draw through these functions as well."""

    def __init__(self, seed: int):
        super().__init__()
        self.seed = seed

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        got = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") in DRAWS and isinstance(got, Tensor) and got.is_floating_point():
            with torch.no_grad():
                got.copy_(one_unit_off(got, self.seed))
        return got


@contextlib.contextmanager
def disturbed(seed: int) -> Iterator[None]:
    """Disturb every float that torch draws, by ``rand``, ``randn``, ``normal_``, ``uniform_`` or an initialiser, until
    the block ends; see `one_unit_off`. Seed 0 disturbs nothing. What comes next from a generator stays the same.
    """
    with _Disturbing(seed) if seed else contextlib.nullcontext():
        yield


def disturbance() -> int:
    """Return the seed that the environment asks for; 0 where it asks for none."""
    return int(os.environ.get(VARIABLE) or 0)


def stay_disturbed() -> None:
    """Disturb what this thread draws as the environment asks, until the process ends: for a kernel that starts."""
    if seed := disturbance():
        _Disturbing(seed).__enter__()
