"""What goes through a layer, seen from outside: how all that comes out moves with each number that goes in."""

import copy
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

NUDGE = 1e-5


@torch.no_grad()
def jacobian(
    layer: Callable[[Tensor], Tensor], x: Float[Tensor, "time width"]
) -> Float[Tensor, "time width later out"]:
    """Measure d y[t, j] / d x[s, i] at [s, i, t, j], by nudging one input number at a time, up and down, in float64.

    ``layer``: anything from (batch, time, width) to (batch, time, out). A module stays as it is.
    ``x``: the input around which it is nudged.

    The exact rank of what leads from the positions before one to those after it is the least number of numbers that a
    layer can carry across (Ho and Kalman 1966, for linear systems). Rounding, and a bend within a step, can add to it.
    """
    x = x.double()
    nudges = NUDGE * torch.eye(x.numel(), dtype=x.dtype, device=x.device).view(-1, *x.shape)
    if isinstance(layer, torch.nn.Module):
        layer = copy.deepcopy(layer).double()
    moved = layer(x + nudges) - layer(x - nudges)  # what bends alike on both sides cancels
    return (moved / (2 * NUDGE)).view(*x.shape, *moved.shape[1:])
