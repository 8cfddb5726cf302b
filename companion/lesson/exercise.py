"""What an exercise is: the course's answer, fresh inputs, and the mistakes that it knows by name.

In a lesson an `Exercise` decorates the learner's function, and checks it in the next cell:

    @exercises.newton_step
    def newton_step(M, S):
        raise NotImplementedError  # your code here

    exercises.newton_step.check(newton_step)        # newton_step: not attempted

Until the function is written, calling it gives the course's answer, so that the rest of the lesson runs. A wrong
function makes ``check`` raise a `Mistake` that says what is wrong. ``grade`` is the same check on other inputs, never
with the stand-in.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from companion.core.defaults import set_otherwise, torch_defaults
from companion.lesson.attempts import (
    Attempt,
    Mistake,
    NotAttempted,
    called,
    examined,
    failing_line,
    in_lines,
    is_stub,
    others_answered,
    own_function,
    source_of,
)
from companion.lesson.mistakes import Mistakes
from companion.lesson.near_misses.programs import leaves_out
from companion.lesson.near_misses.search import Reason, reason_of
from companion.lesson.seen import apart, arranged, not_finite, pattern, shape_hint
from companion.lesson.trials import (
    CPU_ADVICE,
    CRASHES,
    Late,
    Searched,
    copied,
    first_not_finite,
    first_spread,
    gradients_by,
    ignores,
    in_float64,
    leaves_device,
)

CHECK_SEEDS = range(5)
GRADE_SEEDS = range(1000, 1006)
CONFIRM_SEEDS = range(2000, 2003)
LISTED_SEEDS = range(2000, 2008)  # for a listed mistake, which may do as another on small inputs
FLOAT32_TOLERANCE = 1e-5  # for answers in another dtype than the course's
IN_PLACE = "modified by an inplace operation"  # of torch's own text
told_once: set[str] = set()  # advice that this notebook has had


def draw_size(generator: torch.Generator, low: int, high: int) -> int:
    """Draw a whole number from ``low`` to ``high``, both included: sizes that differ from draw to draw show what is
    hard-wired.
    """
    return int(torch.randint(low, high + 1, (), generator=generator))


def draw_normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Draw independent N(0, 1) entries in float64."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise on a pure function from tensors (and numbers) to one tensor; one whose check has no grade may take a
    model, too.

    ``draw(generator)`` gives one call's arguments by name, in order; sizes should vary from draw to draw. ``mistakes``
    maps a diagnosis to the wrong function that it recognises: a function that answers as it does, and not as the
    course's, gets that diagnosis, the first that fits; if nothing is said, they are the rows of the topic's
    ``mistakes.toml`` (`companion.lesson.mistakes`). A mistake that nobody listed is looked for among the near misses
    of ``answer`` (`companion.lesson.near_misses`), which is therefore a plain function, written as a good learner would
    write it. Values are right within ``tolerance``, relative to the largest entry of the course's answer. Unless the
    task ``states_dtype``, another floating-point dtype is no mistake. ``gradient`` names the arguments that the lesson
    goes on to differentiate by: there a right value with another gradient is wrong. An answer that the lesson goes on
    to call in ``float32`` must take inputs in float32, and keep that. ``now`` ends the line of a right answer: what it
    has made possible, in half a sentence. ``crashes`` maps a pattern in an error's text to a sentence on its cause.
    """

    name: str
    answer: Callable[..., Tensor]
    draw: Callable[[torch.Generator], dict[str, Any]]
    mistakes: Mapping[str, Callable[..., Tensor]] | None = None
    tolerance: float = 1e-6
    states_dtype: bool = False
    gradient: tuple[str, ...] = ()
    float32: bool = False
    now: str = ""
    crashes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mistakes is None:
            object.__setattr__(self, "mistakes", Mistakes(self.name, self.answer))

    def __call__(self, function: Callable[..., Any]) -> "Attempt":
        """Decorate the learner's function."""
        return Attempt(self, function)

    def check(self, function: Callable[..., Any]) -> None:
        """Print 'correct' or 'not attempted', or raise a `Mistake` with the diagnosis. What harms nobody is advice, on
        a line of its own. All is computed under torch's own defaults.
        """
        if settings := set_otherwise():
            print(f"{self.name}: {settings} is in force here; the check computes with torch's own defaults")
        try:
            with torch_defaults():
                advice = self._examine(own_function(function), CHECK_SEEDS, advise=True)
        except NotAttempted:
            print(f"{self.name}: not attempted")
        else:
            praise = f"{self.name}: correct" + (f": {self.now}" if self.now else "")
            print(*map(in_lines, [praise, *(f"  Advice: {each}." for each in advice)]), sep="\n")

    def grade(self, function: Callable[..., Any], seeds: Sequence[int] = GRADE_SEEDS) -> None:
        """Raise unless the learner's own function is right on inputs that ``check`` has not used."""
        with torch_defaults():
            self._examine(own_function(function), seeds)

    def _examine(self, function: Callable[..., Any], seeds: Sequence[int], *, advise: bool = False) -> list[str]:
        examined.add(self)
        try:
            advice, inputs = [], {}
            for seed in seeds:
                inputs = self._drawn(seed)
                advice += [each for each in self._examine_on(inputs, function) if each not in advice]
            self._keeps_float32(inputs, function)
            own = advise and CPU_ADVICE not in told_once and leaves_device(function, inputs)
            if own and not leaves_device(self.answer, inputs):
                told_once.add(CPU_ADVICE)
                advice.append(CPU_ADVICE)
            return advice
        finally:
            examined.discard(self)

    def _drawn(self, seed: int) -> dict[str, Any]:
        return self.draw(torch.Generator().manual_seed(seed))

    def _examine_on(self, inputs: dict[str, Any], function: Callable[..., Any]) -> list[str]:
        called.clear()
        try:
            return self._compare_on(inputs, function)
        except NotAttempted:
            raise
        except Mistake as mistake:
            raise self._of_others(function, inputs) or mistake from None

    def _of_others(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Mistake | None:
        """Return the mistake of an answer that is right if the learner's other functions are, those that it calls."""
        if not called:
            return None
        names = " and ".join(sorted(called))
        try:
            with others_answered():
                got = function(*copied(inputs).values())
        except CRASHES:
            return None
        if not (isinstance(got, Tensor) and self._close(got.detach(), self.answer(**copied(inputs)))):
            return None
        return Mistake(f"{self.name}: right with the course's {names} in place of yours; mend {names} first")

    def _compare_on(self, inputs: dict[str, Any], function: Callable[..., Any]) -> list[str]:
        given = copied(inputs)
        got = self._call(function, given)
        for name, value in inputs.items():
            if isinstance(value, Tensor) and not torch.equal(value, given[name]):
                raise Mistake(f"{self.name}: changes its argument {name} in place; work on a new tensor instead")
        expected = self.answer(**copied(inputs))

        def reason(*, sure: bool = False) -> str:
            return self._reason(function, inputs, got.detach(), expected, sure=sure)

        def shape_reason() -> str:
            spread = got.shape == (*expected.shape, *expected.shape[-1:]) and expected.ndim
            return (first_spread(function, inputs) if spread else "") + reason(sure=True)

        self._compare_form(got, tuple(expected.shape), inputs, shape_reason)
        advice = self._compare_kind(got, expected, inputs, reason)
        other_dtype = got.dtype != expected.dtype
        got = got.to(expected.dtype)
        if not self._close(got.detach(), expected, FLOAT32_TOLERANCE if other_dtype else 0):
            raise Mistake(f"{self.name}: {self._diagnosis(function, inputs, got.detach(), expected)}")
        if self.gradient:
            self._compare_gradients(function, inputs, expected)
        return advice

    def _keeps_float32(self, inputs: dict[str, Any], function: Callable[..., Any]) -> None:
        """Raise a `Mistake` where an answer that is right in float64 is to take float32, and fails there."""
        if not self.float32:
            return
        wide = {name for name, value in inputs.items() if isinstance(value, Tensor) and value.is_floating_point()}
        try:
            got = self._call(function, {name: v.float() if name in wide else v for name, v in inputs.items()})
            found = f"it gives {got.dtype}" if got.dtype != torch.float32 else ""
        except Mistake as crash:
            found = "it " + str(crash).removeprefix(f"{self.name}: ").partition(" The inputs were")[0].rstrip(".")
        if found:
            raise Mistake(
                f"{self.name}: right in float64 alone; with inputs in float32, which the lesson goes on to use, "
                f"{found}. Take the dtype from the inputs, as by values.new_tensor or torch.zeros_like"
            )

    def _compare_gradients(self, function: Callable[..., Any], inputs: dict[str, Any], expected: Tensor) -> None:
        """Raise a `Mistake` unless a random weighted sum of the answer's entries has the gradient that it should."""
        weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        places = [list(inputs).index(name) for name in self.gradient]
        right_gradients = gradients_by(self.answer, list(copied(inputs).values()), places, weights)
        of_function = getattr(function, "gradients_by", None)  # one that runs in another process
        try:
            values = list(copied(inputs).values())
            got = (
                of_function(values, places, weights) if of_function else gradients_by(function, values, places, weights)
            )
        except CRASHES as error:
            crash = str(self._crash(function, error, inputs)).removeprefix(f"{self.name}: ")
            raise Mistake(f"{self.name}: the values are right, but where a gradient is taken it {crash}") from None
        if got.shape != right_gradients.shape:
            raise Mistake(f"{self.name}: the values are right, but there is no gradient")
        sizes = [inputs[name].numel() for name in self.gradient]
        for name, own, right in zip(self.gradient, got.split(sizes), right_gradients.split(sizes), strict=True):
            if own.isnan().all():
                raise Mistake(
                    f"{self.name}: the values are right, but no gradient reaches {name}: it is cut off on the way"
                )
            if not self._close(own, right, FLOAT32_TOLERANCE if expected.dtype == torch.float32 else 0):
                if listed := self._listed_by_gradient(inputs, places, weights, got, expected):
                    raise Mistake(f"{self.name}: {listed}")
                shape = inputs[name].shape
                seen = self._compare_values(_wide(own.view(shape)), _wide(right.view(shape)))
                raise Mistake(f"{self.name}: the values are right, but the gradient for {name} is not: {seen}")

    def _listed_by_gradient(
        self, inputs: dict[str, Any], places: list[int], weights: Tensor, got: Tensor, expected: Tensor
    ) -> str:
        """Return the listed mistake that gives right values and the gradients of the answer; empty if none does."""
        for diagnosis, wrong in (self.mistakes or {}).items():
            if self._close(wrong(**copied(inputs)).detach(), expected):
                theirs = gradients_by(wrong, list(copied(inputs).values()), places, weights)
                if self._close(got, theirs, FLOAT32_TOLERANCE if expected.dtype == torch.float32 else 0):
                    return diagnosis
        return ""

    def _call(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
        try:
            return function(*inputs.values())
        except NotAttempted:
            raise
        except CRASHES as error:
            if is_stub(function, error):
                raise NotAttempted(f"{self.name}: not attempted") from None
            raise self._crash(function, error, inputs) from None

    def _crash(self, function: Callable[..., Any], error: BaseException, inputs: dict[str, Any]) -> Mistake:
        text, line = str(error), failing_line(function, error)
        if IN_PLACE in text:
            text = "a tensor that the gradient needs is changed in place, as by +=; make a new one instead"
        reason = (f" at `{line}`" if line else "") + (f": {text}" if text else "")
        hint = next((f" {said}" for part, said in self.crashes.items() if re.search(part, text)), "")
        if ("dtype" in text or "scalar type" in text) and isinstance(in_float64(function, inputs), Tensor):
            hint = (
                " A tensor that you create has another dtype than the inputs: pass dtype=... on, or use "
                "torch.zeros_like and its kin."
            )
        return Mistake(f"{self.name}: raises {type(error).__name__}{reason}.{hint} The inputs were {_forms(inputs)}.")

    def _compare_form(
        self, got: Any, shape: tuple[int, ...], inputs: dict[str, Any], reason: Callable[[], str] = str
    ) -> None:
        if got is None:
            raise Mistake(f"{self.name}: returns nothing, where a tensor of shape {shape} is due")
        if type(got) not in (Tensor, torch.nn.Parameter):
            raise Mistake(f"{self.name}: returns {type(got).__name__}, not a tensor of shape {shape}")
        if got.shape != shape:
            hint = shape_hint(tuple(got.shape), shape)
            wrong = f"wrong shape {tuple(got.shape)}, must be {shape}, for {_forms(inputs)}.{hint}"
            raise Mistake(f"{self.name}: {wrong}{reason()}")

    def _compare_kind(
        self, got: Tensor, expected: Tensor, inputs: dict[str, Any], reason: Callable[[], str]
    ) -> list[str]:
        if got.device != expected.device:
            raise Mistake(f"{self.name}: the answer is on {got.device}, the inputs are on {expected.device}")
        if got.dtype == expected.dtype:
            return []
        whole = {got.dtype, expected.dtype} <= {torch.int32, torch.int64}
        if whole or (got.is_floating_point() and expected.is_floating_point() and not self.states_dtype):
            narrow = got.dtype.itemsize < expected.dtype.itemsize  # a wider one harms nobody
            return [f"the answer is in {got.dtype}; {expected.dtype} would go with what follows"] if narrow else []
        given = {value.dtype for value in inputs.values() if isinstance(value, Tensor)}
        source = ", that of the inputs" if expected.dtype in given else ""
        raise Mistake(f"{self.name}: wrong dtype {got.dtype}, must be {expected.dtype}{source}.{reason()}")

    def _float64_is_right(self, function: Callable[..., Any], inputs: dict[str, Any], expected: Tensor) -> bool:
        wide = in_float64(function, inputs)
        return isinstance(wide, Tensor) and wide.dtype == expected.dtype and self._close(wide.detach(), expected)

    def _close(self, got: Tensor, expected: Tensor, tolerance: float = 0) -> bool:
        if got.shape != expected.shape:
            return False
        got, expected = _wide(got), _wide(expected)
        sizes = expected.abs()
        scale = torch.where(sizes.isfinite(), sizes, 0).max() if sizes.numel() else 0
        within = max(tolerance, self.tolerance) * scale
        return bool(((got == expected) | ((got - expected).abs() <= within)).all())  # inf == inf, but inf - inf is NaN

    def _near_miss(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Reason | None:
        """Return what a wrong answer gets wrong, if it behaves like a function one step away from the course's."""
        try:
            return reason_of(self, function, inputs)
        except (*CRASHES, Late):  # a help that fails must not stand in the way of what is certain
            return None

    def _listed(
        self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor, expected: Tensor
    ) -> Iterator[str]:
        """Yield the listed mistakes that a wrong answer makes."""
        for diagnosis, wrong in (self.mistakes or {}).items():
            imitation = wrong(**copied(inputs))
            if self._close(got, imitation) and not self._close(imitation, expected) and self._imitates(wrong, function):
                yield diagnosis

    def _reason(
        self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor, expected: Tensor, *, sure: bool = False
    ) -> str:
        """Return a sentence on why, to follow what was seen; where ``sure``, only one that the answer's program bears
        out.
        """

        def search(searched: Callable[..., Any]) -> str | None:
            near = self._near_miss(searched, inputs)
            return next(
                self._listed(searched, inputs, got, expected),
                near.mistake if near and (near.sure or not sure) else None,
            )

        sentence = self._searched(function, search)
        return f" The reason: {sentence}." if sentence else ""

    def _diagnosis(self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor, expected: Tensor) -> str:
        diagnosis = self._searched(function, lambda searched: next(self._diagnoses(searched, inputs, got, expected)))
        return diagnosis or self._compare_values(_wide(got), _wide(expected))

    def _searched(self, function: Callable[..., Any], search: Callable[..., str | None]) -> str | None:
        """Return what a search finds wrong with a function that has been rejected, or None when its time is up. That
        time is its own: a function that runs elsewhere has ``searching``, a context in which it is counted there.
        """
        try:
            with getattr(function, "searching", contextlib.nullcontext)():
                return search(Searched(function))
        except Late:
            return None

    def _diagnoses(
        self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor, expected: Tensor
    ) -> Iterator[str]:
        """Yield every diagnosis that fits the wrong answer, the most specific first."""
        yield from self._listed(function, inputs, got, expected)
        yield from self._unchanged(inputs, got)
        nothing = "every entry is False" if got.dtype == torch.bool else "every entry is 0"
        if not got.any() and self._imitates(lambda **given: torch.zeros_like(self.answer(**given)), function):
            yield nothing
        if not got.isfinite().all() and expected.isfinite().all():
            yield not_finite(got) + (
                self._reason(function, inputs, got, expected) or first_not_finite(function, inputs)
            )
        if self._wavers(function, inputs, got):
            yield "gives another answer when called again with the same inputs"
        if got.dtype == torch.bool and self._close(~got, expected):
            yield "True and False are exchanged"
        yield from self._imprecise(function, inputs, got, expected)
        yield from self._reasons(function, inputs)
        yield self._compare_values(_wide(got), _wide(expected)) if got.any() else nothing

    def _unchanged(self, inputs: dict[str, Any], got: Tensor) -> Iterator[str]:
        """Yield that a wrong answer is one of its arguments."""
        for name, value in inputs.items():
            if isinstance(value, Tensor) and self._close(got, value):
                yield f"the answer is the argument {name}, unchanged"

    def _imprecise(
        self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor, expected: Tensor
    ) -> Iterator[str]:
        """Yield that an answer is wrong by its precision alone: in float64 it would be right."""
        if self._float64_is_right(function, inputs, expected):
            dtype = function(*copied(inputs).values()).dtype
            part = "a part is in a lower precision" if dtype == expected.dtype else f"the answer is in {dtype}"
            yield f"nearly right, off by {_share(got, expected)} of the largest entry: {part}"

    def _reasons(self, function: Callable[..., Any], inputs: dict[str, Any]) -> Iterator[str]:
        """Yield the arguments that a wrong answer leaves out or does not change with, and the near miss that it behaves
        like: the more certain first.
        """
        draws = [inputs, *map(self._drawn, CONFIRM_SEEDS)]
        ignored = [name for name in inputs if ignores(function, self.answer, draws, name, self._close)]
        near, source = self._near_miss(function, inputs), source_of(function)
        sure = near.mistake if near and near.sure else ""
        for name in ignored:
            if source and leaves_out(source.tree, list(inputs).index(name)):
                explains = re.search(rf"^{name} is |where {name} belongs|in place of {name}$", sure)
                yield f"does not use its argument {name}" + (f": {sure}" if explains else "")
        if sure:
            yield sure
        for name in ignored:
            yield f"the answer does not change with {name}"
        if near:
            yield near.mistake

    def _wavers(self, function: Callable[..., Any], inputs: dict[str, Any], got: Tensor) -> bool:
        again = function(*copied(inputs).values())
        if not isinstance(again, Tensor) or again.shape != got.shape:
            return True
        # in one dtype: infinity is replaced by the largest number, which each dtype has its own of
        return not self._close(_wide(again).nan_to_num(), _wide(got).nan_to_num())

    def _imitates(self, wrong: Callable[..., Tensor], function: Callable[..., Any]) -> bool:
        """Return whether two functions agree on further inputs: on a single one, of small sizes, different mistakes may
        look alike.
        """
        for inputs in map(self._drawn, LISTED_SEEDS):
            try:
                got = function(*copied(inputs).values())
            except CRASHES:  # a wrong answer that crashes elsewhere is not the one imitated
                return False
            if not (isinstance(got, Tensor) and self._close(got, wrong(**copied(inputs)))):
                return False
        return True

    def _compare_values(self, got: Tensor, expected: Tensor) -> str:
        if self._close(-got, expected):
            return "the sign is flipped"
        ratio = (got * expected).sum() / expected.square().sum()
        if (
            got.numel() > 1 and ratio.abs() > 1e-9 and self._close(got / ratio, expected)
        ):  # one number is a multiple of any other
            return f"every entry is {ratio:.4g} times what it should be"
        if order := arranged(got, expected, self._close):
            return order
        off, largest = apart(got, expected)
        if off.max() < 1e-3 * largest:
            share = _share(got, expected)
            return f"nearly right, off by at most {share} of the largest entry"
        at = tuple(map(int, np.unravel_index(int(off.argmax()), got.shape)))  # torch's loads SymPy for it
        if not at:
            return f"wrong value {got:.6g}, should be {expected:.6g}"
        wrong = ~(off <= self.tolerance * largest)  # NaN is not at most anything
        seen = pattern(got, expected, wrong, self._close)
        return (
            f"wrong values in {int(wrong.sum())} of {got.numel()} entries; the worst is at {list(at)}: {got[at]:.6g}, "
            f"should be {expected[at]:.6g}{'. ' + seen if seen else ''}"
        )


def exercise(*, draw: Callable[[torch.Generator], dict[str, Any]], **options: Any) -> Callable[..., Exercise]:
    """Make the decorated function the course's answer to the exercise of its name."""
    return lambda answer: Exercise(answer.__name__, answer, draw, **options)


def _wide(values: Tensor) -> Tensor:
    return values.to(torch.complex128 if values.is_complex() else torch.float64)


def _share(got: Tensor, expected: Tensor) -> str:
    off, largest = apart(_wide(got), _wide(expected))
    return f"{off.max() / largest:.0e}"


def _forms(inputs: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_form(value)}" for name, value in inputs.items())


def _form(value: Any) -> str:
    if isinstance(value, Tensor):
        return str(tuple(value.shape))
    if isinstance(value, torch.nn.Module):
        return f"of class {type(value).__name__}"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
