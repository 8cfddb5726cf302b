"""Updating all signs of a dense memory at once, beside one sign after the other.

``pytest tests/benchmarks/test_memories.py --benchmark-enable -n0`` prints the times; no test asserts one.
"""

import torch

from companion.topics.memories.by_hand import dense_update
from companion.topics.memories.data import flipped, sign_patterns


def one_after_the_other(X, states, power):
    """The energy of either sign, for each sign of each state."""
    X, states = X.double(), states.double()
    updated = states.clone()
    for t, s in enumerate(states):
        for i in range(X.shape[1]):
            o = X @ s - X[:, i] * s[i]
            gap = ((o + X[:, i]) ** power - (o - X[:, i]) ** power).sum()
            updated[t, i] = s[i] if gap == 0 else gap.sign()
    return updated


def test_a_dense_update(ratio):
    X = sign_patterns(1000, 64, generator=1)
    states = flipped(X[:20], 0.1, generator=2)
    fast, slow = ratio("dense update", lambda: dense_update(X, states, 3), lambda: one_after_the_other(X, states, 3))
    assert torch.equal(fast.double(), slow)
