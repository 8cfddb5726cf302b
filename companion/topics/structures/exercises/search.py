"""The exercises of lesson 08 on search: by comparisons, by soft sorting and soft lookups, and what a lookup finds.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["best_so_far", "binary_search", "gumbel_lookup", "soft_sort"]


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
