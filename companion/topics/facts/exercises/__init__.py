"""The exercises of lesson 07, factual recall.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

from companion.topics.facts.exercises.learning import rest, saw_gradient, signal
from companion.topics.facts.exercises.storing import bits, both_vote, list_key, plateau

__all__ = ["bits", "both_vote", "list_key", "plateau", "rest", "saw_gradient", "signal"]
