"""How far one symbol among T moves a network's output at the last place; which prefixes of a word it gets right."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sharpen(decoder: nn.Module, factor: float) -> nn.Module:
    """Multiply every attention score of a `Decoder` by ``factor``, in place, and return it."""
    for block in decoder.blocks:
        block.attention.qkv.weight.data[: decoder.config.width] *= factor
    return decoder


@torch.no_grad()
def changes_by_place(network: nn.Module, x: Float[Tensor, "length width"]) -> Float[Tensor, "length-1"]:
    """Measure |y' - y| / |y| at the last place, for y' with the vector of one place turned round: each place but the
    last in its turn (Hahn 2020, arXiv:1906.06755, lemma 5, bounds the largest). A few places at a time, to spare the
    memory.
    """
    length, old = len(x), network(x[None])[0, -1]
    signs = 1 - 2 * torch.eye(length, dtype=x.dtype, device=x.device)[:-1, :, None]
    new = torch.cat([network(x * some)[:, -1] for some in signs.split(max(1, 2**14 // length))])
    return (new - old).norm(dim=-1) / old.norm()


def right_prefixes(
    tables: Float[Tensor, "batch length n n"], states: Int[Tensor, "batch length n"]
) -> Float[Tensor, "length"]:
    """Measure the share of words of which the prefix up to each place is right: every point of it must be."""
    return (tables.argmax(-1) == states).all(-1).double().mean(0)
