"""Search as a task: a sorted list of numbers and their places, then queries: how many of them lie below?"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.task import Problems, Task, any_of
from companion.topics.structures.data import uniform

SIZES = {"smoke": (2,), "course": (4, 8, 16), "paper": (32, 64, 128)}
QUERIES = 8


def search_task(scale: str) -> Task:
    """Say how many numbers of a sorted list lie below each of 8 queries."""
    sizes = SIZES[scale]

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        points, query, _ = uniform(batch, size or any_of(sizes, generator), queries=QUERIES, generator=generator)
        numbers = torch.cat([points.sort(1).values, query.view(batch, QUERIES, 1)], 1)
        place = torch.arange(numbers.shape[1], device=numbers.device)[:, None].expand_as(numbers)
        asked = place >= points.shape[1]
        inputs = torch.cat([numbers, (place / sizes[-1]).masked_fill(asked, 0), asked.float()], -1)
        return Problems(inputs, (points.mT < numbers).sum(-1), asked[..., 0])

    return Task("numbers", sizes, draw, _below, _mode, outputs=sizes[-1] + 1)


def _below(inputs: Float[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    numbers = inputs[..., 0].contiguous()
    return torch.searchsorted(numbers[:, :-QUERIES].contiguous(), numbers)


def _mode(inputs: Float[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    """How many lie below is binomial."""
    n = inputs.shape[1] - QUERIES
    return ((n + 1) * (1 + inputs[..., 0]) / 2).long()
