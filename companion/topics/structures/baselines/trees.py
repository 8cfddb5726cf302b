"""Search trees for queries of known popularity; `companion.topics.structures.baselines.search.tree_search` goes down in
them.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import at_least


class SearchTree(NamedTuple):
    """A binary search tree of n keys in sorted order: the place of its root, and of each key's children, or -1."""

    root: int
    left: Int[Tensor, "n"]
    right: Int[Tensor, "n"]


def optimal_search_tree(weights: Float[Tensor, "n"]) -> SearchTree:
    """Build the tree of least expected lookups, sum_i weights_i depth_i, for queries that ask for key i in proportion
    to ``weights``.

    cost(i, j) = sum of the weights i .. j - 1 + min over the root r of cost(i, r) + cost(r + 1, j): Knuth (1971),
    without the bounds on r that make n^3 steps n^2, since torch takes the minimum over all r, and over all ranges of
    one length, in one go.

    Raises ValueError for no weights, or a negative one.
    """
    n = _check_weights(weights)
    sums = torch.nn.functional.pad(weights.double().cumsum(0), (1, 0))
    cost = sums.new_zeros(n + 1, n + 1)
    best = torch.zeros(n + 1, n + 1, dtype=torch.long, device=weights.device)
    for length in range(1, n + 1):
        i = torch.arange(n + 1 - length, device=weights.device)
        r = i[:, None] + torch.arange(length, device=weights.device)  # (ranges, length): the roots to choose from
        least, at = (cost[i[:, None], r] + cost[r + 1, i[:, None] + length]).min(1)
        cost[i, i + length] = least + sums[i + length] - sums[i]
        best[i, i + length] = i + at
    roots = best.tolist()
    return _tree(n, lambda low, high: roots[low][high], weights.device)


def treap(weights: Float[Tensor, "n"]) -> SearchTree:
    """Build the tree with the heaviest key at the root, and so on below it on either side: a treap whose priorities are
    popularities.

    The learned treap of Lin, Luo, Woodruff (2022), arXiv:2206.12110. It is flat where popular keys lie anywhere, and a
    path where popularity falls from the first key to the last. Among equals the first key comes first.

    Raises ValueError for no weights, or a negative one.
    """
    n, values = _check_weights(weights), weights.tolist()
    return _tree(n, lambda low, high: max(range(low, high), key=values.__getitem__), weights.device)


def _check_weights(weights: Tensor) -> int:
    at_least(n=(len(weights), 1))
    if not (weights >= 0).all():
        raise ValueError(f"weights: have the entry {weights[~(weights >= 0)][0].item():.3g}; must be at least 0")
    return len(weights)


def _tree(n: int, root_of: Callable[[int, int], int], device: torch.device) -> SearchTree:
    """The tree whose subtree of the keys low .. high - 1 has its root at ``root_of``(low, high)."""
    children = {-1: [-1] * n, 1: [-1] * n}
    root, ranges = -1, [(0, n, None, 0)]
    while ranges:
        low, high, parent, side = ranges.pop()
        if low == high:
            continue
        key = root_of(low, high)
        if parent is None:
            root = key
        else:
            children[side][parent] = key
        ranges += [(low, key, key, -1), (key + 1, high, key, 1)]
    return SearchTree(root, torch.tensor(children[-1], device=device), torch.tensor(children[1], device=device))
