"""Classical data structures for the nearest point, batched and counted in lookups.

Every search takes ``points`` (batch, n, dim), or one set (1, n, dim) for all queries, and ``query`` (batch, dim), and
says which points it looked at, in turn: (batch, lookups) places in ``points``, -1 for a lookup that touches no point.
Its answer after i lookups is the nearest of the first i. A search that has ended repeats its last point. What happens
before the query comes is free, and is not counted: sorting, building a tree, hashing. Comparing, hashing the query and
following pointers are free too.

Set-up: Salemohamed et al. (2024), arXiv:2411.03253, where a transformer learns such structures from examples.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range
from companion.topics.structures.baselines.trees import SearchTree

# --- Sorted numbers


class Remaining(NamedTuple):
    """The sorted places low .. high - 1 that may still matter; their points and the query lie between two numbers."""

    low: Int[Tensor, "batch"]
    high: Int[Tensor, "batch"]
    above: Float[Tensor, "batch"]
    below: Float[Tensor, "batch"]


def binary_search(
    points: Float[Tensor, "#batch n 1"], query: Float[Tensor, "batch 1"], lookups: int
) -> Int[Tensor, "batch lookups"]:
    """Look at the middle of what remains, place floor((low + high) / 2), and keep the half on the query's side.

    When nothing remains, both neighbours of the query have been seen: after floor(log2 n) + 1 lookups the answer is
    exact.

    Raises ValueError for points or queries with more than one number, another number of queries than sets, or
    ``lookups`` < 1.
    """
    return _narrow(points, query, lookups, lambda _, left: (left.low + left.high) // 2)


def interpolation_search(
    points: Float[Tensor, "#batch n 1"], query: Float[Tensor, "batch 1"], lookups: int
) -> Int[Tensor, "batch lookups"]:
    """Look where the query would be if what remains were evenly spread (Peterson 1957); O(log log n) lookups for
    uniform numbers.

    m numbers spread between x_low and x_high have expected values x_low + (x_high - x_low) k / (m + 1), k = 1 .. m, so
    k is (m + 1) (q - x_low) / (x_high - x_low), rounded, at least 1 and at most m. The bounds known at the start are -1
    and 1.

    Raises ValueError as `binary_search`.
    """

    def place(_: int, left: Remaining) -> Tensor:
        share = (query[:, 0] - left.above) / (left.below - left.above).clamp_min(torch.finfo(query.dtype).tiny)
        return left.low - 1 + (share.clamp(0, 1) * (left.high - left.low + 1)).round().long()

    return _narrow(points, query, lookups, place)


def quantile_search(
    points: Float[Tensor, "#batch n 1"], query: Float[Tensor, "batch 1"], lookups: int, cdf: Callable[[Tensor], Tensor]
) -> Int[Tensor, "batch lookups"]:
    """Begin at the query's quantile, then gallop, then bisect: a search warm-started by the distribution (Bentley, Yao
    1976).

    With p = ``cdf``(q) of the distribution that the points come from, n p of them are expected below q, give or take s
    = sqrt(n p (1 - p)). The first lookup is the one of rank (n + 1) p. The next lie s, 2 s, 4 s, .. further on the
    query's side, but never beyond the middle of what remains, until the query has points on both sides; the rest is
    `binary_search`.

    ``points``, ``query``, ``lookups``: as everywhere here.

    Raises ValueError as `binary_search`, and for a ``cdf`` outside [0, 1].
    """
    n, p = points.shape[1], cdf(query[:, 0])
    wrong = p[~((p >= 0) & (p <= 1))]
    if len(wrong):
        raise ValueError(f"cdf: gives {wrong[0].item():.3g}; must be between 0 and 1")
    first = ((n + 1) * p).round().long() - 1
    spread = (n * p * (1 - p)).sqrt().round().long().clamp_min(1)

    def place(i: int, left: Remaining) -> Tensor:
        if i == 0:
            return first
        step, middle = spread * 2 ** (i - 1), (left.low + left.high) // 2
        upwards = torch.where(left.high == n, torch.minimum(left.low - 1 + step, middle), middle)
        downwards = torch.maximum(left.high - step, middle)
        return torch.where(left.low == 0, downwards, upwards)

    return _narrow(points, query, lookups, place)


def buckets(points: Float[Tensor, "#batch n 1"], query: Float[Tensor, "batch 1"], slots: int) -> Int[Tensor, "batch 2"]:
    """Extra space instead of lookups: [-1, 1] is cut into ``slots`` buckets, and a slot says which point is nearest to
    its bucket's middle.

    The first lookup reads the slot of the query's bucket (-1: no point), the second the point it names. A query beyond
    [-1, 1] belongs to the last bucket on its side.

    Raises ValueError as `binary_search`, and for ``slots`` < 1.
    """
    at_least(slots=(slots, 1))
    _sorted(points, query, 2)
    middles = (2 * torch.arange(slots, device=points.device, dtype=points.dtype) + 1) / slots - 1
    named = (points - middles).abs().argmin(1)  # (sets, slots)
    bucket = ((query + 1) / 2 * slots).long().clamp(0, slots - 1)
    found = named.expand(len(query), slots).gather(1, bucket)
    return torch.cat([torch.full_like(found, -1), found], 1)


def tree_search(
    tree: SearchTree, points: Float[Tensor, "#batch n 1"], query: Float[Tensor, "batch 1"], lookups: int
) -> Int[Tensor, "batch lookups"]:
    """Go down from the root, on the query's side of every key; the tree's keys are the points in sorted order.

    Both neighbours of the query lie on the path, so the answer is exact at its end. Raises ValueError as
    `binary_search`, and for a tree of another number of keys.

    ``tree``: of places in sorted order, such as `treap` makes it; ``points``, ``query``, ``lookups``: as everywhere.
    """
    values, order = _sorted(points, query, lookups)
    n, batch = values.shape[1], len(query)
    if len(tree.left) != n:
        raise ValueError(f"tree: has {len(tree.left)} keys; must have n = {n}, one for each point")
    values = values.expand(batch, n)
    rank = torch.full((batch, 1), tree.root, device=query.device)
    ranks = []
    for _ in range(lookups):
        ranks.append(rank)
        key = values.gather(1, rank)
        child = torch.where(query < key, tree.left[rank], tree.right[rank])
        rank = torch.where((child < 0) | (query == key), rank, child)
    return order.expand(batch, n).gather(1, torch.cat(ranks, 1))


# --- More dimensions


def kd_tree(
    points: Float[Tensor, "#batch n dim"], query: Float[Tensor, "batch dim"], lookups: int
) -> Int[Tensor, "batch lookups"]:
    """Search a balanced k-d tree (Bentley 1975): every node is the median of its points along one axis, axes in turn; a
    visit is a lookup.

    From a node the search goes down into the child on the query's side, and keeps the other for later. At the bottom it
    goes on with the nearest part of space that it has kept (Arya, Mount 1993): the distance of a part is that of its
    box, added up from the splitting planes passed on the way. It ends when no part is nearer than the best point found,
    and is exact then.

    Raises ValueError for another number of queries than sets, or of dimensions, or ``lookups`` < 1.
    """
    _check(points, query, lookups)
    (batch, dim), n = query.shape, points.shape[1]
    order = kd_order(points).expand(batch, n)
    rows = torch.arange(batch, device=query.device)

    # a subtree: low, high and depth; its root is in the middle
    part = torch.tensor([0, n, 0], device=query.device).repeat(batch, 1)
    gaps = torch.zeros_like(query)  # from the query to the box of the part, along every axis
    kept = part.new_zeros(batch, lookups, 3)  # one part for each lookup
    kept_gaps = gaps.new_zeros(batch, lookups, dim)
    kept_distance = gaps.new_full((batch, lookups), torch.inf)
    best = gaps.new_full((batch,), torch.inf)
    node, found = part[:, 0], []
    for i in range(lookups):
        low, high, depth = part.unbind(1)
        going = low < high
        node = torch.where(going, (low + high) // 2, node)
        found.append(order[rows, node])
        x = points.expand(batch, n, dim)[rows, found[-1]]
        best = torch.minimum(best, (query - x).norm(dim=1))

        axis = (depth % dim)[:, None]
        gap = (query - x).gather(1, axis)
        before, after = torch.stack([low, node, depth + 1], 1), torch.stack([node + 1, high, depth + 1], 1)
        near, far = torch.where(gap < 0, before, after), torch.where(gap < 0, after, before)
        kept[:, i], kept_gaps[:, i] = far, gaps.scatter(1, axis, gap)
        kept_distance[:, i] = torch.where(going & (far[:, 0] < far[:, 1]), kept_gaps[:, i].norm(dim=1), torch.inf)

        bottom = ~going | (near[:, 0] >= near[:, 1])  # go on with what was kept
        distance, at = kept_distance.min(1)
        part = torch.where(bottom[:, None], kept[rows, at], near)
        gaps = torch.where(bottom[:, None], kept_gaps[rows, at], gaps)
        kept_distance[rows, at] = torch.where(bottom, torch.inf, distance)
        done = torch.where(bottom, distance, gaps.norm(dim=1)) >= best
        part = torch.where(done[:, None], 0, part)
    return torch.stack(found, 1)


def kd_order(points: Float[Tensor, "sets n dim"]) -> Int[Tensor, "sets n"]:
    """Return the points in the order of a k-d tree (in-order): the root in the middle, the left subtree before it, the
    right one after. What `kd_tree` searches; entry k is the point in place k.
    """
    sets, n, dim = points.shape
    order = torch.arange(n, device=points.device).repeat(sets, 1)
    here = torch.arange(n, device=points.device)
    low, high = torch.zeros_like(here), torch.full_like(here, n)  # the subtree that each place belongs to
    for level in range(n.bit_length()):
        values = points[..., level % dim].gather(1, order)
        by_value = values.argsort(1)
        by_subtree = low[by_value].argsort(dim=1, stable=True)  # within every subtree, still by value
        order = order.gather(1, by_value.gather(1, by_subtree))
        middle = (low + high) // 2
        low, high = (
            torch.where(here < middle, low, torch.where(here == middle, here, middle + 1)),
            torch.where(here < middle, middle, torch.where(here == middle, here + 1, high)),
        )
    return order


def lsh(
    points: Float[Tensor, "#batch n dim"],
    query: Float[Tensor, "batch dim"],
    lookups: int,
    *,
    bits: int,
    generator: torch.Generator | int,
) -> Int[Tensor, "batch lookups"]:
    """Locality-sensitive hashing by random hyperplanes (Indyk, Motwani 1998; Charikar 2002), new ones for every query.

    Each of the ``points`` has a code of ``bits`` signs, sign(r_k . x) with r_k ~ N(0, I), by ``generator`` or its seed.
    Lookups go to the points whose codes are nearest to the ``query``'s: by the sum of |r_k . q| over the bits that
    differ, the order in which multi-probe LSH (Lv et al. 2007) opens buckets. The planes go through the origin: centre
    points that do not lie around it. With log2 n bits there are as many buckets as points, and codes say no more than
    the order in which points are stored can: the fair choice beside a structure without extra space.

    Raises ValueError for a number below 1, more ``lookups`` than points, and shapes as `kd_tree`.
    """
    planes = _planes(points, query, lookups, bits, as_generator(generator))
    margins = query[:, None] @ planes  # (batch, 1, bits)
    apart = (((points @ planes > 0) != (margins > 0)) * margins.abs()).sum(2)  # (batch, n)
    return apart.argsort(dim=1, stable=True)[:, :lookups]


def simhash(
    points: Float[Tensor, "#batch n dim"],
    query: Float[Tensor, "batch dim"],
    lookups: int,
    *,
    bits: int,
    generator: torch.Generator | int,
) -> Int[Tensor, "batch lookups"]:
    """Search with the published rival in many dimensions: a hash table of random hyperplanes whose buckets have a fixed
    size.

    A point's code is ``bits`` signs, sign(r_k . x) with r_k ~ N(0, I); the rest is `in_buckets`, with a bucket for each
    of the 2^bits codes (appendix B.8.1; bits are to be chosen best for the rival).

    ``points``, ``query``, ``lookups``: as everywhere here.
    ``generator``: for the hyperplanes and the order of arrival, or its seed.

    Raises ValueError as `lsh`.
    """
    generator = as_generator(generator)
    planes = _planes(points, query, lookups, bits, generator)
    digits = 2 ** torch.arange(bits, device=query.device)
    codes = ((points @ planes > 0) * digits).sum(-1)
    asked = ((query[:, None] @ planes > 0) * digits).sum(-1)[:, 0]
    return in_buckets(codes, asked, lookups, buckets=2**bits, generator=generator)


def in_buckets(
    codes: Int[Tensor, "batch n"],
    asked: Int[Tensor, "batch"],
    lookups: int,
    *,
    buckets: int,
    generator: torch.Generator | int,
) -> Int[Tensor, "batch lookups"]:
    """Search a hash table whose buckets have a fixed size: what a structure can do that may only permute its points.

    Each bucket has max(1, n // buckets) places. Points come in random order into the buckets of their codes, and where
    one is full, into a vacant place anywhere. A query looks at the points of its own code's bucket, then at others at
    random (Salemohamed et al. 2024, arXiv:2411.03253, appendix B.8.1).

    ``codes``, ``asked``: the bucket of every point and of the query, 0 to ``buckets`` - 1.
    ``lookups``: how many points are looked at.
    ``generator``: for the order of arrival, or its seed.

    Raises ValueError for a code that is no bucket, and more ``lookups`` than points.
    """
    (batch, n), generator = codes.shape, as_generator(generator)
    check_range(codes=(codes, buckets), asked=(asked, buckets))
    if lookups > n:
        raise ValueError(f"lookups = {lookups!r}: must be at most n = {n}")

    def chance(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device=generator.device).to(codes.device)

    arrival, rows = chance(batch, n).argsort(1), torch.arange(batch, device=codes.device)
    room = torch.full((batch, buckets), max(1, n // buckets), device=codes.device)
    bucket = torch.full((batch, n), -1, device=codes.device)  # -1: for a point that finds no place at all
    for point in arrival.unbind(1):
        own = codes[rows, point]
        vacant = ((room > 0) * (1 + chance(*room.shape))).argmax(1)
        chosen = torch.where(room[rows, own] > 0, own, vacant)
        bucket[rows, point] = torch.where(room[rows, chosen] > 0, chosen, -1)
        room[rows, chosen] -= 1
    turn = torch.where(bucket == asked[:, None], 0.0, 1.0) + chance(batch, n)
    return turn.argsort(1)[:, :lookups]


# --- What they share


def _check(points: Tensor, query: Tensor, lookups: int) -> None:
    at_least(lookups=(lookups, 1), n=(points.shape[1], 1))
    if points.shape[0] not in (1, len(query)) or points.shape[2] != query.shape[1]:
        raise ValueError(
            f"points of shape {tuple(points.shape)}: must be (1 or {len(query)}, n, {query.shape[1]}), as "
            "the queries are"
        )


def _planes(points: Tensor, query: Tensor, lookups: int, bits: int, generator: torch.Generator) -> Tensor:
    """Random hyperplanes of its own for every query, (batch, dim, bits)."""
    at_least(bits=(bits, 1))
    _check(points, query, lookups)
    if lookups > points.shape[1]:
        raise ValueError(f"lookups = {lookups!r}: must be at most n = {points.shape[1]}")
    return torch.randn(*query.shape, bits, generator=generator, device=generator.device, dtype=query.dtype).to(
        query.device
    )


def _sorted(points: Tensor, query: Tensor, lookups: int) -> tuple[Tensor, Tensor]:
    """The points in order, and where they were."""
    _check(points, query, lookups)
    if query.shape[1] != 1:
        raise ValueError(f"dim = {query.shape[1]}: must be 1, as this search needs points on a line")
    return points[..., 0].sort(1)


def _narrow(points: Tensor, query: Tensor, lookups: int, place: Callable[[int, Remaining], Tensor]) -> Tensor:
    """Search sorted points: ``place`` chooses the i-th lookup among what remains; its comparison leaves less."""
    values, order = _sorted(points, query, lookups)
    batch, n = len(query), values.shape[1]
    values, q = values.expand(batch, n), query[:, 0]
    low, high = order.new_zeros(batch), order.new_full((batch,), n)
    above, below = torch.full_like(q, -1), torch.ones_like(q)
    rank, ranks = low, []
    for i in range(lookups):
        chosen = place(i, Remaining(low, high, above, below)).clamp(low, high - 1)
        rank = torch.where(low < high, chosen, rank)
        ranks.append(rank)
        x = values.gather(1, rank[:, None])[:, 0]
        low, above = torch.where(x <= q, rank + 1, low), torch.where(x <= q, x, above)
        # at the query itself, nothing remains
        high, below = torch.where(x >= q, rank, high), torch.where(x >= q, x, below)
    return order.expand(batch, n).gather(1, torch.stack(ranks, 1))
