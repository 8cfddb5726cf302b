"""Recall as two papers arrange it: every key written twice, of which the later value counts (Schlag et al. 2021,
arXiv:2102.11174, section 6.1, where a key may come again with another value); and a key and its value one after the
other (Arora et al. 2023, arXiv:2312.04927, section 4), with the rival that is compared there, a gated convolution.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.task import Problems, Task


def written_twice(recall: Task) -> Task:
    """Return `recall` with a block before it that writes the same keys, in another order, with other values.

    Questions are asked after both; what counts is the later value. A sequence has three parts of the same length.
    """

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        where = {"generator": generator, "device": generator.device}
        inputs, targets, counts = recall.draw(batch, generator, size)
        pairs = inputs.shape[1] // 2
        keys = inputs[:, :pairs, 0].gather(1, torch.rand(batch, pairs, **where).argsort(1))
        values = torch.randint(recall.outputs, (batch, pairs), **where)
        earlier = torch.stack([keys, recall.vocabulary - recall.outputs + values], -1)
        both = (torch.cat([earlier, inputs], 1), torch.cat([values, targets], 1))
        return Problems(*both, torch.cat([torch.zeros_like(values, dtype=torch.bool), counts], 1))

    def best(inputs: Int[Tensor, "batch length 2"]) -> Int[Tensor, "batch length"]:
        pairs = inputs.shape[1] // 3
        return F.pad(recall.best(inputs[:, pairs:]), (pairs, 0))

    return replace(recall, draw=draw, best=best)


def apart(recall: Task) -> Task:
    """Return `recall` with a key and its value at two positions, one after the other, and each position's number as a
    second field, since attention needs to know which position comes before.
    """
    longest = 3 * recall.sizes[-1]

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        inputs, targets, counts = recall.draw(batch, generator, size)
        pairs = inputs.shape[1] // 2
        tokens = torch.cat([inputs[:, :pairs].flatten(1), inputs[:, pairs:, 0]], 1)
        places = recall.vocabulary + torch.arange(3 * pairs, device=tokens.device).expand_as(tokens)
        asked = (F.pad(each[:, pairs:], (2 * pairs, 0)) for each in (targets, counts))
        return Problems(torch.stack([tokens, places], -1), *asked)

    def best(inputs: Int[Tensor, "batch length 2"]) -> Int[Tensor, "batch length"]:
        pairs, tokens = inputs.shape[1] // 3, inputs[..., 0]
        asked = F.pad(tokens[:, 2 * pairs :, None], (0, 1))
        together = torch.cat([tokens[:, : 2 * pairs].unflatten(1, (pairs, 2)), asked], 1)
        return F.pad(recall.best(together)[:, pairs:], (2 * pairs, 0))

    return replace(recall, draw=draw, best=best, vocabulary=recall.vocabulary + longest)


ARRANGEMENTS: dict[str, Callable[[Task], Task]] = {"twice": written_twice, "apart": apart}


class GatedConvolution(nn.Module):
    """Multiply a linear map of what stands here with a filter over all that came before, y = (x W + b) * (h conv x + c)
    (Arora et al. 2023, BaseConv), where the paper's filters are short in one layer and given by a network in the next.
    """

    def __init__(self, width: int, longest: int = 96):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.filter = nn.Conv1d(width, width, longest, padding=longest - 1, groups=width)

    def forward(self, x: Float[Tensor, "batch time width"]) -> Float[Tensor, "batch time width"]:
        """Mix positions, each with those before it."""
        return self.gate(x) * self.filter(x.mT)[..., : x.shape[1]].mT
