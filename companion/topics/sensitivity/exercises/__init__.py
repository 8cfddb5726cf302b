"""The exercises of lesson 10, simplicity bias: what the lesson imports as ``exercises``.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

from companion.topics.sensitivity.exercises.functions import estimate, influences, neighbours, weight_by_degree
from companion.topics.sensitivity.exercises.networks import at_equal_accuracy, constant_or_simple, steadied

__all__ = [
    "at_equal_accuracy",
    "constant_or_simple",
    "estimate",
    "influences",
    "neighbours",
    "steadied",
    "weight_by_degree",
]
