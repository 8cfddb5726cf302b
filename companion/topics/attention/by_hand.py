r"""Attention heads from explicit weights, on a residual stream whose channels have names (`Blocks`).

Notation (Elhage et al. 2021, "A mathematical framework for transformer circuits"; Bietti et al. 2023,
arXiv:2306.00802): position t has a vector x_t, and a causal `Head` adds to it

    x_t <- x_t + sum_{s <= t} alpha_ts W_OV x_s,       alpha_ts = softmax_s(x_t^T W_QK x_s).

A trained head learns the two matrices; here they are written down. The stream is cut into `Blocks` (the token, its
position, what a head has written); a matrix that reads one block and writes another is all that a pattern needs. Scores
grow with a sharpness ``beta``: the softmax puts weight 1 - O(T e^-beta) where it should, and each builder's docstring
says how large beta must be.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import at_least, check_range, positive
from companion.core.blocks import Blocks, Head


def run(layers: list[list[Head]], x: Float[Tensor, "length width"]) -> list[Float[Tensor, "length width"]]:
    """Return the residual stream before the first layer and after each one; heads of one layer read the same stream."""
    streams = [x]
    for heads in layers:
        streams.append(streams[-1] + sum(head(streams[-1]) for head in heads))
    return streams


def embed(
    blocks: Blocks, tokens: Int[Tensor, "length"], positions: Float[Tensor, "most channels"] | None = None
) -> Float[Tensor, "length width"]:
    """Return one-hot tokens and positions in the blocks ``token`` and ``position``; everything else is empty.

    Position t is row t of ``positions``, such as `circle` gives; one-hot unless told.

    Raises ValueError for fewer than two tokens, for more than there are positions, for positions that do not fit their
    block, and for a token that the block has no channel for.
    """
    length, V, channels = len(tokens), blocks.size("token"), blocks.size("position")
    positions = torch.eye(channels, dtype=torch.float64) if positions is None else positions
    if positions.shape[1] != channels:
        raise ValueError(
            f"positions of shape {tuple(positions.shape)}: must have {channels} channels, as the block has"
        )
    if not 2 <= length <= len(positions):
        raise ValueError(f"length = {length}: must be at least 2 and at most {len(positions)}, the number of positions")
    check_range(tokens=(tokens, V))
    x = torch.zeros(length, blocks.width, dtype=torch.float64, device=tokens.device)
    x[torch.arange(length), blocks["token"].start + tokens] = 1
    x[:, blocks["position"]] = positions[:length].double()
    return x


def shift_head(blocks: Blocks, beta: float, *, by: int = 1, read: str = "token", write: str = "previous") -> Head:
    """Copies the token (or another block) of ``by`` places ago: W_QK = beta sum_t p_t p_{t-by}^T over one-hot positions
    p.

    Weight off the mark: at most T e^-beta. The first ``by`` positions have nothing to copy, and average what they see.
    Raises ValueError for beta <= 0, for a block that is not there, and unless 1 <= by < T.

    ``blocks``: the stream's channels; ``position`` holds T one-hot positions.
    ``beta``: sharpness, the score of the place that is meant.
    ``by``: how many positions back.
    ``read``, ``write``: the names of the block that is copied and of that into which.
    """
    positive(beta=beta)
    T = blocks.size("position")
    if not 1 <= by < T:
        raise ValueError(f"by = {by!r}: must be at least 1 and below {T}, the number of positions")
    shift = torch.diag(torch.ones(T - by, dtype=torch.float64), -by)  # [t, t - by]
    return Head(blocks.matrix("position", "position", beta * shift), blocks.matrix(write, read))


def circle(T: int) -> Float[Tensor, "positions two"]:
    """Position t as the angle 2 pi t / T: two channels for any number of positions. Raises ValueError for T < 2."""
    at_least(T=(T, 2))
    angle = 2 * math.pi * torch.arange(T, dtype=torch.float64) / T
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def circle_shift(T: int, beta: float) -> Float[Tensor, "two two"]:
    """Return the W_QK that turns a query's angle back by one position: scores beta cos(2 pi (t - 1 - s) / T).

    The best score beats the next by beta (1 - cos(2 pi / T)), about 2 pi^2 beta / T^2: for weight 1 - eps on the
    previous position, beta >= ln(2 / eps) / (1 - cos(2 pi / T)) is enough for small eps. One-hot positions need ln(T /
    eps).
    """
    positive(beta=beta)
    at_least(T=(T, 2))
    step = 2 * math.pi / T
    return beta * torch.tensor(
        [[math.cos(step), -math.sin(step)], [math.sin(step), math.cos(step)]], dtype=torch.float64
    )


def skip_gram_head(blocks: Blocks, beta: float, *, query: int, key: int, write: str = "out") -> Head:
    """Build a head that, where the token is ``query``, copies ``key`` if it has been there: W_QK = beta e_query
    e_key^T. Elsewhere: the plain average.

    Weight off the mark where both are there: at most T e^-beta. Raises ValueError for beta <= 0 or an unknown token.

    ``blocks``: the stream's channels, of which ``token`` is read.
    ``beta``: sharpness, the score of ``key`` seen from ``query``.
    ``query``, ``key``: two tokens' numbers.
    ``write``: the name of the block into which the head writes.
    """
    positive(beta=beta)
    V = blocks.size("token")
    check_range(query=(torch.tensor([query]), V), key=(torch.tensor([key]), V))
    scores = torch.zeros(V, V, dtype=torch.float64)
    scores[query, key] = beta
    return Head(blocks.matrix("token", "token", scores), blocks.matrix(write, "token"))


def broad_head(blocks: Blocks, *, write: str = "out") -> Head:
    """Averages all tokens so far: W_QK = 0. Exact: what it writes is the share of each token."""
    return Head(torch.zeros(blocks.width, blocks.width, dtype=torch.float64), blocks.matrix(write, "token"))


def match_head(
    blocks: Blocks,
    beta: float,
    *,
    pairs: dict[str, str] | None = None,
    role: Float[Tensor, "width"] | None = None,
    recency: float = 0.0,
    write: str = "out",
) -> Head:
    """Build the second half of an induction head: it looks where each query block equals its key block, and copies the
    token there (Olsson et al. 2022, arXiv:2209.11895).

    With sharpness beta, matches share the weight but for T e^-beta. To pick the latest to within eps: recency >= ln(T /
    eps), and beta > recency * T + ln(T / eps), or a recent miss beats an old match. Raises ValueError for beta <= 0,
    recency < 0, and a block that is not there.

    ``blocks``: the stream's channels.
    ``beta``: sharpness, the score that one matching pair adds.
    ``pairs``: query blocks to key blocks; unless told, {"token": "previous"}: find where the token *before* was the one
        now. With more pairs all must match (an n-gram).
    ``role``: channels of the stream that a key must hold as well, whatever the query: adds beta times their sum.
    ``recency``: r adds r s to the score of key position s, so that the latest match wins.
    ``write``: the name of the block into which the token is copied.
    """
    positive(beta=beta)
    at_least(recency=(recency, 0))
    qk = sum(blocks.matrix(query, key) for query, key in (pairs or {"token": "previous"}).items()) * beta
    if role is not None:
        qk = qk + beta * torch.outer(blocks.rows("position").sum(0), role)  # every query asks for it
    if recency:
        T = blocks.size("position")
        late = torch.arange(T, dtype=torch.float64).expand(T, T)  # [t, s]: s, whatever t
        qk = qk + blocks.matrix("position", "position", recency * late)
    return Head(qk, blocks.matrix(write, "token"))
