"""The exercises of lesson 08 on hashing: buckets of near points, and a sketch that counts.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["conservative_update", "hash_codes"]


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
