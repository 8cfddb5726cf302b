"""The exercises of lesson 13, prediction against generation.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

from companion.topics.calibration.exercises.generation import (
    best_score,
    floor,
    good_turing,
    miscalibration,
    validity_bound,
)
from companion.topics.calibration.exercises.prediction import moment_gap, relative_entropy, sampled_accuracy

__all__ = [
    "best_score",
    "floor",
    "good_turing",
    "miscalibration",
    "moment_gap",
    "relative_entropy",
    "sampled_accuracy",
    "validity_bound",
]
