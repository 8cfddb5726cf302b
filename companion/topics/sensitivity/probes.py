"""How often an answer changes when one part of the input does, and how much a loss does when the weights do."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from companion.core.arguments import as_generator, at_least

MANY = 256  # inputs at a time: so what a model makes of them fits into the cache


@torch.no_grad()
def answers(model: nn.Module, x: Float[Tensor, "*batch length features"]) -> Tensor:
    """Return the likeliest class of every input, some hundred at a time: (*batch)."""
    flat = x.flatten(0, -3)
    return torch.cat([model(part).argmax(-1) for part in flat.split(MANY)]).view(x.shape[:-2])


def changes(
    model: nn.Module, x: Float[Tensor, "batch length features"], other: Float[Tensor, "batch copies length features"]
) -> Bool[Tensor, "batch copies"]:
    """Return whether the answer to each copy is another than the answer to the input itself."""
    return answers(model, other) != answers(model, x)[:, None]


def noisy_parts(
    x: Float[Tensor, "batch length features"], std: float, *, generator: torch.Generator | int
) -> Float[Tensor, "batch length length features"]:
    """Draw as many copies of every input as it has vectors: in copy i vector i has N(0, std^2) added (Vasudeva et al.
    2025, arXiv:2403.06925, by its definition; its code perturbs scattered pixels).
    """
    generator = as_generator(generator)
    copies = x[:, None].repeat(1, x.shape[1], 1, 1)
    noise = std * torch.randn(x.shape, generator=generator, device=generator.device).to(x.device)
    place = torch.arange(x.shape[1])
    copies[:, place, place] += noise
    return copies


def largest_curvature(
    loss: Callable[[], Tensor], model: nn.Module, steps: int = 20, *, generator: torch.Generator | int
) -> float:
    """Compute the Hessian's eigenvalue of the largest size at a model's weights, by power iteration with products H v,
    which are the gradient of (gradient . v).

    It is not the same after weights are rescaled in a way that leaves the function as it is.

    ``loss``: of the model, computed anew at every call.
    ``model``: whose weights.
    ``steps``: of the iteration.
    ``generator``: a seed, or a generator, for the direction at the start.

    Raises ValueError for a number of steps below 1.
    """
    at_least(steps=(steps, 1))
    weights = list(model.parameters())
    with sdpa_kernel(SDPBackend.MATH):  # the faster kernels have no second derivative
        slopes = torch.autograd.grad(loss(), weights, create_graph=True)
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    direction = [torch.randn(each.shape, **where).to(each.device) for each in weights]
    value = 0.0
    for _ in range(steps):
        length = sum(each.square().sum() for each in direction).sqrt()
        direction = [each / length for each in direction]
        along = sum((slope * each).sum() for slope, each in zip(slopes, direction, strict=True))
        product = torch.autograd.grad(along, weights, retain_graph=True)
        value = sum((each * other).sum() for each, other in zip(direction, product, strict=True)).item()
        direction = list(product)
    return value


@torch.no_grad()
def rise_under_noise(
    loss: Callable[[], Tensor], model: nn.Module, std: float, repeats: int = 10, *, generator: torch.Generator | int
) -> float:
    """By how much N(0, std^2) on every weight raises the loss, on the mean of some draws (Hahn and Rofin 2024,
    arXiv:2402.09963, measure sharpness so). The weights are as before in the end.

    ``loss``: of the model, computed anew at every call.
    ``model``: whose weights.
    ``std``: of the noise.
    ``repeats``: how many draws.
    ``generator``: a seed, or a generator.

    Raises ValueError for a number of repeats below 1.
    """
    at_least(repeats=(repeats, 1))
    generator = as_generator(generator)
    weights = list(model.parameters())
    kept = [each.clone() for each in weights]
    before, risen = loss().item(), 0.0
    for _ in range(repeats):
        for each, old in zip(weights, kept, strict=True):
            noise = torch.randn(old.shape, generator=generator, device=generator.device).to(old.device)
            each.copy_(old + std * noise)
        risen += loss().item() - before
    for each, old in zip(weights, kept, strict=True):
        each.copy_(old)
    return risen / repeats
