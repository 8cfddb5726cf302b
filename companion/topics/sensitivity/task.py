"""Sparse parities as a task: bits one by one, then the parity of one, two or three of them, always the same ones."""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task, task
from companion.topics.sensitivity.data import Sparse, strings, truth_table

LENGTHS = {"smoke": 6, "course": 12, "paper": 40}
BITS = (1, 2, 3)


@task
def sparse_task(scale: str) -> Task:
    """Make the task: parities of 1, 2 and 3 of 12 bits, whose places are for the weights to find."""
    n = LENGTHS[scale]
    places = torch.randperm(n, generator=torch.Generator().manual_seed(n))
    parities = [Sparse(truth_table("parity", k), places[:k]) for k in BITS]

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        bits = strings(batch, n, generator=generator)
        here = torch.arange(1, n + len(BITS) + 1, device=bits.device).expand(batch, -1)  # a place, or which parity
        inputs = torch.stack([here, n + len(BITS) + 1 + torch.cat([bits, bits[:, : len(BITS)] * 0 - 1], 1)], -1)
        inputs[:, n:, 1] = 0
        return Problems(inputs, best(inputs), here == n + size if size else here > n)

    def best(inputs: Int[Tensor, "batch length 2"]) -> Int[Tensor, "batch length"]:
        bits = inputs[:, :n, 1] - n - len(BITS) - 1
        asked = [Sparse(each.table.to(bits.device), each.places.to(bits.device))(bits) for each in parities]
        return torch.cat([bits * 0, torch.stack(asked, 1)], 1)

    return Task(
        f"say the parities of {BITS[0]}, {BITS[1]} and {BITS[2]} of {n} bits, always the same",
        "bits",
        BITS,
        vocabulary=n + len(BITS) + 3,
        features=2,
        outputs=2,
        draw=draw,
        best=best,
    )
