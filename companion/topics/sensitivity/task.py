"""Sparse parities as a task: bits one by one, then the parity of one, two or three of them, always the same ones."""

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task
from companion.topics.sensitivity.data import strings

LENGTHS = {"smoke": 6, "course": 12, "paper": 40}
BITS = (1, 2, 3)


def sparse_task(scale: str) -> Task:
    """Say the parities of some bits, always the same ones, whose places are for the weights to find."""
    n, most = LENGTHS[scale], len(BITS)
    places = torch.randperm(n, generator=torch.Generator().manual_seed(n))[:most]

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        bits = strings(batch, n, generator=generator)
        here = torch.arange(1, n + most + 1, device=bits.device).expand(batch, -1)  # a place, or which parity
        inputs = torch.stack([here, F.pad(n + most + 1 + bits, (0, most))], -1)
        targets = F.pad(bits[:, places].cumsum(1) % 2, (n, 0))
        return Problems(inputs, targets, here == n + size if size else here > n)

    def best(inputs: Int[Tensor, "batch length 2"]) -> Int[Tensor, "batch length"]:
        return F.pad((inputs[:, places, 1] - n - most - 1).cumsum(1) % 2, (n, 0))

    return Task("bits", BITS, draw, best, outputs=2, vocabulary=n + most + 3)
