"""Recall as a task: pairs of a key and a value, then every key once more, whose value is asked for.

Many queries a sequence, as Arora et al. (2023), arXiv:2312.04927, ask them; a key and its value stand at one position
here, which saves the layer that would bring them together.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task, any_of

SIZES = {"smoke": (2, 4), "course": (4, 8, 16, 32), "paper": (16, 32, 64, 128)}
VALUES = 16


def recall_task(scale: str) -> Task:
    """Say the value of each key, after all pairs have been shown."""
    sizes, keys = SIZES[scale], 2 * SIZES[scale][-1]

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        where = {"generator": generator, "device": generator.device}
        pairs = size or any_of(sizes, generator)
        written = torch.rand(batch, keys, **where).argsort(1)[:, :pairs]  # no key twice: nothing is overwritten
        values = torch.randint(VALUES, (batch, pairs), **where)
        asked = torch.rand(batch, pairs, **where).argsort(1)
        shown = torch.cat([keys + 1 + values, torch.zeros_like(values)], 1)
        inputs = torch.stack([1 + torch.cat([written, written.gather(1, asked)], 1), shown], -1)
        return Problems(inputs, torch.cat([values, values.gather(1, asked)], 1), shown == 0)

    def best(inputs: Int[Tensor, "batch length 2"]) -> Int[Tensor, "batch length"]:
        key, value = inputs.unbind(-1)
        same = (key[:, :, None] == key[:, None]) & (value[:, None] > 0)
        return (same * value[:, None]).amax(-1) - keys - 1

    return Task("pairs", sizes, draw, best, outputs=VALUES, vocabulary=1 + keys + VALUES)
