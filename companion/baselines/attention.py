"""What hand-built attention heads are compared with: the same look-ups as loops over a list of tokens."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def shares(tokens: Int[Tensor, "length"], vocabulary: int) -> Float[Tensor, "length vocabulary"]:
    """Row t: how often each token has occurred up to and including t, as a share. Raises ValueError for an unknown token."""
    _known(tokens, vocabulary)
    counts = torch.nn.functional.one_hot(tokens, vocabulary).double().cumsum(0)
    return counts / counts.sum(1, keepdim=True)


def ngram(tokens: Int[Tensor, "length"], vocabulary: int, n: int = 2) -> Float[Tensor, "length vocabulary"]:
    """Row t: of the earlier places where the last n - 1 tokens were those at t, the share of each token that followed; NaN without any.

    n = 2 is the in-context bigram. Raises ValueError for n < 2, or an unknown token.
    """
    _known(tokens, vocabulary)
    if n < 2:
        raise ValueError(f"n = {n!r}: must be at least 2, a token and what follows it")
    words, out = tokens.tolist(), torch.full((len(tokens), vocabulary), torch.nan, dtype=torch.float64)
    for t in range(n - 2, len(words)):
        context = words[t - n + 2 : t + 1]
        followers = [words[s] for s in range(n - 1, t + 1) if words[s - n + 1 : s] == context]
        if followers:
            out[t] = torch.bincount(torch.tensor(followers), minlength=vocabulary).double() / len(followers)
    return out


def latest(tokens: Int[Tensor, "length"], hops: int = 1) -> Int[Tensor, "length"]:
    """Entry t: the token that followed the latest earlier occurrence of token t; after more ``hops``, the same for that token; -1 if none.

    Later hops look up the token that the hop before gave, up to and including position t. Raises ValueError for hops < 1.
    """
    if hops < 1:
        raise ValueError(f"hops = {hops!r}: must be at least 1")
    words, out = tokens.tolist(), []
    for t, word in enumerate(words):
        found = word
        for _ in range(hops):
            found = next((words[s + 1] for s in range(t - 1, -1, -1) if words[s] == found), -1)
        out.append(found)
    return torch.tensor(out)


def _known(tokens: Int[Tensor, "length"], vocabulary: int) -> None:
    unknown = tokens[(tokens < 0) | (tokens >= vocabulary)]
    if len(unknown):
        raise ValueError(f"tokens: unknown token {int(unknown[0])}; must be 0 to vocabulary - 1 = {vocabulary - 1}")
