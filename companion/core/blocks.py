"""What all hand-built attention is made of: a residual stream whose channels have names, and heads from two matrices.

Notation (Elhage et al. 2021, "A mathematical framework for transformer circuits"): position t has a column x_t, and a
head adds to it

    sum_s a_s W_OV x_s,       a = weights of the scores x_t^T W_QK x_s

W_QK = W_Q^T W_K says what a query looks for, W_OV = W_O W_V what is copied from where it looks. Streams hold one row a
position, as everywhere in the course; the matrices act on columns, as on paper.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

Matrix = Float[Tensor, "width width"]


class Blocks:
    """Names for the channels of a residual stream.

    >>> blocks = Blocks(token=5, position=8, previous=5)
    >>> blocks.width, blocks["previous"]
    (18, slice(13, 18, None))
    """

    def __init__(self, **sizes: int):
        self.slices, start = {}, 0
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} = {size!r}: a block must have at least 1 channel")
            self.slices[name] = slice(start, start + size)
            start += size
        self.width = start

    def __getitem__(self, name: str) -> slice:
        if name not in self.slices:
            raise ValueError(f"block = {name!r}: must be one of {', '.join(self.slices)}")
        return self.slices[name]

    def size(self, name: str) -> int:
        """Return how many channels the block ``name`` has."""
        return self[name].stop - self[name].start

    def rows(self, name: str) -> Float[Tensor, "size width"]:
        """Return the block's channels as unit vectors of the whole stream, one a row: with A the rows of one block and
        B those of another, B^T A is the matrix that reads the first and writes the second.
        """
        return torch.eye(self.width, dtype=torch.float64)[self[name]]

    def matrix(self, write: str, read: str, values: Float[Tensor, "write read"] | None = None) -> Matrix:
        """Return the matrix that applies ``values`` (the identity unless told) to the block ``read`` and puts the
        result into ``write``.
        """
        M = torch.zeros(self.width, self.width, dtype=torch.float64)
        if values is None:
            values = torch.eye(self.size(write), dtype=torch.float64)
        if values.shape != (self.size(write), self.size(read)):
            raise ValueError(
                f"values of shape {tuple(values.shape)}: must be {(self.size(write), self.size(read))}, the channels "
                f"of {write} and of {read}"
            )
        M[self[write], self[read]] = values.double()
        return M


def causal_softmax(scores: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """Compute the softmax of each query's scores over the keys that are not in its future."""
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1)


@dataclass
class Head:
    """One head: ``qk[a, b]`` scores channel a of a query against channel b of a key; ``ov`` maps what it finds to what
    it adds; ``weights`` makes weights of scores [query, key], a causal softmax unless told.
    """

    qk: Matrix
    ov: Matrix
    weights: Callable[[Tensor], Tensor] = causal_softmax

    def pattern(self, x: Float[Tensor, "*batch length width"]) -> Float[Tensor, "*batch length length"]:
        """Return the attention pattern: its row t is how much position t attends to each s."""
        return self.weights(x @ self.qk.to(x.device) @ x.mT)  # [t, s] from x_t^T W_QK x_s

    def __call__(self, x: Float[Tensor, "*batch length width"]) -> Float[Tensor, "*batch length width"]:
        """Return what the head adds to the stream."""
        return self.pattern(x) @ x @ self.ov.to(x.device).mT
