"""Connectivity by explicit weights: the course's `Decoder` with nothing but identity matrices.

Linear attention with W_Q = W_K = W_V = W_O = I on the rows of X adds (X X^T / n) X to X. From X = A, an adjacency
matrix with self-loops, every layer triples the reach, since X^3 has an entry wherever three of X's steps lead; L
layers reach 3^L steps, and no further (Ye, Fu, Jia, Sharan 2026, arXiv:2510.19753, who append what attention finds to
the stream; here it is added, which for weights that are not negative reaches as far).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from companion.core.arguments import at_least
from companion.core.decoder import Decoder, DecoderConfig


class PowerDecoder:
    """Which of ``n`` nodes are at most 3^layers steps apart.

    >>> PowerDecoder(n=12, layers=2)(graphs)    # (batch, 12, 12) -> True up to distance 9

    In float64, no entry is ever rounded to 0: the smallest positive one is about n^(-(3^L - 1) / 2). Raises ValueError
    for a number below 1.
    """

    def __init__(self, n: int, layers: int):
        at_least(n=(n, 1), layers=(layers, 1))
        shape = {"causal": False, "attention": "linear", "norm": False, "mlp": 0, "positions": False}
        self.decoder = Decoder(DecoderConfig(n, layers, heads=1, context=n, **shape)).double().requires_grad_(False)
        identity = torch.eye(n, dtype=torch.float64)
        for block in self.decoder.blocks:
            block.attention.qkv.weight[:] = identity.repeat(3, 1)
            block.attention.out.weight[:] = identity

    def stream(self, graphs: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch n n"]:
        """Return the last residual stream: a polynomial in A with positive coefficients up to A^(3^layers)."""
        return self.decoder.to(graphs.device)(graphs.double())

    def __call__(self, graphs: Float[Tensor, "batch n n"]) -> Bool[Tensor, "batch n n"]:
        """Where the stream is positive."""
        return self.stream(graphs) > 0
