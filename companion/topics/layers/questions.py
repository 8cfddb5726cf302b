"""What a layer is asked before any training, because training would not tell: each question yields what it finds."""

from collections.abc import Callable, Iterator, Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.training import seeded

BATCH, LENGTH, SEEN = 3, 12, 7
CLOSE = 1e-4  # of the largest output: what rounding may change


def ask(layer: Callable[[int], nn.Module], width: int, lengths: Mapping[int, str] | None = None) -> None:
    """Build ``layer(width)``, see whether it takes sequences of all ``lengths``, each with the name of a task that has
    it, and ask it all `QUESTIONS`. Raises ValueError, naming the question, at a finding.
    """
    with seeded(0):
        try:
            module, x = layer(width), torch.randn(BATCH, LENGTH, width)
        except Exception as error:
            raise ValueError(f"module: layer({width}) raises {type(error).__name__}: {error}") from error
    if not isinstance(module, nn.Module):
        raise ValueError(f"module: layer({width}) is {type(module).__name__}; must be a torch.nn.Module")
    if found := _lengths(module, width, {LENGTH: "these questions", **(lengths or {})}):
        raise ValueError(f"length: {found}")
    for question in QUESTIONS:
        name = question.__name__.strip("_").replace("_", " ")
        try:
            found = next(question(module, x), "")
        except Exception as error:
            raise ValueError(f"{name}: the layer raises {type(error).__name__}: {error}") from error
        if found:
            raise ValueError(f"{name}: {found}")


def _lengths(module: nn.Module, width: int, lengths: Mapping[int, str]) -> str:
    """What goes wrong at the least of the ``lengths`` that the layer does not take, where it takes a shorter one."""

    def refused(length: int) -> str:
        with seeded(1), torch.no_grad():
            try:
                y = module(torch.randn(1, length, width))
            except Exception as error:
                return f"the layer raises {type(error).__name__}: {error}"
        cut = isinstance(y, Tensor) and y.ndim == 3 and y.shape[1] != length
        return f"{y.shape[1]} positions come out" if cut else ""

    for length, name in sorted(lengths.items()):
        if why := refused(length):
            shorter = next((n for n in range(length - 1, 0, -1) if not refused(n)), 0)
            most = f"{max(lengths)}, for {lengths[max(lengths)]}"
            least = f"the longest below that it takes is {shorter}; must take up to {most}"
            return f"where {length} positions go in, for {name}, {why}; {least}" if shorter else ""
    return ""


def _parameters(module: nn.Module, x: Tensor) -> Iterator[str]:
    width, spent = x.shape[-1], sum(parameter.numel() for parameter in module.parameters())
    most = 12 * width**2 - 2 * width  # of a block's, which leaves its MLP one hidden unit
    if spent > most:
        yield f"{spent} of them at width {width}; must be at most {most}"


def _input(module: nn.Module, x: Tensor) -> Iterator[str]:
    module(given := x.clone())
    if not torch.equal(given, x):
        yield "the layer changes it in place; must make a new tensor, such as x = x + 1 for x += 1"


def _shape(module: nn.Module, x: Tensor) -> Iterator[str]:
    for part in (x, x[:1], x[:, :1]):
        if not isinstance(y := module(part), Tensor):
            yield f"a {type(y).__name__} comes out; must be a tensor alone, as nn.LSTM(...)(x)[0] is"
            return
        if y.shape != part.shape:
            yield f"{tuple(y.shape)} comes out where {tuple(part.shape)} goes in; must be the same"


def _dtype(module: nn.Module, x: Tensor) -> Iterator[str]:
    y = module(x)
    if y.dtype != x.dtype:
        yield f"{y.dtype} comes out where {x.dtype} goes in; must be the same"
    if not y.isfinite().all():
        yield "what comes out is not finite"


def _same_twice(module: nn.Module, x: Tensor) -> Iterator[str]:
    with seeded(1):
        first = module(x)
    module(1 + 2 * x)
    with seeded(1):
        second = module(x)
    if not _close(first, second):
        yield "the same input, after another one, has another answer: something stays from one call to the next"
    if not _close(second, module(x)):
        yield "the same input has another answer each time: something is drawn at random, such as dropout"


def _batch(module: nn.Module, x: Tensor) -> Iterator[str]:
    if not (_alone(module, x, 0) and _alone(module, x, BATCH - 1)):
        yield "a sequence's answers change with the others in its batch"


def _future(module: nn.Module, x: Tensor) -> Iterator[str]:
    for seen in (1, SEEN, LENGTH - 1):
        if not _alone(module, x, slice(None), slice(seen)):
            yield f"what comes out before position {seen} changes with what goes in later; it must not"
    if not _close(module(x)[:, :SEEN], module(x[:, :SEEN])):
        yield f"the first {SEEN} answers are others where the input ends there; must not depend on its length"


def _gradient(module: nn.Module, x: Tensor) -> Iterator[str]:
    x = x.clone().requires_grad_()
    module(x).square().sum().backward()
    without = [name for name, each in module.named_parameters() if each.requires_grad and each.grad is None]
    module.zero_grad(set_to_none=True)
    if without:
        yield f"none reaches {', '.join(without)}"
    if x.grad is None:
        yield "none reaches the input, so the block below would learn nothing"


# the batch before the future: what leaks from one sequence to another reaches earlier positions, too
QUESTIONS = (_parameters, _input, _shape, _dtype, _same_twice, _batch, _future, _gradient)


def _alone(module: nn.Module, x: Tensor, *part: int | slice) -> bool:
    """Whether what comes out at a ``part`` is the same with another input everywhere else."""
    other = 1 + 2 * x.flip(-1)
    other[part] = x[part]
    return _close(module(x)[part], module(other)[part])


def _close(one: Float[Tensor, "*shape"], other: Float[Tensor, "*shape"]) -> bool:
    return bool((one - other).abs().max() <= CLOSE * one.abs().max().clamp_min(1e-6))
