"""Sketches: how often each item came in a stream, in less memory than a counter for each item.

Both take ``stream`` (batch, length), items 0 .. items - 1, and estimate all counts at its end: (batch, items). Every
stream has hash functions of its own, drawn from the ``generator``; they are free, only counters are memory.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range


def count_min(
    stream: Int[Tensor, "batch length"],
    items: int,
    memory: int,
    *,
    rows: int,
    conservative: bool = False,
    generator: torch.Generator | int,
) -> Int[Tensor, "batch items"]:
    """Run the count-min sketch (Cormode, Muthukrishnan 2005): an estimate, never too small, of how often each item
    came.

    ``memory`` counters stand in ``rows`` rows. Every item has one counter in each, at random, and adds 1 to all of
    them; its estimate is their minimum. With ``conservative`` (Estan, Varghese 2002) only the counters that equal this
    minimum rise: never worse.

    ``stream``: the items as they come.
    ``items``: how many there are.
    ``memory``, ``rows``: counters in all, and rows that they stand in.
    ``conservative``: whether only an item's smallest counters rise.
    ``generator``: a seed, or a generator, for the places of the items.

    Raises ValueError for a number below 1, ``memory`` that is no multiple of ``rows``, or an item that is not 0 to
    items - 1.
    """
    places, _ = _hashes(stream, items, memory, rows, generator)
    counters = places.new_zeros(len(stream), memory)
    if conservative:
        for item in stream.unbind(1):
            counters_of_item = places.gather(2, item[:, None, None].expand(-1, rows, 1))[..., 0]  # (batch, rows)
            counts = counters.gather(1, counters_of_item)
            counters.scatter_(1, counters_of_item, counts.maximum(counts.amin(1, keepdim=True) + 1))
    else:
        counters.scatter_add_(1, places.flatten(1), _counts(stream, items).repeat(1, rows))
    return counters.gather(1, places.flatten(1)).unflatten(1, (rows, items)).amin(1)


def count_sketch(
    stream: Int[Tensor, "batch length"], items: int, memory: int, *, rows: int, generator: torch.Generator | int
) -> Float[Tensor, "batch items"]:
    """Run the count sketch (Charikar, Chen, Farach-Colton 2002): an unbiased estimate of how often each item came.

    As `count_min`, but an item adds its own random sign in each row, 1 or -1, so that strangers cancel on average; its
    estimate is the median over rows of sign times counter (of an even number of rows, the mean of the two in the
    middle).

    ``stream``: the items as they come.
    ``items``: how many there are.
    ``memory``, ``rows``: counters in all, and rows that they stand in.
    ``generator``: a seed, or a generator, for the items' places and signs.

    Raises ValueError as `count_min`.
    """
    places, signs = _hashes(stream, items, memory, rows, generator)
    counters = places.new_zeros(len(stream), memory)
    counters.scatter_add_(1, places.flatten(1), (signs * _counts(stream, items)[:, None]).flatten(1))
    estimates = (signs * counters.gather(1, places.flatten(1)).unflatten(1, (rows, items))).sort(1).values
    return (estimates[:, (rows - 1) // 2] + estimates[:, rows // 2]) / 2


def _hashes(
    stream: Tensor, items: int, memory: int, rows: int, generator: torch.Generator | int
) -> tuple[Tensor, Tensor]:
    """For every row and item (batch, rows, items): the place of its counter, and a sign."""
    at_least(items=(items, 1), memory=(memory, 1), rows=(rows, 1))
    if memory % rows:
        raise ValueError(f"memory = {memory!r}: must be a multiple of rows = {rows!r}")
    check_range(stream=(stream, items))
    generator, shape, width = as_generator(generator), (len(stream), rows, items), memory // rows
    places = torch.randint(width, shape, generator=generator, device=generator.device)
    signs = 2 * torch.randint(2, shape, generator=generator, device=generator.device) - 1
    places += width * torch.arange(rows, device=generator.device)[:, None]
    return places.to(stream.device), signs.to(stream.device)


def _counts(stream: Tensor, items: int) -> Tensor:
    return stream.new_zeros(len(stream), items).scatter_add_(1, stream, torch.ones_like(stream))
