"""What an exercise is: the course's answer, fresh inputs, and the mistakes that it knows by name.

In a lesson an `Exercise` decorates the learner's function, and checks it in the next cell:

    @exercises.newton_step
    def newton_step(M, S):
        raise NotImplementedError  # your code here

    exercises.newton_step.check(newton_step)        # newton_step: not attempted

Until the function is written, calling it gives the course's answer, so that the rest of the lesson runs. A wrong function makes
``check`` raise a `Mistake` that says what is wrong. ``grade`` is the same check on other inputs, never with the stand-in.
"""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

CHECK_SEEDS = range(5)
GRADE_SEEDS = range(1000, 1006)
CONFIRM_SEEDS = range(2000, 2003)
CRASHES = (Exception, SystemExit)  # what a learner's function may do; an interruption by hand is not its doing


def draw_size(generator: torch.Generator, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, both included: sizes that differ from draw to draw show what is hard-wired."""
    return int(torch.randint(low, high + 1, (), generator=generator))


def draw_normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Independent N(0, 1) entries in float64."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


class Mistake(AssertionError):
    """A wrong answer; the message is the diagnosis, and all that a notebook shows."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class NotAttempted(Mistake):
    """An exercise that still has its stub, where an answer is due."""


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise on a pure function from tensors (and numbers) to one tensor.

    ``draw(generator)`` gives one call's arguments by name, in order; sizes should vary from draw to draw. ``mistakes`` maps a
    diagnosis to the wrong function that it recognises: a function that answers as it does, and not as the course's, gets that
    diagnosis, the first that fits. Values are right within ``tolerance``, relative to the largest entry of the course's answer.
    """

    name: str
    answer: Callable[..., Tensor]
    draw: Callable[[torch.Generator], dict[str, Any]]
    mistakes: Mapping[str, Callable[..., Tensor]] = field(default_factory=dict)
    tolerance: float = 1e-6

    def __call__(self, function: Callable[..., Any]) -> "Attempt":
        """Decorate the learner's function."""
        return Attempt(self, function)

    def check(self, function: Callable[..., Any]) -> None:
        """Print 'correct' or 'not attempted', or raise a `Mistake` with the diagnosis."""
        try:
            self._examine(_own(function), CHECK_SEEDS)
        except NotAttempted:
            print(f"{self.name}: not attempted")
        else:
            print(f"{self.name}: correct")

    def grade(self, function: Callable[..., Any], seeds: Sequence[int] = GRADE_SEEDS) -> None:
        """Raise unless the learner's own function is right on inputs that ``check`` has not used."""
        self._examine(_own(function), seeds)

    def _examine(self, function: Callable[..., Any], seeds: Sequence[int]) -> None:
        _examined.add(self)
        try:
            for seed in seeds:
                inputs = self._drawn(seed)
                self._examine_on(inputs, function)
            self._check_device(function, inputs)
        finally:
            _examined.discard(self)

    def _drawn(self, seed: int) -> dict[str, Any]:
        return self.draw(torch.Generator().manual_seed(seed))

    def _examine_on(self, inputs: dict[str, Any], function: Callable[..., Any]) -> None:
        given = _copy(inputs)
        got = self._call(function, given)
        for name, value in inputs.items():
            if isinstance(value, Tensor) and not torch.equal(value, given[name]):
                raise Mistake(f"{self.name}: changes its argument {name} in place; work on a new tensor instead")
        expected = self.answer(**_copy(inputs))
        self._compare_form(got, expected, inputs)
        if not self._close(got.detach(), expected):
            raise Mistake(f"{self.name}: {next(self._diagnoses(function, inputs, got.detach(), expected))}")

    def _call(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
        try:
            return function(*inputs.values())
        except NotAttempted:
            raise
        except CRASHES as error:
            if _is_stub(function, error):
                raise NotAttempted(f"{self.name}: not attempted") from None
            raise self._crash(function, error, inputs) from None

    def _crash(self, function: Callable[..., Any], error: BaseException, inputs: dict[str, Any]) -> Mistake:
        text, line = str(error), _line(function, error)
        reason = (f" at `{line}`" if line else "") + (f": {text}" if text else "")
        hint = ""
        if "dtype" in text or "scalar type" in text:
            hint = " A tensor that you create has another dtype than the inputs: pass dtype=... on, or use torch.zeros_like and its kin."
        return Mistake(f"{self.name}: raises {type(error).__name__}{reason}.{hint} The inputs were {_forms(inputs)}.")

    def _compare_form(self, got: Any, expected: Tensor, inputs: dict[str, Any]) -> None:
        if got is None:
            raise Mistake(f"{self.name}: returns nothing; is a `return` missing?")
        if type(got) not in (Tensor, torch.nn.Parameter):
            raise Mistake(f"{self.name}: returns {type(got).__name__}, not a tensor of shape {tuple(expected.shape)}")
        if got.shape != expected.shape:
            hint = _shape_hint(tuple(got.shape), tuple(expected.shape))
            raise Mistake(f"{self.name}: wrong shape {tuple(got.shape)}, must be {tuple(expected.shape)}, for {_forms(inputs)}.{hint}")
        if got.dtype != expected.dtype:
            as_given = any(isinstance(value, Tensor) and value.dtype == expected.dtype for value in inputs.values())
            source = ", that of the inputs" if as_given else ""
            raise Mistake(f"{self.name}: wrong dtype {got.dtype}, must be {expected.dtype}{source}")
        if got.device != expected.device:
            raise Mistake(f"{self.name}: the answer is on {got.device}, the inputs are on {expected.device}")
        if not torch.isfinite(got).all() and torch.isfinite(expected).all():
            raise Mistake(f"{self.name}: {int((~torch.isfinite(got)).sum())} of {got.numel()} entries are NaN or infinite")

    def _close(self, got: Tensor, expected: Tensor) -> bool:
        if got.shape != expected.shape:
            return False
        got, expected = _wide(got), _wide(expected)
        sizes = expected.abs()
        scale = torch.where(sizes.isfinite(), sizes, 0).max() if sizes.numel() else 0
        return bool(((got == expected) | ((got - expected).abs() <= self.tolerance * scale)).all())  # inf == inf, but inf - inf is NaN

    def _diagnoses(self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor, expected: Tensor) -> Iterator[str]:
        """What fits the wrong answer, the most telling first."""
        for diagnosis, wrong in self.mistakes.items():
            imitation = wrong(**_copy(inputs))
            if not self._close(imitation, expected) and self._close(got, imitation) and self._imitates(wrong, function):
                yield diagnosis
        for name, value in inputs.items():
            if isinstance(value, Tensor) and self._close(got, value):
                yield f"the answer is the argument {name}, unchanged"
        if not got.any():
            yield "every entry is 0"
        if self._wavers(function, inputs, got):
            yield "gives another answer when called again: does it draw random numbers, or keep something between the calls?"
        if got.dtype == torch.bool and self._close(~got, expected):
            yield "True and False are exchanged"
        for name in inputs:
            if self._ignores(function, inputs, name, got, expected):
                yield f"does not use its argument {name}"
        yield self._compare_values(_wide(got), _wide(expected))

    def _wavers(self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor) -> bool:
        again = function(*_copy(inputs).values())
        return not (isinstance(again, Tensor) and self._close(again.nan_to_num(), got.nan_to_num()))

    def _imitates(self, wrong: Callable[..., Tensor], function: Callable[..., Any]) -> bool:
        """Whether two functions agree on further inputs: on a single one, of small sizes, different mistakes may look alike."""
        for inputs in map(self._drawn, CONFIRM_SEEDS):
            try:
                got = function(*_copy(inputs).values())
            except CRASHES:  # a wrong answer that crashes elsewhere is not the one imitated
                return False
            if not (isinstance(got, Tensor) and self._close(got, wrong(**_copy(inputs)))):
                return False
        return True

    def _compare_values(self, got: Tensor, expected: Tensor) -> str:
        if self._close(-got, expected):
            return "the sign is flipped"
        ratio = (got * expected).sum() / expected.square().sum()
        if got.numel() > 1 and ratio.abs() > 1e-9 and self._close(got / ratio, expected):  # one number is a multiple of any other
            return f"every entry is {ratio:.4g} times what it should be"
        if got.ndim >= 2 and got.shape[-1] == got.shape[-2] and self._close(got.mT, expected):
            return "the answer is transposed"
        off, largest = (got - expected).abs(), expected.abs().max()
        if off.max() < 1e-3 * largest:
            relative = f"{off.max() / largest:.0e}"
            return f"nearly right, off by {relative} of the largest entry: is a part in float32, or a small constant added?"
        at = tuple(int(i) for i in torch.unravel_index(off.argmax(), got.shape))
        if not at:
            return f"wrong value {got:.6g}, should be {expected:.6g}"
        many = int((off > self.tolerance * largest).sum())
        return f"wrong values in {many} of {got.numel()} entries; the worst is at {list(at)}: {got[at]:.6g}, should be {expected[at]:.6g}"

    def _ignores(self, function: Callable[..., Any], inputs: dict[str, Any], name: str, got: Tensor, expected: Tensor) -> bool:
        """Whether the answer stays the same where another value of this argument should change it."""
        value = inputs[name]
        if isinstance(value, bool) or not isinstance(value, int | float | Tensor):
            return False
        try:
            another = value.roll(1, -1) if isinstance(value, Tensor) and not value.is_floating_point() else value + 1 + abs(value)
            changed = inputs | {name: another}
            return not self._close(self.answer(**_copy(changed)), expected) and torch.equal(function(*_copy(changed).values()), got)
        except CRASHES:  # an answer already known to be wrong may crash on other inputs; then the argument is not ignored
            return False

    def _check_device(self, function: Callable[..., Any], inputs: dict[str, Any]) -> None:
        """Inputs on the meta device, which has shapes but no numbers, stand for a GPU: CPU tensors made on the way clash with them."""
        if not any(isinstance(value, Tensor) for value in inputs.values()):
            return  # numbers alone are on no device
        elsewhere = {name: value.to("meta") if isinstance(value, Tensor) else value for name, value in inputs.items()}
        try:
            got = function(*elsewhere.values())
        except CRASHES as error:  # only a clash of devices matters: an honest answer may need the numbers that meta has not
            clash = any(sign in str(error) for sign in ("same device", "on the expected device", "Cannot copy out of meta tensor"))
            if not clash:
                return
            got = torch.empty(0)
        if isinstance(got, Tensor) and got.device.type != "meta":
            raise Mistake(
                f"{self.name}: makes a tensor on the CPU; use the device of the inputs (device=..., or torch.zeros_like and its kin)"
            )


class Attempt:
    """A learner's function; it stands in with the course's answer until it is written."""

    def __init__(self, exercise: Exercise, own: Callable[..., Any]):
        functools.update_wrapper(self, own)
        self.exercise, self.own = exercise, own

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.own(*args, **kwargs)
        except NotImplementedError as error:
            if not _is_stub(self.own, error):
                raise
        if self.exercise in _examined:  # what is checked calls the stub
            raise NotAttempted(f"{self.exercise.name}: not attempted")
        return self.exercise.answer(*args, **kwargs)


_examined: set[Exercise] = set()  # the exercises being checked at the moment; for these nothing stands in


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    return _own(function.own) if isinstance(function, Attempt) else function


def _is_stub(function: Callable[..., Any], error: BaseException) -> bool:
    """Whether the function itself raised a bare NotImplementedError. Those of torch's operations come with a message."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, NotImplementedError) and not error.args and frame.f_code is _code(function)


def _line(function: Callable[..., Any], error: BaseException) -> str:
    """The function's own line that failed, wherever below it the error was raised; ``own_line`` if it ran in another process."""
    if isinstance(line := getattr(error, "own_line", None), str):
        return line
    trace = error.__traceback__
    own = [frame.f_code is _code(function) for frame, _ in traceback.walk_tb(trace)]
    return next((summary.line or "" for summary, is_own in zip(traceback.extract_tb(trace), own, strict=True) if is_own), "")


def _code(function: Callable[..., Any]) -> Any:
    return getattr(inspect.unwrap(function), "__code__", None)


def _copy(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in inputs.items()}


def _wide(values: Tensor) -> Tensor:
    return values.to(torch.complex128 if values.is_complex() else torch.float64)


def _forms(inputs: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_form(value)}" for name, value in inputs.items())


def _form(value: Any) -> str:
    if isinstance(value, Tensor):
        return str(tuple(value.shape))
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def _shape_hint(got: tuple[int, ...], right: tuple[int, ...]) -> str:
    if sorted(got) == sorted(right):
        return " It is the transpose of the right shape." if len(right) == 2 else " The sizes are right, their order is not."
    if [size for size in got if size > 1] == [size for size in right if size > 1]:
        return f" A dimension of size 1 is {'too many' if len(got) > len(right) else 'missing'}."
    if right and got == (*right, right[-1]):
        n = right[-1]
        return f" ({n},) and ({n}, 1) broadcast to ({n}, {n}): do two such tensors meet?"
    return ""
