"""The exercises of lesson 08, learned data structures: what the lesson imports as ``exercises``."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- hash_codes


def _draw_points(generator: Generator) -> dict:
    batch, n, dim, bits = (
        draw_size(generator, 2, 3),
        draw_size(generator, 12, 16),
        draw_size(generator, 5, 6),
        draw_size(generator, 4, 5),
    )
    points = draw_normal(generator, batch, n, dim)
    points[:, draw_size(generator, 0, n - 1)] = 0  # the origin lies on every plane
    return {"points": points, "planes": draw_normal(generator, bits, dim)}


def _hash_codes(points: Tensor, planes: Tensor) -> Tensor:
    bits = torch.arange(len(planes), device=points.device)
    return ((points @ planes.mT >= 0) * 2**bits).sum(-1)


hash_codes = Exercise(
    name="hash_codes",
    answer=_hash_codes,
    draw=_draw_points,
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


def _conservative_update(memory: Tensor, cells: Tensor) -> Tensor:
    own = memory.gather(2, cells[..., None])
    least = own.amin(1, keepdim=True)
    return memory.scatter(2, cells[..., None], own.maximum(least + 1))


conservative_update = Exercise(
    name="conservative_update",
    answer=_conservative_update,
    draw=_draw_memory,
)


# -- place_loss


def _draw_sets(generator: Generator) -> dict:
    sets, n, queries = draw_size(generator, 3, 4), draw_size(generator, 5, 7), draw_size(generator, 8, 9)
    return {
        "order": (2 * draw_normal(generator, sets, n, n)).softmax(-1),  # soft, as its gradient is
        "logits": 2 * draw_normal(generator, sets, queries, n),
        "nearest": torch.randint(n, (sets, queries), generator=generator),
    }


def _place_loss(order: Tensor, logits: Tensor, nearest: Tensor) -> Tensor:
    target = order.mT.gather(1, nearest[:, :, None].expand(-1, -1, order.shape[1]))
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


place_loss = Exercise(
    name="place_loss",
    answer=_place_loss,
    draw=_draw_sets,
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
)


# -- soft_sort


def _draw_scores(generator: Generator) -> dict:
    batch, n = draw_size(generator, 3, 4), draw_size(generator, 5, 7)
    temperature = float(0.3 + 0.4 * torch.rand((), generator=generator))
    return {"scores": 2 * draw_normal(generator, batch, n), "temperature": temperature}


def _soft_sort(scores: Tensor, temperature: float) -> Tensor:
    ordered = scores.sort(-1).values
    return (-(ordered[:, :, None] - scores[:, None, :]).abs() / temperature).softmax(-1)


soft_sort = Exercise(
    name="soft_sort",
    answer=_soft_sort,
    draw=_draw_scores,
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


def _gumbel_lookup(logits: Tensor, uniform: Tensor, values: Tensor, temperature: float) -> Tensor:
    noise = -(-uniform.log()).log()
    weights = ((logits + noise) / temperature).softmax(-1)
    return (weights[:, :, None] * values).sum(1)


gumbel_lookup = Exercise(
    name="gumbel_lookup",
    answer=_gumbel_lookup,
    draw=_draw_lookup,
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


def _best_so_far(found: Tensor, distances: Tensor) -> Tensor:
    nearest = distances == distances.amin(1, keepdim=True)
    hits = nearest.gather(1, found).to(distances.dtype)
    return hits.cummax(1).values.mean(0)


best_so_far = Exercise(
    name="best_so_far",
    answer=_best_so_far,
    draw=_draw_found,
)
