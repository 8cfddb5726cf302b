"""What a sequence's own statistics predict: counting what is there (unigram), or what followed (bigram)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import check_range


def bayes(tokens: Int[Tensor, "batch length"], k: int, *, order: int = 2) -> Float[Tensor, "batch length k"]:
    """Compute the distribution of the token after each position, given those up to it, for a prior Dirichlet(1).

    Order 2, bigram: (count of z_t followed by j, so far, + 1) / (count of z_t followed by anything + k), the Bayes
    prediction for chains with rows uniform on the simplex (but for what the first token says about the stationary
    distribution). Order 1, unigram: (count of j + 1) / (t + k).

    Raises ValueError for an unknown token, or an order other than 1 or 2.
    """
    check_range(tokens=(tokens, k))
    if order not in (1, 2):
        raise ValueError(f"order = {order!r}: must be 1 or 2")
    here = torch.nn.functional.one_hot(tokens, k).double()
    if order == 1:
        counts = here.cumsum(1)
    else:
        # (batch, length - 1, k, k): a 1 where i at t is followed by j
        pairs = here[:, :-1, :, None] * here[:, 1:, None]
        seen = torch.nn.functional.pad(pairs.cumsum(1), (0, 0, 0, 0, 1, 0))  # pairs complete at position t
        counts = (seen * here[..., None]).sum(2)  # the row of the token at t
    return (counts + 1) / (counts.sum(-1, keepdim=True) + k)


def follower(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    """Entry t: z_{s+1} for the latest s < t with z_s = z_t, what an induction head says; -1 if there is no such s.

    For every sequence of a batch.
    """
    batch, length = tokens.shape
    places = torch.arange(length, device=tokens.device)
    # [b, t, s]: the same token, s before t
    match = (tokens[:, :, None] == tokens[:, None]) & (places[:, None] > places)
    latest = torch.where(match, places, -1).amax(-1)
    after = tokens.gather(1, (latest + 1).clamp(max=length - 1))
    return after.where(latest >= 0, -1)
