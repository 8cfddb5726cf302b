"""The exercises of lesson 08, learned data structures: what the lesson imports as ``exercises``."""

from companion.topics.structures.exercises.hashing import conservative_update, hash_codes
from companion.topics.structures.exercises.losses import place_loss
from companion.topics.structures.exercises.search import best_so_far, binary_search, gumbel_lookup, soft_sort

__all__ = [
    "best_so_far",
    "binary_search",
    "conservative_update",
    "gumbel_lookup",
    "hash_codes",
    "place_loss",
    "soft_sort",
]
