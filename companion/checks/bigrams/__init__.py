"""The exercises of lesson 06, induction heads.

Each wrong function under ``mistakes`` is something that people really write; `companion.checks.exercise` uses it to
name the mistake.
"""

from companion.checks.bigrams.circuit import induction_score, key_memory, output_memory, position_memory
from companion.checks.bigrams.inside import adam_step, low_rank, recalled

__all__ = [
    "adam_step",
    "induction_score",
    "key_memory",
    "low_rank",
    "output_memory",
    "position_memory",
    "recalled",
]
