"""An exercise that is checked by what its answer does: a model that was trained, an attack that succeeds.

There is no one right answer to compare with. What comes back is measured in stages, each of which says what is still
missing and how far it is:

    def learns(inputs, logits):
        right = (logits.argmax(-1) == inputs["targets"]).double().mean()
        return f"it is right on {right:.0%} of the held-out tokens; 90 % are asked for" if right < 0.9 else None

    @summit(draw=..., shape=..., stages=(learns,), seconds=4)
    def train_heads(tokens, targets): ...

Where a training ends depends on the last bit of its numbers: with another processor, another number of threads or a sum
in another order it ends elsewhere, and a bar refuses some right answers. So a stage asks for what every right answer
reaches by far, and where none can, the training is judged by its first steps, which hardly depend on rounding.
"""

import _thread
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from companion.lesson.attempts import Mistake, examined
from companion.lesson.exercise import Exercise
from companion.lesson.seen import not_finite
from companion.lesson.trials import CRASHES, copied, first_not_finite, reseeded

PATIENCE = 15  # times the seconds that a right answer may take: whoever trains for longer waits in vain
AGREES = 0.95  # of the entries of two tables that were trained alike: where two scores tie, rounding decides
CLOSE = 1e-3  # relative to the largest entry: two runs of the same few steps differ by rounding
SEEDS = (*range(1, 10), 42, 123, 1234, 2024, 2025, 2026)  # that people take where 0 is not asked for
Stage = Callable[[dict[str, Any], Tensor], str | None]
Drawn = tuple[int, str]  # the seed of inputs, and which of ``others`` got another value, or "again"; empty if none did


@dataclass(frozen=True, eq=False)
class Summit(Exercise):
    """An exercise on a function from tensors (and numbers) to one tensor, of which many are right.

    ``shape`` gives the answer's shape from the inputs. ``stages`` are measured in order, and the first that returns a
    sentence is the diagnosis; each gets the inputs by name and the answer, detached. What only the checker may know
    (the targets of a test) is drawn under a name that begins with ``_`` and is not handed to the function. ``seconds``
    of one core are what a right answer may take, here and, threefold, in the grader. One seed is tried, not five:
    an answer trains.

    ``first_steps`` cuts inputs down to a few steps of training. An answer that then does as the course's is right; one
    that does as a listed mistake gets its name; only what does neither is run at full length and judged by the stages.
    ``retaught`` gives the same few steps with other labels: an answer that is the same for these has learned nothing.
    Where an answer may have ``any_start``, what the course's gives from each of `SEEDS` is right, too.
    ``otherwise`` advises whoever passes by the stages alone, after first steps that differ: it gets what a stage gets,
    and returns an empty text where there is nothing to advise. ``nought`` follows on "0 divided by 0".
    Without ``first_steps``, or after them, an answer that a stage refuses gets the name of the listed mistake that does
    as it does, if there is one, and else what the stage has measured.

    ``compared`` gives the part of an answer in which mistakes differ, if most of it is free. What goes on to be used
    again and again, and not a training, is ``repeatable``: called again, it gives the same answer. ``seed`` names an
    argument by which the answer draws: the same seed must give the same answer, another seed another one. ``used`` are
    arguments that get another value once the answer is right: it must give another answer with that. ``others`` get
    another value, too: the answer must be right with that. ``again`` draws other inputs, of any size, and has stages of
    its own for them: what the first inputs cannot tell apart.
    """

    shape: Callable[[dict[str, Any]], tuple[int, ...]] = field(kw_only=True)
    stages: Sequence[Stage] = field(kw_only=True)
    seconds: float = field(kw_only=True)
    first_steps: Callable[[dict[str, Any]], dict[str, Any]] | None = field(default=None, kw_only=True)
    any_start: bool = field(default=False, kw_only=True)
    otherwise: Callable[[dict[str, Any], Tensor], str] | None = field(default=None, kw_only=True)
    nought: str = field(default="", kw_only=True)
    retaught: Callable[[dict[str, Any]], dict[str, Any]] | None = field(default=None, kw_only=True)
    repeatable: bool = field(default=False, kw_only=True)
    seed: str = field(default="", kw_only=True)
    used: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    others: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    again: tuple[Callable[[], dict[str, Any]], Sequence[Stage]] | None = field(default=None, kw_only=True)
    compared: Callable[[Tensor], Tensor] = field(default=lambda answer: answer, kw_only=True)
    _known: dict[tuple[Drawn, Callable[..., Tensor]], Tensor] = field(default_factory=dict, init=False, repr=False)

    def _examine(self, function: Callable[..., Any], seeds: Sequence[int], **_: bool) -> list[str]:
        examined.add(self)
        try:
            inputs = self._drawn(seeds[0])
            advice = self._measure((seeds[0], ""), inputs, function)
            for name in self.others:
                self._measure_with(name, seeds[0], inputs, function)
            self._keeps_float32(_asked(inputs), function)
        finally:
            examined.discard(self)
        return advice

    def _in_time(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
        """Call the function, and stop it where its loop seems to have no end, as if by hand."""
        late = threading.Event()
        timer = threading.Timer(PATIENCE * self.seconds, lambda: (late.set(), _thread.interrupt_main()))
        elsewhere = hasattr(function, "searching")  # in a sandbox, by whose clock a busy machine costs nobody a point
        if threading.current_thread() is threading.main_thread() and not elsewhere:  # no other one can be stopped so
            timer.start()
        try:
            return self._call(function, inputs)
        except KeyboardInterrupt:
            if not late.is_set():
                raise
            raise Mistake(
                f"{self.name}: has not come to an end in {PATIENCE * self.seconds:g} seconds, where a right answer "
                f"takes {self.seconds:g}"
            ) from None
        finally:
            timer.cancel()

    def _answered(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Tensor:
        """Return what the function gives, a tensor of the right shape and of finite numbers, or raise a `Mistake`."""
        asked = _asked(inputs)
        began = time.monotonic()
        got = self._in_time(function, copied(asked))
        quick = time.monotonic() - began < self.seconds and not hasattr(function, "searching")
        self._compare_form(got, tuple(self.shape(inputs)), asked)
        if not torch.isfinite(got).all():
            where = first_not_finite(function, asked) if quick else ""
            hint = f" {self.nought}" if self.nought and where.endswith(": 0 divided by 0.") else ""
            raise Mistake(f"{self.name}: {not_finite(got)}{where}{hint}")
        return got.detach()

    def _gives(self, function: Callable[..., Tensor], drawn: Drawn, inputs: dict[str, Any]) -> Tensor:
        """Return what the course's answer or a listed mistake gives for inputs, or for their first steps. It is
        computed once, for whoever tries again is checked by the same inputs.
        """
        if (drawn, function) not in self._known:
            self._known[drawn, function] = function(**copied(_asked(inputs))).detach()
        return self._known[drawn, function]

    def _measure(self, drawn: Drawn, inputs: dict[str, Any], function: Callable[..., Any]) -> list[str]:
        """Return advice, or raise a `Mistake` unless the answer is right: with what it does if that is known, else with
        the first stage that is missing.
        """
        if self.first_steps is not None and self._begins_right(drawn, inputs, self.first_steps(inputs), function):
            return []
        got = self._answered(function, inputs)
        if self.repeatable and not self._close(self._answered(function, inputs), got):  # first, or chance is judged
            raise Mistake(f"{self.name}: gives another answer when called again with the same inputs")
        self._judge(self.stages, drawn, inputs, got)
        if self.again is not None:
            draw, stages = self.again
            further = draw()
            self._judge(stages, (0, "again"), further, self._answered(function, further))
        self._vary(inputs, function, got)
        advice = self.otherwise(inputs, got) if self.otherwise else ""
        return [advice] if advice else []

    def _judge(self, stages: Sequence[Stage], drawn: Drawn, inputs: dict[str, Any], got: Tensor) -> None:
        """Raise a `Mistake` at the first stage that refuses what the answer gave."""
        for stage in stages:
            if missing := stage(inputs, got):
                twin = "" if self.first_steps else self._twin(drawn, inputs, got)
                raise Mistake(f"{self.name}: {twin or missing}")

    def _begins_right(
        self, drawn: Drawn, inputs: dict[str, Any], few: dict[str, Any], function: Callable[..., Any]
    ) -> bool:
        """Return whether the first steps, with the inputs in ``few``, are the course's, from its start or, where any
        will do, from another; steps that differ may be right, too. Raise a `Mistake` where they show a listed one, or
        that nothing is learned.
        """
        begun = self._answered(function, few)
        right = self._gives(self.answer, drawn, few)
        alike, shared = _alike(begun, right), _shared(begun, right)
        if alike and shared == 1:
            return True
        if twin := self._twin(drawn, few, begun, shared if alike else 0.0):
            raise Mistake(f"{self.name}: {twin}")
        if alike:
            return True
        for start in SEEDS if self.any_start else ():
            with reseeded(start):
                if _alike(begun, self.answer(**copied(_asked(few)))):
                    return True
        if self.retaught is not None and torch.equal(begun, self._answered(function, self.retaught(inputs))):
            raise Mistake(f"{self.name}: the answer is the same whatever labels it is trained on: nothing is learned")
        return False

    def _vary(self, inputs: dict[str, Any], function: Callable[..., Any], got: Tensor) -> None:
        """Raise a `Mistake` unless another seed, and another value of what it must use, gives another answer."""
        if self.seed:
            if not torch.equal(got, self._answered(function, inputs)):
                raise Mistake(f"{self.name}: gives another answer when called again with the same {self.seed}")
            if torch.equal(got, self._answered(function, inputs | {self.seed: inputs[self.seed] + 1})):
                raise Mistake(f"{self.name}: gives the same answer for another {self.seed}: {self.seed} is not used")
        for name, value in self.used.items():
            if torch.equal(got, self._answered(function, inputs | {name: value})):
                raise Mistake(f"{self.name}: gives the same answer for another {name}: {name} is not used")

    def _measure_with(self, name: str, seed: int, inputs: dict[str, Any], function: Callable[..., Any]) -> None:
        """Raise a `Mistake` unless an answer that is right with these inputs is so with another value of one."""
        other = inputs | {name: self.others[name]}
        try:
            self._measure((seed, name), other, function)
        except Mistake as wrong:
            got = self._in_time(function, copied(_asked(other)))
            told = f"{self.name}: right with {name} = {inputs[name]}, but with {name} = {other[name]}"
            if tuple(getattr(got, "shape", ())) == tuple(self.shape(inputs)) != tuple(self.shape(other)):
                raise Mistake(f"{told} the answer has the same shape, {tuple(got.shape)}: {name} is not used") from None
            raise Mistake(f"{told}: {str(wrong).removeprefix(f'{self.name}: ')}") from None

    def _twin(self, drawn: Drawn, inputs: dict[str, Any], got: Tensor, shared: float = 0.0) -> str:
        """Return the name of the listed mistake that gives what the answer gave, with more than ``shared`` of whose
        entries it agrees; empty if none does.
        """
        for sentence, wrong in (self.mistakes or {}).items():
            try:
                pair = self.compared(got), self.compared(self._gives(wrong, drawn, inputs))
                if _alike(*pair) and (not shared or _shared(*pair) > shared):
                    return sentence
            except CRASHES:  # a mistake that crashes on these inputs is not the answer's, which did not
                continue
        return ""


def _asked(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that the function is handed: all but what only the checker may know."""
    return {name: value for name, value in inputs.items() if not name.startswith("_")}


def _alike(got: Tensor, other: Tensor) -> bool:
    """Return whether two answers are the same but for rounding. Numbers are compared part by part along the first axis,
    and where they are not 0 in both: of three matrices, one may be nearly empty.
    """
    if got.shape != other.shape or got.is_floating_point() != other.is_floating_point():
        return False
    if not got.is_floating_point():
        return bool((got == other).double().mean() >= AGREES)
    parts = [each.detach().double() if got.ndim > 1 else each.detach().double()[None] for each in (got, other)]
    return all(_near(*pair) for pair in zip(*parts, strict=True))


def _shared(got: Tensor, other: Tensor) -> float:
    """Return the share of a table's entries that agree. Numbers are not told apart below what `_alike` allows: 1."""
    if got.shape != other.shape or got.is_floating_point() or other.is_floating_point():
        return 1.0
    return (got == other).double().mean().item()


def _near(got: Tensor, other: Tensor) -> bool:
    least = CLOSE * other.abs().max()
    counted = (got.abs() > least) | (other.abs() > least)
    return bool(((got - other).abs() <= least)[counted].double().mean() >= AGREES) if counted.any() else True


def summit(*, draw: Callable[[torch.Generator], dict[str, Any]], **options: Any) -> Callable[..., Summit]:
    """Make the decorated function the course's answer to the summit of its name."""
    return lambda answer: Summit(answer.__name__, answer, draw, **options)
