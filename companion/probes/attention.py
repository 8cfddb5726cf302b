"""Where the heads of a trained decoder look."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def patterns(decoder: nn.Module, x: Float[Tensor, "batch length width"]) -> list[Float[Tensor, "batch heads length length"]]:
    """The attention patterns of every layer of a `Decoder` that reads ``x``: row t of a head is how much t attends to each s.

    softmax(Q K^T / sqrt(h)), with Q and K from the layer's own projections of its normed stream; masked if the decoder is causal.
    PyTorch's fused attention does not return them. Raises ValueError unless the decoder's attention is 'softmax'.
    """
    config = decoder.config
    if config.attention != "softmax":
        raise ValueError(f"attention = {config.attention!r}: only 'softmax' has patterns")
    found = []
    with torch.no_grad():
        for block, stream in zip(decoder.blocks, decoder.streams(x)[:-1], strict=True):
            q, k, _ = block.attention.qkv(block.norm1(stream)).unflatten(-1, (3, config.heads, -1)).unbind(2)
            scores = torch.einsum("bthc,bshc->bhts", q, k) / q.shape[-1] ** 0.5
            if config.causal:
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
            found.append(scores.softmax(dim=-1))
    return found
