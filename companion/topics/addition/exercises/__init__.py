"""The exercises of lesson 04, addition with Fourier features.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

from companion.topics.addition.exercises.ablating import (
    error_signature,
    excess_over_random,
    random_filter,
    remove_waves,
)
from companion.topics.addition.exercises.reading import logit_lens, share_of_logits
from companion.topics.addition.exercises.tables import ppmi, wave_rows

__all__ = [
    "error_signature",
    "excess_over_random",
    "logit_lens",
    "ppmi",
    "random_filter",
    "remove_waves",
    "share_of_logits",
    "wave_rows",
]
