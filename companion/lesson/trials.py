"""What further trials of a learner's function say about it: on other inputs, in another dtype, on another device."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from companion.lesson.attempts import failing_line

CRASHES = (Exception, SystemExit)  # what a learner's function may do; an interruption by hand is not its doing
CPU_ADVICE = (
    "a tensor is made on the CPU on the way, which is all right here; on a GPU it would clash with the inputs, "
    "so better use their device (device=..., or torch.zeros_like and its kin)"
)
SEARCH_SECONDS = 2.0  # of computing, for all calls that look for what a wrong answer gets wrong
CLASHES = ("same device", "on the expected device", "Cannot copy out of meta tensor")


class Late(BaseException):
    """The search for what is wrong takes too long. Not an Exception: whoever handles a wrong answer's errors must not
    swallow this one.
    """


class Searched:
    """A wrong function while the reason is looked for: all its calls together have `SEARCH_SECONDS`.

    Raises Late once they are used up; a call that has begun is not interrupted.
    """

    def __init__(self, function: Callable[..., Any]):
        self.function = self.__wrapped__ = function
        self.left = SEARCH_SECONDS

    def __call__(self, *inputs: Any) -> Any:
        """Call the function."""
        if self.left <= 0:
            raise Late
        before = time.process_time()
        try:
            return self.function(*inputs)
        finally:
            self.left -= time.process_time() - before


def copied(inputs: dict[str, Any]) -> dict[str, Any]:
    """Copy the inputs, for a function that may change them."""
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in inputs.items()}


class _Lists(TorchFunctionMode):
    """`Tensor.tolist` gives an input's own numbers, and fails like `Tensor.item` for what is computed on the way: both
    give Python's numbers, which clash with no device.
    """

    def __init__(self, inputs: list[Any], elsewhere: list[Any]):
        super().__init__()
        self.pairs = list(zip(inputs, elsewhere, strict=True))

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is not Tensor.tolist:
            return function(*args, **(kwargs or {}))
        for value, there in self.pairs:
            if there is args[0]:
                return value.tolist()
        raise RuntimeError("Tensor.tolist() has no numbers to give")


def leaves_device(function: Callable[..., Any], inputs: dict[str, Any]) -> bool:
    """Return whether CPU tensors are made on the way. The meta device, which has shapes but no numbers, stands for a
    GPU.
    """
    if not any(isinstance(value, Tensor) for value in inputs.values()):
        return False  # numbers alone are on no device
    elsewhere = {name: value.to("meta") if isinstance(value, Tensor) else value for name, value in inputs.items()}
    try:
        with _Lists(list(inputs.values()), list(elsewhere.values())):
            got = function(*elsewhere.values())
    except CRASHES as error:  # only a clash of devices matters: an honest answer may need the numbers that meta has not
        return any(sign in str(error) for sign in CLASHES)
    return isinstance(got, Tensor) and got.device.type != "meta"


@contextlib.contextmanager
def float64_by_default() -> Iterator[None]:
    """Make float64 the dtype of what is made without one, until the block ends."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def reseeded(seed: int) -> Iterator[None]:
    """Make `torch.manual_seed` take ``seed``, whatever it is given, until the block ends."""
    before = torch.manual_seed
    torch.manual_seed = lambda _: before(seed)
    try:
        yield
    finally:
        torch.manual_seed = before


NARROW = (torch.float32, torch.float16, torch.bfloat16)


class _Wider(TorchFunctionMode):
    """Whatever asks for float32, or for 16 bits, gets float64."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        wider = {key: _wider(value) for key, value in (kwargs or {}).items()}
        if function in (Tensor.float, Tensor.half, Tensor.bfloat16):
            return args[0].double()
        return function(*(_wider(value) for value in args), **wider)


def _wider(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW else value


def in_float64(function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    """Return what a function gives if no part of it is in float32, nothing that it makes and nothing that it converts.
    None if that crashes.
    """
    try:
        with float64_by_default(), _Wider():
            return function(*copied(inputs).values())
    except CRASHES:
        return None


def gradients_by(function: Callable[..., Any], values: list[Any], places: list[int], weights: Tensor) -> Tensor:
    """Return the gradient of a weighted sum of what a function gives, with respect to some of its arguments: their
    entries one after the other, NaN for an argument that no gradient reaches.

    ``function``: what the learner wrote, or the course's answer.
    ``values``: its arguments, in order.
    ``places``: of the arguments in question, which are tensors of floating-point numbers.
    ``weights``: of the shape of what the function gives.
    """
    leaves = [values[place].detach().requires_grad_() for place in places]
    given = list(values)
    with torch.enable_grad():
        for place, leaf in zip(places, leaves, strict=True):
            given[place] = leaf.clone()  # a leaf itself must not be changed in place, not even for a moment
        got = function(*given)
        reached: Sequence[Tensor | None] = [None] * len(leaves)
        if got.requires_grad:
            reached = torch.autograd.grad((got * weights.to(got)).sum(), leaves, allow_unused=True)
    missing = [torch.full_like(leaf, torch.nan) for leaf in leaves]
    gradients = [lost if grad is None else grad for grad, lost in zip(reached, missing, strict=True)]
    return torch.cat([grad.detach().flatten().double() for grad in gradients])


def other_values(value: Any) -> list[Any]:
    """Return an argument's value, changed in several ways that an answer which uses it should notice."""
    if isinstance(value, bool):
        return [not value]
    if not isinstance(value, int | float | Tensor):
        return []
    if isinstance(value, int | float):
        return [value + 1 + abs(value), value + 1, value / 2 if isinstance(value, float) else value - 1]
    turned = [value.flatten().flip(0).view(value.shape), *(value.roll(1, dim) for dim in range(value.ndim))]
    if value.is_floating_point():
        return [value + 1 + value.abs(), 0.3 - 0.7 * value, *turned, torch.zeros_like(value)]  # a rank may know 0 alone
    if not value.numel():
        return turned
    # other numbers of the same kind, in other numbers: a sum, a mean or a product of all would miss it if they moved
    first, last = value.min().to(torch.int64), value.max().to(torch.int64)
    single = value.clone()
    single.view(-1)[0] = last if value.view(-1)[0] == first else first
    drawn = value.flatten()[torch.arange(value.numel()) * 7 // 3 % value.numel()].view(value.shape)
    ends = [torch.full_like(value, bool(end) if value.dtype == torch.bool else int(end)) for end in (first, last)]
    return [*([~value] if value.dtype == torch.bool else []), single, drawn, *ends, *turned]


def ignores(
    function: Callable[..., Any],
    answer: Callable[..., Tensor],
    draws: list[dict[str, Any]],
    name: str,
    close: Callable[[Tensor, Tensor], bool],
) -> bool:
    """Return whether a function stays the same, whatever an argument is, where the answer changes with it.

    ``function``: what the learner wrote. If it crashes on other inputs, the argument is not ignored.
    ``answer``: the course's own.
    ``draws``: inputs by name, in the order of the parameters.
    ``name``: of the argument in question.
    ``close``: whether two results count as the same.
    """
    changes = False
    try:
        for inputs in draws:
            got, expected = function(*copied(inputs).values()), answer(**copied(inputs))
            for other in other_values(inputs[name]):
                changed = inputs | {name: other}
                if not torch.equal(function(*copied(changed).values()), got):
                    return False
                changes = changes or not close(answer(**copied(changed)), expected)
    except CRASHES:  # an answer already known to be wrong may crash on other inputs; then the argument is not ignored
        return False
    return changes


class _Spread(Exception):
    """A function has just combined two tensors of one axis, such that each entry of one meets all of the other."""


class _WatchingShapes(TorchFunctionMode):
    """Whatever makes (n, n) of (n,) and (n, 1) is stopped."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        got = function(*args, **(kwargs or {}))
        shapes = [tuple(each.shape) for each in args if isinstance(each, Tensor) and each.ndim]
        if isinstance(got, Tensor) and got.ndim and len(shapes) > 1:
            n = got.shape[-1]
            if got.shape[-2:] == (n, n) and n > 1 and (n,) in shapes and any(each[-2:] == (n, 1) for each in shapes):
                raise _Spread(f"({n},) and ({n}, 1) broadcast to ({n}, {n})")
        return got


def first_spread(function: Callable[..., Any], inputs: dict[str, Any]) -> str:
    """Return in which line a function first combines (n,) with (n, 1), which gives (n, n); else nothing."""
    try:
        with _WatchingShapes():
            function(*copied(inputs).values())
    except _Spread as spread:
        line = failing_line(function, spread).strip()
        return f" At `{line}`, {spread}." if line else f" On the way {spread}."
    except CRASHES:
        pass
    return ""


class _NotFinite(Exception):
    """A function has just made the first NaN or infinity."""


class _Watching(TorchFunctionMode):
    """Whatever makes NaN, or infinity, of finite numbers is stopped."""

    def __init__(self, kind: Callable[[Tensor], Tensor]):
        super().__init__()
        self.kind = kind

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        got = function(*args, **(kwargs or {}))
        if isinstance(got, Tensor) and got.is_floating_point() and self.kind(got).any():
            given = [each for each in args if isinstance(each, Tensor) and each.is_floating_point()]
            if not any(self.kind(each).any() for each in given):
                name = getattr(function, "__name__", "").strip("_").removeprefix("r")
                raise _NotFinite(name)
        return got


CAUSES = {
    "mul": "0 times infinity", "matmul": "0 times infinity",
    "sub": "infinity minus infinity", "add": "infinity minus infinity",
    "div": "0 divided by 0", "truediv": "0 divided by 0",
    "log": "the logarithm of a negative number", "log2": "the logarithm of a negative number",
    "sqrt": "the square root of a negative number", "pow": "a root of a negative number",
    "mean": "the mean of nothing", "std": "the standard deviation of a single number",
    "softmax": "a softmax of nothing but -infinity",
}  # fmt: skip


def first_not_finite(function: Callable[..., Any], inputs: dict[str, Any]) -> str:
    """Return in which line of a function the first NaN arises, or the first infinity if there is no NaN, and from what;
    nothing where that cannot be seen.
    """
    for kind, name in ((torch.isnan, "NaN"), (torch.isinf, "infinity")):
        try:
            with _Watching(kind):
                function(*copied(inputs).values())
        except _NotFinite as error:
            cause = CAUSES.get(str(error), "") if name == "NaN" else ""
            line = failing_line(function, error).strip()
            at = f" at `{line}`" if line else ""
            return f" The first {name} arises{at}{': ' + cause if cause else ''}." if at or cause else ""
        except CRASHES:
            return ""
    return ""
