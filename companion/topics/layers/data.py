"""Recall where each key is written twice, and the later value counts."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task


def written_twice(recall: Task) -> Task:
    """Return `recall` with a block before it that writes the same keys, in another order, with other values.

    As a key may come again with another value in Schlag et al. (2021), arXiv:2102.11174, section 6.1; here each key
    comes twice, and all are asked for. A sequence is three blocks of the same length: written, written again, asked.
    """

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        where = {"generator": generator, "device": generator.device}
        inputs, targets, counts = recall.draw(batch, generator, size)
        pairs = inputs.shape[1] // 2
        keys = inputs[:, :pairs, 0].gather(1, torch.rand(batch, pairs, **where).argsort(1))
        values = torch.randint(recall.outputs, (batch, pairs), **where)
        earlier = torch.stack([keys, recall.vocabulary - recall.outputs + values], -1)
        both = (torch.cat([earlier, inputs], 1), torch.cat([values, targets], 1))
        return Problems(*both, F.pad(counts, (pairs, 0)))

    def best(inputs: Int[Tensor, "batch length 2"]) -> Int[Tensor, "batch length"]:
        pairs = inputs.shape[1] // 3
        return F.pad(recall.best(inputs[:, pairs:]), (pairs, 0))

    return replace(recall, draw=draw, best=best)
