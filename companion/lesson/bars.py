"""What a check measures, beside the bar that it must reach.

A stage that compares a measured number with a bar does so by one of these two functions:

    right = (logits.argmax(-1) == inputs["_targets"]).double().mean().item()
    if not reaches("share of right tokens", right, 0.9):
        return f"it is right on {right:.0%} of the held-out tokens; 90 % are asked for"

They compare, and nothing else. Within `recorded`, they keep what they have compared as well: so it is seen where each
bar stands between right answers and wrong ones, on every processor.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A number and its bar, under the ``name`` of what was measured. ``sense`` is 1 where it must be at least the bar,
    -1 where at most.
    """

    name: str
    value: float
    bar: float
    sense: int

    @property
    def beyond(self) -> float:
        """Return how far the number is on the right side of its bar; negative on the wrong side."""
        return self.sense * (self.value - self.bar)


_kept: ContextVar[list[Measured] | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[list[Measured]]:
    """Yield a list that grows by all that is compared until the block ends."""
    comparisons: list[Measured] = []
    token = _kept.set(comparisons)
    try:
        yield comparisons
    finally:
        _kept.reset(token)


def reaches(name: str, value: float, bar: float) -> bool:
    """Return whether ``value``, what is measured under ``name``, is not below ``bar``. NaN is."""
    return _compared(Measured(name, float(value), float(bar), 1))


def stays_within(name: str, value: float, bar: float) -> bool:
    """Return whether ``value``, what is measured under ``name``, is not above ``bar``. NaN is."""
    return _compared(Measured(name, float(value), float(bar), -1))


def _compared(one: Measured) -> bool:
    if (kept := _kept.get()) is not None:
        kept.append(one)
    return one.beyond >= 0
