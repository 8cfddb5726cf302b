"""What the weight matrices of the trigger-bigram task have memorised, and what they are without their smaller singular
values; and which heads of any model are induction heads.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


def recalled(
    W: Float[Tensor, "m d"],
    u: Float[Tensor, "M d"],
    v: Float[Tensor, "candidates m"],
    targets: Int[Tensor, "M"] | None = None,
) -> Bool[Tensor, "M"]:
    """Return which associations a matrix recalls: entry i is 1{argmax_j v_j^T W u_i = target_i}, target i unless told.

    Their mean is the probe R(W, W*) = 1/M sum_i 1{i = argmax_j v_j^T W u_i} of Bietti et al. (2023), arXiv:2306.00802,
    section 5, for the memory W* = sum_i v_i u_i^T.

    ``W``: the matrix.
    ``u``: what it is asked, one a row.
    ``v``: the candidates for an answer, one a row; may be more than there are associations.
    ``targets``: the numbers of the right candidates.
    """
    best = (u @ W.mT @ v.mT).argmax(dim=1)
    return best == (torch.arange(len(u), device=u.device) if targets is None else targets)


def memories(model: nn.Module, triggers: Int[Tensor, "K"]) -> dict[str, float]:
    """Measure the probes R of a two-layer `BigramModel`'s three memories, every one with all candidates there are:

    W_O2  each token's value is read as that token, of all N; W_K2  each trigger as a query prefers the key that layer 1
    writes after that trigger, to those after all N tokens (with K
          candidates, as published, five fixed triggers would be right by chance one time in five);
    W_K1  each position as a query prefers the one before it, of all T.
    """
    E, P, U = model.embed.weight.detach(), model.decoder.positions.detach(), model.unembed.weight.detach()
    written = E @ (model.outputs(0) @ model.values(0)).mT  # what layer 1 adds where it looks at a token
    before = torch.arange(len(P) - 1, device=P.device)
    hits = {
        "W_O2": recalled(model.outputs(1) @ model.values(1), E, U),
        "W_K2": recalled(model.keys(1).mT, E[triggers], written, triggers),
        "W_K1": recalled(model.keys(0).mT, P[1:], P, before),
    }
    return {name: hit.float().mean().item() for name, hit in hits.items()}


def truncated(W: Float[Tensor, "m d"], share: float) -> Float[Tensor, "m d"]:
    """W with all but its int(share * min(m, d)) largest singular values set to 0.

    Source: Sharma, Ash, Misra (2023), arXiv:2312.13558. Raises ValueError unless 0 <= share <= 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share = {share!r}: must be at least 0 and at most 1")
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    keep = int(share * len(S))
    return U[:, :keep] * S[:keep] @ V[:keep]


def prefix_matching(pattern: Float[Tensor, "batch heads length length"], period: int) -> Float[Tensor, "heads"]:
    """Measure how much each head looks right after the earlier occurrence of its token, on texts that end with
    ``period`` tokens said for the second time: the mean attention of these tokens to the one ``period`` - 1 before.

    Source: Olsson et al. (2022), arXiv:2209.11895. Raises ValueError unless 2 <= period <= length / 2.
    """
    length = pattern.shape[-1]
    if not 2 <= period <= length // 2:
        raise ValueError(f"period = {period!r}: must be 2 to {length // 2}, half of the length")
    return pattern.diagonal(1 - period, dim1=-2, dim2=-1)[..., -period:].mean((0, -1))


def copying(
    logits: Float[Tensor, "batch heads length candidates"], own: Int[Tensor, "batch length"]
) -> Float[Tensor, "heads"]:
    """At which share of the positions a head that hands over this position alone raises the position's ``own`` token
    most of all candidates, beside what it does to each of them on average.

    ``logits`` are what it would add to the candidates', ``own`` the place of each position's token among them. A
    variant of the copying score of Olsson et al. (2022), arXiv:2209.11895, which compares sizes instead.
    """
    raised = logits - logits.mean((0, 2), keepdim=True)
    return (raised.argmax(-1) == own[:, None]).float().mean((0, 2))
