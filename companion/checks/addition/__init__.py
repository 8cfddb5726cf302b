"""The exercises of lesson 04, addition with Fourier features.

Each wrong function under ``mistakes`` is something that people really write; `companion.checks.exercise` uses it to
name the mistake.
"""

from companion.checks.addition.ablating import error_signature, excess_over_random, random_filter, remove_waves
from companion.checks.addition.reading import logit_lens, share_of_logits
from companion.checks.addition.tables import ppmi, wave_rows

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
