"""What a layer is asked before any training, because training would not tell: each question has a name."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.training import seeded

BATCH, LENGTH, SEEN = 3, 12, 7
CLOSE = 1e-4  # of the largest output: what rounding may change
Ask = Callable[[nn.Module, Tensor], str]


def ask(layer: Callable[[int], nn.Module], width: int) -> None:
    """Build ``layer(width)`` and ask it all `QUESTIONS`. Raises ValueError, naming the question and what was found, at
    the first answer that is wrong.
    """
    with seeded(0):
        module, x = layer(width), torch.randn(BATCH, LENGTH, width)
    if not isinstance(module, nn.Module):
        raise ValueError(f"module: layer({width}) is {type(module).__name__}; must be a torch.nn.Module")
    for name, question in QUESTIONS.items():
        try:
            found = question(module, x)
        except Exception as error:
            raise ValueError(f"{name}: the layer raises {type(error).__name__}: {error}") from error
        if found:
            raise ValueError(f"{name}: {found}")


def _another(x: Tensor) -> Tensor:
    return 1 + 2 * x.flip(-1)


def _shape(module: nn.Module, x: Tensor) -> str:
    for part in (x, x[:1], x[:, :1]):
        if (there := module(part).shape) != part.shape:
            return f"{tuple(there)} comes out where {tuple(part.shape)} goes in; must be the same"
    return ""


def _dtype(module: nn.Module, x: Tensor) -> str:
    y = module(x)
    if y.dtype != x.dtype:
        return f"{y.dtype} comes out where {x.dtype} goes in; must be the same"
    return "" if y.isfinite().all() else "what comes out is not finite"


def _same_twice(module: nn.Module, x: Tensor) -> str:
    with seeded(1):
        first = module(x)
    module(_another(x))
    with seeded(1):
        second = module(x)
    if not _close(first, second):
        return "the same input, after another one, has another answer: something stays from one call to the next"
    if not _close(second, module(x)):
        return "the same input has another answer each time: something is drawn at random, such as dropout"
    return ""


def _future(module: nn.Module, x: Tensor) -> str:
    y = module(x)
    for seen in (1, SEEN, LENGTH - 1):
        changed = module(torch.cat([x[:, :seen], _another(x)[:, seen:]], 1))
        if not _close(y[:, :seen], changed[:, :seen]):
            return f"what comes out before position {seen} changes with what goes in later; must not see it"
    if not _close(y[:, :SEEN], module(x[:, :SEEN])):
        return f"the first {SEEN} answers are others where the input ends there; must not depend on its length"
    return ""


def _batch(module: nn.Module, x: Tensor) -> str:
    y = module(x)
    for mine in (0, BATCH - 1):
        others = _another(x)
        others[mine] = x[mine]
        if not _close(y[mine], module(others)[mine]):
            return "a sequence's answers change with the others in its batch"
    return ""


def _gradient(module: nn.Module, x: Tensor) -> str:
    x = x.clone().requires_grad_()
    module(x).square().sum().backward()
    without = [name for name, each in module.named_parameters() if each.requires_grad and each.grad is None]
    module.zero_grad(set_to_none=True)
    if without:
        return f"none reaches {', '.join(without)}"
    return "none reaches the input, so the block below would learn nothing" if x.grad is None else ""


def _parameters(module: nn.Module, x: Tensor) -> str:
    width, spent = x.shape[-1], sum(parameter.numel() for parameter in module.parameters())
    most = 12 * width**2 - 2 * width  # of a block's, which leaves its MLP one hidden unit
    return f"{spent} of them at width {width}; must be at most {most}" if spent > most else ""


QUESTIONS: dict[str, Ask] = {
    "parameters": _parameters,
    "shape": _shape,
    "dtype": _dtype,
    "same twice": _same_twice,
    "batch": _batch,  # before the next: what leaks from one sequence to another reaches earlier positions, too
    "future": _future,
    "gradient": _gradient,
}


def _close(one: Float[Tensor, "*shape"], other: Float[Tensor, "*shape"]) -> bool:
    return bool((one - other).abs().max() <= CLOSE * one.abs().max().clamp_min(1e-6))
