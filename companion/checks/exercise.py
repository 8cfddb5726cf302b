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
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

CHECK_SEEDS = range(3)
GRADE_SEEDS = range(1000, 1006)


class Mistake(AssertionError):
    """A wrong answer; the message is the diagnosis, and all that a notebook shows."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class NotAttempted(Mistake):
    """An exercise that still has its stub, where an answer is due."""


@dataclass(frozen=True)
class Exercise:
    """An exercise on a pure function from tensors (and numbers) to one tensor.

    ``draw(generator)`` gives one call's arguments by name, in order; sizes should vary from draw to draw. ``mistakes`` maps a
    diagnosis to the wrong function that it recognises: an answer that equals it, and not the course's, gets that diagnosis.
    Values are right within ``tolerance``, relative to the largest entry of the course's answer.
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

    def grade(self, function: Callable[..., Any]) -> None:
        """Raise unless the learner's own function is right on inputs that ``check`` has not used."""
        self._examine(_own(function), GRADE_SEEDS)

    def _examine(self, function: Callable[..., Any], seeds: range) -> None:
        for seed in seeds:
            inputs = self.draw(torch.Generator().manual_seed(seed))
            given = _copy(inputs)
            got = self._call(function, given)
            for name, value in inputs.items():
                if isinstance(value, Tensor) and not torch.equal(value, given[name]):
                    raise Mistake(f"{self.name}: changes its argument {name} in place; work on a new tensor instead")
            expected = self.answer(**_copy(inputs))
            self._compare_form(got, expected, inputs)
            if not self._close(got, expected):
                raise Mistake(f"{self.name}: {self._diagnose(function, inputs, got, expected)}")
        self._check_device(function, inputs)

    def _call(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
        try:
            return function(*inputs.values())
        except NotImplementedError as error:
            if len(traceback.extract_tb(error.__traceback__)) == 2:  # raised by the stub itself, not inside something it calls
                raise NotAttempted(f"{self.name}: not attempted") from None
            raise self._crash(error, inputs) from None
        except Exception as error:
            raise self._crash(error, inputs) from None

    def _crash(self, error: Exception, inputs: dict[str, Any]) -> Mistake:
        frames = traceback.extract_tb(error.__traceback__)
        line = frames[1].line if len(frames) > 1 else ""
        hint = ""
        if "dtype" in str(error) or "Float and Double" in str(error) or "Double and Float" in str(error):
            hint = " A tensor that you create has another dtype than the inputs: pass dtype=... on, or use torch.zeros_like and its kin."
        shapes = ", ".join(f"{name} {_form(value)}" for name, value in inputs.items())
        at = f" at `{line}`" if line else ""
        return Mistake(f"{self.name}: raises {type(error).__name__}{at}: {error}.{hint} The inputs were {shapes}.")

    def _compare_form(self, got: Any, expected: Tensor, inputs: dict[str, Any]) -> None:
        shapes = ", ".join(f"{name} {_form(value)}" for name, value in inputs.items())
        if got is None:
            raise Mistake(f"{self.name}: returns nothing; is a `return` missing?")
        if not isinstance(got, Tensor):
            raise Mistake(f"{self.name}: returns {type(got).__name__}, not a tensor of shape {tuple(expected.shape)}")
        if got.shape != expected.shape:
            hint = " It is the transpose of the right shape." if got.shape == expected.shape[::-1] else ""
            raise Mistake(f"{self.name}: wrong shape {tuple(got.shape)}, must be {tuple(expected.shape)}, for {shapes}.{hint}")
        if got.dtype != expected.dtype:
            raise Mistake(f"{self.name}: wrong dtype {got.dtype}, must be {expected.dtype}, that of the inputs")
        if got.device != expected.device:
            raise Mistake(f"{self.name}: the answer is on {got.device}, the inputs are on {expected.device}")
        if not torch.isfinite(got).all() and torch.isfinite(expected).all():
            raise Mistake(f"{self.name}: {int((~torch.isfinite(got)).sum())} of {got.numel()} entries are NaN or infinite")

    def _close(self, got: Tensor, expected: Tensor) -> bool:
        if got.shape != expected.shape:
            return False
        scale = expected.abs().max().clamp_min(torch.finfo(torch.float32).tiny) if expected.numel() else 1.0
        return bool(((got - expected).abs() <= self.tolerance * scale).all())

    def _diagnose(self, function, inputs: dict[str, Any], got: Tensor, expected: Tensor) -> str:
        for diagnosis, wrong in self.mistakes.items():
            imitation = wrong(**_copy(inputs))
            if not self._close(imitation, expected) and self._close(got, imitation):
                return diagnosis
        ratio = (got * expected).sum() / expected.square().sum()
        if ratio.abs() > 1e-9 and self._close(got / ratio, expected):
            return "the sign is flipped" if abs(ratio + 1) < 1e-3 else f"every entry is {ratio:.4g} times what it should be"
        if got.ndim >= 2 and got.shape[-1] == got.shape[-2] and self._close(got.mT, expected):
            return "the answer is transposed"
        for name, value in inputs.items():
            if ignored := self._ignores(function, inputs, name, value, expected, got):
                return ignored
        at = tuple(int(i) for i in torch.unravel_index((got - expected).abs().argmax(), got.shape))
        return f"wrong values; the worst is at {list(at)}: {got[at]:.6g}, should be {expected[at]:.6g}"

    def _ignores(self, function, inputs, name, value, expected, got) -> str | None:
        if not (isinstance(value, Tensor) and value.is_floating_point()):
            return None
        changed = _copy(inputs) | {name: value + 1 + value.abs()}
        if self._close(self.answer(**_copy(changed)), expected):
            return None
        try:
            again = function(*changed.values())
        except Exception:  # an answer already known to be wrong may crash on other inputs; then the argument is not ignored
            return None
        return f"does not use its argument {name}" if torch.equal(again, got) else None

    def _check_device(self, function: Callable[..., Any], inputs: dict[str, Any]) -> None:
        """Inputs on the meta device, which has shapes but no numbers, stand for a GPU: CPU tensors made on the way clash with them."""
        elsewhere = {name: value.to("meta") if isinstance(value, Tensor) else value for name, value in inputs.items()}
        try:
            got = function(*elsewhere.values())
        except Exception as error:  # only a clash of devices matters: an honest answer may need the numbers that meta has not
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
            if len(traceback.extract_tb(error.__traceback__)) > 2:
                raise
        return self.exercise.answer(*args, **kwargs)


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.own if isinstance(function, Attempt) else function


def _copy(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in inputs.items()}


def _form(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else repr(value)
