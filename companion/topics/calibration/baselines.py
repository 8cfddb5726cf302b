"""What somebody says who counts and does not learn: repeat the corpus, or leave room for what it has not shown.

Candidates are grouped by how often the corpus shows them, ``seen`` times each, ``size`` of them in a group; a model is
the mass that it gives to each group, spread evenly within.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

TRUSTED = 30  # a group so small says too little about the next one


def memoriser(seen: Int[Tensor, "groups"], size: Int[Tensor, "groups"]) -> Float[Tensor, "groups"]:
    """Repeats a document of the corpus: g(group) = seen size / n."""
    weight = (seen * size).double()
    return weight / weight.sum()


def good_turing_model(seen: Int[Tensor, "groups"], size: Int[Tensor, "groups"]) -> Float[Tensor, "groups"]:
    """Gives what was seen k times together the share (k + 1) N_{k+1} / n, so that the unseen get N_1 / n (Good 1953).

    Only while group k + 1 has at least 30 members; the mass that is left goes to the groups beyond as `memoriser` has
    it, in proportion. Groups must come with ``seen`` ascending from 0.
    """
    memory, g = memoriser(seen, size), torch.zeros(len(seen), dtype=torch.float64, device=seen.device)
    at = 0
    while at + 1 < len(seen) and seen[at + 1] == seen[at] + 1 and size[at + 1] >= TRUSTED:
        g[at] = memory[at + 1]
        at += 1
    g[at:] = memory[at:] / memory[at:].sum() * (1 - g.sum())
    return g


def mixture(seen: Int[Tensor, "groups"], size: Int[Tensor, "groups"], unseen: float) -> Float[Tensor, "groups"]:
    """Return the masses of a memoriser that gives the share ``unseen`` to what it has never seen, the first group.

    Raises ValueError unless the share is from 0 to 1.
    """
    if not 0 <= unseen <= 1:
        raise ValueError(f"unseen = {unseen!r}: must be 0 to 1")
    g = (1 - unseen) * memoriser(seen, size)
    g[0] += unseen
    return g
