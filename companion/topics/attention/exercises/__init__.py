"""The exercises of lesson 01, attention basics: what the lesson imports as ``exercises``."""

from companion.topics.attention.exercises.circuits import chain, double, induction_layers, lookup
from companion.topics.attention.exercises.weighing import attention, multi_head, shift_scores

__all__ = ["attention", "chain", "double", "induction_layers", "lookup", "multi_head", "shift_scores"]
