"""The exercises of lesson 05, associative memory: what the lesson imports as ``exercises``."""

from companion.topics.memories.exercises.retrieving import flow_step, hopfield_sweep, softmax_update
from companion.topics.memories.exercises.writing import chance_right, cubic_memory, logit_variance, memory_gradient

__all__ = [
    "chance_right",
    "cubic_memory",
    "flow_step",
    "hopfield_sweep",
    "logit_variance",
    "memory_gradient",
    "softmax_update",
]
