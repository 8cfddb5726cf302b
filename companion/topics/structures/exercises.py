"""The exercises of lesson 08, learned data structures: what the lesson imports as ``exercises``."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- hash_codes


def _draw_points(generator: Generator) -> dict:
    batch, n, dim, bits = (
        draw_size(generator, 2, 3),
        draw_size(generator, 12, 16),
        draw_size(generator, 5, 6),
        draw_size(generator, 3, 4),
    )
    points = draw_normal(generator, batch, n, dim)
    points[:, draw_size(generator, 0, n - 1)] = 0  # the origin lies on every plane
    return {"points": points, "planes": draw_normal(generator, bits, dim)}


def _code(bits: Tensor) -> Tensor:
    """Numbers from their bits, the lowest first, by Horner's scheme."""
    code = torch.zeros_like(bits[..., 0], dtype=torch.int64)
    for bit in bits.flip(-1).unbind(-1):
        code = 2 * code + bit
    return code


def _sides(points: Tensor, planes: Tensor) -> Tensor:
    return points @ planes.mT


def _hash_codes(points: Tensor, planes: Tensor) -> Tensor:
    bits = torch.arange(len(planes), device=points.device)
    return ((points @ planes.mT >= 0) * 2**bits).sum(-1)


hash_codes = Exercise(
    name="hash_codes",
    answer=_hash_codes,
    draw=_draw_points,
    mistakes={
        "the bits are read in reverse; the first plane gives the lowest bit, worth 1": (
            lambda points, planes: _code(_sides(points, planes.flip(0)) >= 0)
        ),
        "the point on a plane falls to the wrong side; a product of 0 gives a 1: >= 0, not > 0": (
            lambda points, planes: _code(_sides(points, planes) > 0)
        ),
        "the sides are exchanged: a product of at least 0 gives a 1, a negative one a 0": (
            lambda points, planes: _code(_sides(points, planes) < 0)
        ),
        "the signs are -1 and 1; a bit is 0 or 1, or the numbers do not run from 0 to 2^bits - 1": (
            lambda points, planes: 2 * _code(_sides(points, planes) >= 0) - (2 ** len(planes) - 1)
        ),
        "the ones are counted; bit j is worth 2^j, or different sides end up in the same bucket": (
            lambda points, planes: (_sides(points, planes) >= 0).sum(-1)
        ),
        "the planes are not used: these are the signs of the coordinates": lambda points, planes: _code(points >= 0),
        "the threshold is missing: only the side of the plane counts, not how far from it a point is": (
            lambda points, planes: (
                (_sides(points, planes) * 2 ** torch.arange(len(planes), device=planes.device)).sum(-1).long()
            )
        ),
    },
)


# -- conservative_update


def _draw_memory(generator: Generator) -> dict:
    batch, rows, size = draw_size(generator, 12, 16), draw_size(generator, 3, 4), draw_size(generator, 5, 7)
    memory = torch.randint(5, (batch, rows, size), generator=generator).double()
    cells = torch.randint(size, (batch, rows), generator=generator)
    counts = 1 + torch.randint(3, (batch, rows), generator=generator).double()
    # all equal, some equal, one smallest
    counts[0], counts[1, 1:], counts[2] = 2, 1, counts[2].new_tensor([1, 2, 2, 4])[:rows]
    counts[1, 0] = 3
    return {"memory": memory.scatter(2, cells[..., None], counts[..., None]), "cells": cells}


def _own(memory: Tensor, cells: Tensor) -> Tensor:
    """True at the item's cells."""
    return F.one_hot(cells, memory.shape[2]).bool()


def _least(memory: Tensor, cells: Tensor) -> Tensor:
    """The item's smallest count, (batch, 1, 1)."""
    return memory.where(_own(memory, cells), torch.inf).amin((1, 2), keepdim=True)


def _raised(memory: Tensor, cells: Tensor, least: Tensor) -> Tensor:
    return memory.where(~_own(memory, cells), memory.maximum(least + 1))


def _first_alone(memory: Tensor, cells: Tensor) -> Tensor:
    row = memory.gather(2, cells[..., None]).argmin(1)  # (batch, 1)
    return memory + _own(memory, cells) * F.one_hot(row[:, 0], cells.shape[1])[..., None]


def _row_by_row(memory: Tensor, cells: Tensor) -> Tensor:
    for row in range(cells.shape[1]):
        after = _raised(memory, cells, _least(memory, cells))
        memory = torch.cat([memory[:, :row], after[:, row : row + 1], memory[:, row + 1 :]], 1)
    return memory


def _conservative_update(memory: Tensor, cells: Tensor) -> Tensor:
    own = memory.gather(2, cells[..., None])
    least = own.amin(1, keepdim=True)
    return memory.scatter(2, cells[..., None], own.maximum(least + 1))


conservative_update = Exercise(
    name="conservative_update",
    answer=_conservative_update,
    draw=_draw_memory,
    mistakes={
        "all of the item's cells grow, as in a plain count-min sketch; only those that hold its smallest "
        "count should": (lambda memory, cells: memory + _own(memory, cells)),
        "only the first of several smallest counts grows; all that equal the smallest must, or the "
        "estimate stays": _first_alone,
        "every cell of the item is set to the smallest count plus 1; a larger count stays as it is": (
            lambda memory, cells: memory.where(~_own(memory, cells), _least(memory, cells) + 1)
        ),
        "the smallest count of the whole memory is taken; take that of the item's own cells": (
            lambda memory, cells: _raised(memory, cells, memory.amin((1, 2), keepdim=True))
        ),
        "each row has its own smallest count here, over all its cells; it is the smallest of the item's "
        "cells, one of each row": (lambda memory, cells: _raised(memory, cells, memory.amin(2, keepdim=True))),
        "cells of other items grow where they hold the same count; only the item's own do": (
            lambda memory, cells: memory + (memory == _least(memory, cells))
        ),
        "the smallest count is taken again after each row has grown; take it once, before any "
        "cell changes": _row_by_row,
    },
)


# -- place_loss


def _draw_sets(generator: Generator) -> dict:
    sets, n, queries = draw_size(generator, 3, 4), draw_size(generator, 5, 7), draw_size(generator, 8, 9)
    return {
        "order": (2 * draw_normal(generator, sets, n, n)).softmax(-1),  # soft, as its gradient is
        "logits": 2 * draw_normal(generator, sets, queries, n),
        "nearest": torch.randint(n, (sets, queries), generator=generator),
    }


def _where(order: Tensor, nearest: Tensor) -> Tensor:
    """(sets, queries, places): how much of the query's nearest point lies in each place."""
    return torch.einsum("spi,sqi->sqp", order, F.one_hot(nearest, order.shape[2]).to(order.dtype))


def _cross_entropy(target: Tensor, logits: Tensor) -> Tensor:
    """(sets, queries): of each query."""
    return -(target * (logits - logits.logsumexp(-1, keepdim=True))).sum(-1)


def _place_loss(order: Tensor, logits: Tensor, nearest: Tensor) -> Tensor:
    target = order.mT.gather(1, nearest[:, :, None].expand(-1, -1, order.shape[1]))
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


place_loss = Exercise(
    name="place_loss",
    answer=_place_loss,
    draw=_draw_sets,
    mistakes={
        "the order is read the wrong way round: row k says who lies in place k, column i where point i lies": (
            lambda order, logits, nearest: _cross_entropy(_where(order.mT, nearest), logits).mean()
        ),
        "the nearest point's number is taken for its place; the order says in which place it lies": (
            lambda order, logits, nearest: _cross_entropy(
                F.one_hot(nearest, order.shape[1]).to(order.dtype), logits
            ).mean()
        ),
        "the place is read off with argmax, which has no gradient for the scores; weigh all places by the order": (
            lambda order, logits, nearest: _cross_entropy(
                F.one_hot(_where(order, nearest).argmax(-1), order.shape[1]).to(order.dtype), logits
            ).mean()
        ),
        "every place is given the one point that argmax names, and that has no gradient for the scores; weigh all "
        "places by the order": (
            lambda order, logits, nearest: F.cross_entropy(
                logits.flatten(0, 1), order.argmax(-1).argsort(-1).gather(1, nearest).flatten()
            )
        ),
        "the minus is missing: a loss falls as the right place gets likelier": (
            lambda order, logits, nearest: -_cross_entropy(_where(order, nearest), logits).mean()
        ),
        "the logarithm is missing: a cross-entropy weighs log-probabilities": (
            lambda order, logits, nearest: -(_where(order, nearest) * logits.softmax(-1)).sum(-1).mean()
        ),
        "the logits themselves are weighed; take their log_softmax": (
            lambda order, logits, nearest: -(_where(order, nearest) * logits).sum(-1).mean()
        ),
        "the softmax runs over the queries; the places of one query share its probability": (
            lambda order, logits, nearest: -(_where(order, nearest) * logits.log_softmax(1)).sum(-1).mean()
        ),
        "the sum over all queries is returned; their mean is asked for": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits).sum()
        ),
        "the mean runs over the places too; sum over them": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits).mean() / order.shape[1]
        ),
        "only the first query of each set counts; each of them does": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits)[:, 0].mean()
        ),
        "the sum over a set's queries is returned, and its mean over the sets; every query counts once": (
            lambda order, logits, nearest: _cross_entropy(_where(order, nearest), logits).sum(1).mean()
        ),
    },
)


# -- binary_search


def _draw_search(generator: Generator) -> dict:
    """A query between every two neighbours, below all, above all, and at every stored number: each course a search can
    take.
    """
    n = draw_size(generator, 9, 14)  # no 2^k - 1, where what is left always has a middle
    stored = draw_normal(generator, 2 * n + 1, n).sort(1).values
    ends = torch.cat([stored[:, :1] - 1, stored, stored[:, -1:] + 1], 1)
    candidates = torch.cat([stored, (ends[:, 1:] + ends[:, :-1]) / 2], 1)
    query = candidates.gather(1, torch.randperm(2 * n + 1, generator=generator)[:, None])[:, 0]
    return {"stored": stored, "query": query, "lookups": draw_size(generator, 5, 7)}


def _search(
    stored: Tensor, query: Tensor, lookups: int, *, up=0, excess=0, left=0, right=0, swap=False, endless=False
) -> Tensor:
    """The comparisons follow from the query's rank: a place holds no more than the query if it lies below the number of
    such places.
    """
    rank, n = (stored <= query[:, None]).sum(1), stored.shape[1]
    lo, hi = torch.zeros_like(rank), torch.full_like(rank, n - 1 + excess)
    place, places = lo, []
    for _ in range(lookups):
        going = (lo <= hi) | endless
        place = torch.where(going, (lo + hi + up) // 2, place)
        places.append(place)
        above = (place < rank) ^ swap
        lo = torch.where(going & above, place + 1 - right, lo)
        hi = torch.where(going & ~above, place - 1 + left, hi)
    return torch.stack(places, 1)


def _stopping_search(stored: Tensor, query: Tensor, lookups: int) -> Tensor:
    places = _search(stored, query, lookups)
    hit = (stored.gather(1, places) == query[:, None]).int()
    return torch.where(hit.cummax(1).values > 0, places.gather(1, hit.argmax(1, keepdim=True)), places)


def _binary_search(stored: Tensor, query: Tensor, lookups: int) -> Tensor:
    low = torch.zeros_like(query, dtype=torch.long)
    high = torch.full_like(low, stored.shape[1] - 1)
    rows, place, places = torch.arange(len(query), device=query.device), low, []
    for _ in range(lookups):
        place = torch.where(low <= high, (low + high) // 2, place)
        left = query < stored[rows, place]
        low, high = torch.where(left, low, place + 1), torch.where(left, place - 1, high)
        places.append(place)
    return torch.stack(places, 1)


binary_search = Exercise(
    name="binary_search",
    answer=_binary_search,
    draw=_draw_search,
    mistakes={
        "the right half begins with the midpoint again; it has been looked at, so that lo = mid + 1": (
            lambda stored, query, lookups: _search(stored, query, lookups, right=1)
        ),
        "the left half ends with the midpoint again; it has been looked at, so that hi = mid - 1": (
            lambda stored, query, lookups: _search(stored, query, lookups, left=1)
        ),
        "the halves are exchanged: a query below the value at the midpoint lies to the left of it": (
            lambda stored, query, lookups: _search(stored, query, lookups, swap=True)
        ),
        "of two middle places, the right one is looked at; hi starts at n - 1, the last possible place, "
        "and // rounds down": (lambda stored, query, lookups: _search(stored, query, lookups, up=1)),
        "hi starts at n, where nothing is stored; the last place is n - 1": (
            lambda stored, query, lookups: _search(stored, query, lookups, excess=1).clamp(max=stored.shape[1] - 1)
        ),
        "where the query equals the value, the search goes left; only a query below the value does": (
            lambda stored, query, lookups: _search(stored, query.nextafter(query - 1), lookups)
        ),
        "the search stops at a value equal to the query; it goes on in the right half until "
        "nothing is left": _stopping_search,
        "place -1 is looked at: when nothing is left (lo > hi), repeat the last place": (
            lambda stored, query, lookups: _search(stored, query, lookups, endless=True)
        ),
        "the search goes on when nothing is left (lo > hi); repeat the last place instead": (
            lambda stored, query, lookups: _search(stored, query, lookups, endless=True).clamp(min=0)
        ),
    },
)


# -- soft_sort


def _draw_scores(generator: Generator) -> dict:
    batch, n = draw_size(generator, 3, 4), draw_size(generator, 5, 7)
    temperature = float(0.3 + 0.4 * torch.rand((), generator=generator))
    return {"scores": 2 * draw_normal(generator, batch, n), "temperature": temperature}


def _ordered(scores: Tensor) -> Tensor:
    return scores.sort(1).values


def _gaps(rows: Tensor, columns: Tensor) -> Tensor:
    return rows[:, :, None] - columns[:, None, :]


def _closeness(scores: Tensor, temperature: float) -> Tensor:
    return (-torch.cdist(_ordered(scores)[..., None], scores[..., None], p=1) / temperature).exp()


def _rows(closeness: Tensor) -> Tensor:
    return closeness / closeness.sum(-1, keepdim=True)


def _soft_sort(scores: Tensor, temperature: float) -> Tensor:
    ordered = scores.sort(-1).values
    return (-(ordered[:, :, None] - scores[:, None, :]).abs() / temperature).softmax(-1)


soft_sort = Exercise(
    name="soft_sort",
    answer=_soft_sort,
    draw=_draw_scores,
    mistakes={
        "the softmax runs down the columns; each row k is a distribution over the scores i, the last dimension": (
            lambda scores, temperature: _rows(_closeness(scores, temperature).mT).mT
        ),
        "transposed: row k belongs to the k-th smallest score, column i to the score s_i as it was given": (
            lambda scores, temperature: _rows(_closeness(scores, temperature)).mT
        ),
        "sorted from the largest to the smallest; row 0 belongs to the smallest score": (
            lambda scores, temperature: _rows(_closeness(scores, temperature)).flip(1)
        ),
        "the scores are not sorted: row k compares with the k-th smallest score, not with the k-th one": (
            lambda scores, temperature: (-_gaps(scores, scores).abs() / temperature).softmax(-1)
        ),
        "sorted across the batch; each list is sorted by itself, along its last dimension": (
            lambda scores, temperature: (-_gaps(scores.sort(0).values, scores).abs() / temperature).softmax(-1)
        ),
        "the indices of the sort are compared with the scores; sort returns (values, indices), and the "
        "values are asked for": (
            lambda scores, temperature: (-_gaps(scores.argsort(1), scores).abs() / temperature).softmax(-1)
        ),
        "the absolute value is missing: a score far above the k-th smallest then beats the one that equals it": (
            lambda scores, temperature: (-_gaps(_ordered(scores), scores) / temperature).softmax(-1)
        ),
        "the differences are squared; take their absolute value": (
            lambda scores, temperature: (-_gaps(_ordered(scores), scores).square() / temperature).softmax(-1)
        ),
        "the minus is missing: the farthest score gets the largest weight": (
            lambda scores, temperature: (_gaps(_ordered(scores), scores).abs() / temperature).softmax(-1)
        ),
        "multiplied by the temperature; divide by it, so that a low one makes the rows sharp": (
            lambda scores, temperature: _rows(_closeness(scores, 1 / temperature))
        ),
        "the temperature is not used": lambda scores, temperature: _rows(_closeness(scores, 1.0)),
        "the rows do not sum to 1: this is the exponential without the softmax's division": _closeness,
        "this is the hard permutation; the soft one is asked for, whose entries lie between 0 and 1": (
            lambda scores, temperature: F.one_hot(scores.argsort(1), scores.shape[1]).to(scores.dtype)
        ),
    },
)


# -- gumbel_lookup


def _draw_lookup(generator: Generator) -> dict:
    batch, places, dim = draw_size(generator, 3, 4), draw_size(generator, 5, 8), draw_size(generator, 2, 3)
    return {
        "logits": 2 * draw_normal(generator, batch, places),
        "uniform": torch.rand(batch, places, generator=generator, dtype=torch.float64).clamp(1e-9, 1 - 1e-9),
        "values": draw_normal(generator, batch, places, dim),
        "temperature": float(1.5 + torch.rand((), generator=generator)),
    }


def _gumbel(uniform: Tensor) -> Tensor:
    return -(-uniform.log()).log()


def _read(weights: Tensor, values: Tensor) -> Tensor:
    return torch.einsum("bp,bpd->bd", weights, values)


def _gumbel_lookup(logits: Tensor, uniform: Tensor, values: Tensor, temperature: float) -> Tensor:
    noise = -(-uniform.log()).log()
    weights = ((logits + noise) / temperature).softmax(-1)
    return (weights[:, :, None] * values).sum(1)


gumbel_lookup = Exercise(
    name="gumbel_lookup",
    answer=_gumbel_lookup,
    draw=_draw_lookup,
    mistakes={
        "the noise is missing: without it, a mean of all values pays, and no lookup is ever learned": (
            lambda logits, uniform, values, temperature: _read((logits / temperature).softmax(1), values)
        ),
        "the noise has the wrong sign: it is -log(-log u), added to the logits": (
            lambda logits, uniform, values, temperature: _read(
                ((logits - _gumbel(uniform)) / temperature).softmax(1), values
            )
        ),
        "the noise has one logarithm only, which is exponential noise; Gumbel noise is -log(-log u)": (
            lambda logits, uniform, values, temperature: _read(
                ((logits - uniform.log()) / temperature).softmax(1), values
            )
        ),
        "the uniform numbers themselves are added; Gumbel noise is -log(-log u)": (
            lambda logits, uniform, values, temperature: _read(((logits + uniform) / temperature).softmax(1), values)
        ),
        "the noise is added after the division; the temperature divides the sum of logits and noise": (
            lambda logits, uniform, values, temperature: _read(
                (logits / temperature + _gumbel(uniform)).softmax(1), values
            )
        ),
        "the noise is added to the probabilities; add it to the logits, and take one softmax at the end": (
            lambda logits, uniform, values, temperature: _read(
                ((logits.softmax(1) + _gumbel(uniform)) / temperature).softmax(1), values
            )
        ),
        "the value at the largest noisy logit is read, which has no gradient; read the mean under the "
        "softmax's weights": (
            lambda logits, uniform, values, temperature: _read(
                F.one_hot((logits + _gumbel(uniform)).argmax(1), values.shape[1]).to(values.dtype), values
            )
        ),
        "the temperature is not used": (
            lambda logits, uniform, values, temperature: _read((logits + _gumbel(uniform)).softmax(1), values)
        ),
        "multiplied by the temperature; divide by it": (
            lambda logits, uniform, values, temperature: _read(
                ((logits + _gumbel(uniform)) * temperature).softmax(1), values
            )
        ),
        "the softmax runs over the batch; the weights of one query's places sum to 1": (
            lambda logits, uniform, values, temperature: _read(
                ((logits + _gumbel(uniform)) / temperature).softmax(0), values
            )
        ),
    },
)


# -- best_so_far


def _draw_found(generator: Generator) -> dict:
    batch, n, lookups = draw_size(generator, 40, 50), draw_size(generator, 6, 8), draw_size(generator, 4, 5)
    distances = torch.randint(5, (batch, n), generator=generator) + torch.randint(4, (batch, 1), generator=generator)
    two = torch.rand(batch, n, generator=generator).argsort(1)[::2, :2]
    # ties, in every other row
    distances[::2] = distances[::2].scatter(1, two, distances[::2].amin(1, keepdim=True).expand(-1, 2))
    found = torch.randint(n, (batch, lookups), generator=generator)
    return {"found": found, "distances": distances.float()}  # float32, what .float() makes of True and False


def _nearest(distances: Tensor) -> Tensor:
    return distances == distances.amin(1, keepdim=True)


def _hits(found: Tensor, nearest: Tensor) -> Tensor:
    return nearest.gather(1, found).float()


def _share(hits: Tensor) -> Tensor:
    """Of each column, how many have seen a 1 so far."""
    return hits.cummax(1).values.mean(0)


def _nearest_found(found: Tensor, distances: Tensor) -> Tensor:
    """The distance to the best point so far."""
    return distances.gather(1, found).cummin(1).values


def _best_so_far(found: Tensor, distances: Tensor) -> Tensor:
    nearest = distances == distances.amin(1, keepdim=True)
    hits = nearest.gather(1, found).to(distances.dtype)
    return hits.cummax(1).values.mean(0)


best_so_far = Exercise(
    name="best_so_far",
    answer=_best_so_far,
    draw=_draw_found,
    mistakes={
        "each lookup counts alone; what an earlier one has found stays found": (
            lambda found, distances: _hits(found, _nearest(distances)).mean(0)
        ),
        "every entry is the share after the last lookup; entry i knows the lookups up to i": (
            lambda found, distances: _hits(found, _nearest(distances)).amax(1).mean().expand(found.shape[1])
        ),
        "one lookup late: entry i counts what lookup i itself finds": (
            lambda found, distances: F.pad(_share(_hits(found, _nearest(distances))), (1, -1))
        ),
        "argmin names one nearest point; where several are equally near, any of them will do: compare "
        "distances, not indices": (
            lambda found, distances: _share((found == distances.argmin(1, keepdim=True)).float())
        ),
        "where several points are equally near, none of them counts; any of them will do": (
            lambda found, distances: _share(
                _hits(found, _nearest(distances) & (_nearest(distances).sum(1, keepdim=True) == 1))
            )
        ),
        "hits are added up, so that a nearest point found twice counts twice; ask whether there was any": (
            lambda found, distances: _hits(found, _nearest(distances)).cumsum(1).mean(0)
        ),
        "the running maximum goes over the queries; it goes along a query's lookups, dimension 1": (
            lambda found, distances: _hits(found, _nearest(distances)).cummax(0).values.mean(0)
        ),
        "this is the mean distance of the best so far; the share of queries that have found a nearest "
        "point is asked for": (lambda found, distances: _nearest_found(found, distances).mean(0)),
        "the nearest of the points looked at is taken for the nearest of all": (
            lambda found, distances: _share(_hits(found, distances == distances.gather(1, found).amin(1, keepdim=True)))
        ),
    },
)
