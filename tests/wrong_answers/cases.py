"""The form of a case: an answer as a learner would type it, and the message that it must get (none: it is right)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """``source`` defines a function of the exercise's name; ``message`` is part of the diagnosis, or None for a right
    answer, which may get an ``advice``.
    """

    source: str
    message: str | None = None
    advice: str = ""
