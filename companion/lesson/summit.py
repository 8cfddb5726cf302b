"""An exercise that is checked by what its answer does: a model that was trained, an attack that succeeds.

There is no one right answer to compare with. What comes back is measured in stages, each of which says what is still
missing and how far it is:

    def learns(inputs, logits):
        right = (logits.argmax(-1) == inputs["targets"]).double().mean()
        return f"it is right on {right:.0%} of the held-out tokens; 90 % are asked for" if right < 0.9 else None

    @summit(draw=..., shape=..., stages=(learns,), seconds=4)
    def train_heads(tokens, targets): ...
"""

import _thread
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from companion.lesson.attempts import Mistake, examined
from companion.lesson.exercise import Exercise
from companion.lesson.seen import not_finite
from companion.lesson.trials import copied

PATIENCE = 15  # times the seconds that a right answer may take: whoever trains for longer waits in vain
Stage = Callable[[dict[str, Any], Tensor], str | None]


@dataclass(frozen=True, eq=False)
class Summit(Exercise):
    """An exercise on a function from tensors (and numbers) to one tensor, of which many are right.

    ``shape`` gives the answer's shape from the inputs. ``stages`` are measured in order, and the first that returns a
    sentence is the diagnosis; each gets the inputs by name and the answer, detached. What only the checker may know
    (the targets of a test) is drawn under a name that begins with ``_`` and is not handed to the function. ``seconds``
    of one core are what a right answer may take, here and, threefold, in the grader. One seed is tried, not five:
    an answer trains.
    """

    shape: Callable[[dict[str, Any]], tuple[int, ...]] = field(kw_only=True)
    stages: Sequence[Stage] = field(kw_only=True)
    seconds: float = field(kw_only=True)

    def _examine(self, function: Callable[..., Any], seeds: Sequence[int], **_: bool) -> list[str]:  # no advice
        examined.add(self)
        try:
            self._measure(self._drawn(seeds[0]), function)
        finally:
            examined.discard(self)
        return []

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
                f"takes {self.seconds:g}. Does its loop wait for a loss that does not fall, say because not all that "
                "should learn does?"
            ) from None
        finally:
            timer.cancel()

    def _measure(self, inputs: dict[str, Any], function: Callable[..., Any]) -> None:
        """Raise a `Mistake` with the first stage that is missing."""
        asked = {name: value for name, value in inputs.items() if not name.startswith("_")}
        got = self._in_time(function, copied(asked))
        self._compare_form(got, tuple(self.shape(inputs)), asked)
        if not torch.isfinite(got).all():
            raise Mistake(
                f"{self.name}: {not_finite(got)} Does the training diverge, or is something divided by 0, say a "
                "gradient by its largest entry while it is still 0?"
            )
        for stage in self.stages:
            if missing := stage(inputs, got.detach()):
                raise Mistake(f"{self.name}: {missing}")


def summit(*, draw: Callable[[torch.Generator], dict[str, Any]], **options: Any) -> Callable[..., Summit]:
    """Make the decorated function the course's answer to the summit of its name."""
    return lambda answer: Summit(answer.__name__, answer, draw, **options)
