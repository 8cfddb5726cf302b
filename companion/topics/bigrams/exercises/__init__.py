"""The exercises of lesson 06, induction heads.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

from companion.topics.bigrams.exercises.circuit import induction_score, key_memory, output_memory, position_memory
from companion.topics.bigrams.exercises.inside import adam_step, low_rank, recalled

__all__ = [
    "adam_step",
    "induction_score",
    "key_memory",
    "low_rank",
    "output_memory",
    "position_memory",
    "recalled",
]
