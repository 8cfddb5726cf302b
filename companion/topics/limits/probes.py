"""How far one symbol among T moves what a network says at the last place; which prefixes of a word it gets right."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sharpen(decoder: nn.Module, factor: float) -> nn.Module:
    """Multiply every attention score of a `Decoder` by ``factor``, in place, and return it."""
    for block in decoder.blocks:
        block.attention.qkv.weight.data[: decoder.config.width] *= factor
    return decoder


@torch.no_grad()
def last_place_change(
    network: nn.Module, before: Float[Tensor, "batch length width"], after: Float[Tensor, "batch length width"]
) -> Float[Tensor, "batch"]:
    """Measure the length of the change at the last place, relative to the output there."""
    old, new = network(before)[:, -1], network(after)[:, -1]
    return (new - old).norm(dim=-1) / old.norm(dim=-1)


def right_prefixes(
    tables: Float[Tensor, "batch length n n"], states: Int[Tensor, "batch length n"]
) -> Float[Tensor, "length"]:
    """Measure the share of words of which the prefix up to each place is right: every point of it must be."""
    return (tables.argmax(-1) == states).all(-1).double().mean(0)
