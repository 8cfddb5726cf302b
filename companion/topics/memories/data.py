"""What an associative memory has to remember: random embeddings, token frequencies with a heavy tail, patterns of
signs.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least


def embeddings(
    n: int,
    d: int,
    *,
    runs: tuple[int, ...] = (),
    unit: bool = False,
    generator: torch.Generator | int = 0,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "*runs n d"]:
    """``n`` random vectors with entries N(0, 1/d): of length about 1, and with inner products of about 1/sqrt(d).

    ``unit`` scales every vector to length exactly 1; ``runs`` are independent sets, in front. Raises ValueError for n <
    1 or d < 1.

    ``n``, ``d``: how many there are, and of how many dimensions.
    ``runs``: the shape of the sets in front.
    ``unit``: whether they are scaled.
    ``generator``: a seed, or a generator, on whose device the draw is made.
    ``dtype``: theirs.
    """
    at_least(n=(n, 1), d=(d, 1))
    generator = as_generator(generator)
    vectors = torch.randn(*runs, n, d, generator=generator, device=generator.device, dtype=dtype)
    return vectors / vectors.norm(dim=-1, keepdim=True) if unit else vectors / d**0.5


def zipf(N: int, alpha: float) -> Float[Tensor, "N"]:
    """Frequencies p(z) proportional to z^-alpha, for z = 1, .., N, in float64.

    Raises ValueError for N < 1, and for alpha <= 1: then almost all of the mass lies in the tail, and more and more of
    it as N grows.
    """
    at_least(N=(N, 1))
    if not 1 < alpha < float("inf"):
        raise ValueError(f"alpha = {alpha!r}: must be above 1 and finite")
    weights = torch.arange(1, N + 1, dtype=torch.float64) ** -alpha
    return weights / weights.sum()


def tokens(
    p: Float[Tensor, "N"], n: int, *, runs: int = 1, generator: torch.Generator | int = 0
) -> Int[Tensor, "runs n"]:
    """``runs`` independent samples of ``n`` tokens with probabilities ``p``.

    ``p``: the probability of each token.
    ``n``: of a sample.
    ``runs``: how many samples.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for n < 1, runs < 1, or a ``p`` that is negative somewhere or does not sum to 1.
    """
    at_least(n=(n, 1), runs=(runs, 1))
    if (p < 0).any() or abs(p.sum().item() - 1) > 1e-6:
        raise ValueError(f"p: probabilities must be at least 0 and sum to 1, not to {p.sum().item():.6g}")
    generator = as_generator(generator)
    uniform = torch.rand(runs, n, generator=generator, device=generator.device, dtype=p.dtype).to(p.device)
    # rounding may leave the sum a little below 1
    return torch.searchsorted(p.cumsum(0), uniform, right=True).clamp_max(len(p) - 1)


def sign_patterns(n: int, d: int, *, generator: torch.Generator | int = 0) -> Float[Tensor, "n d"]:
    """``n`` random patterns of ``d`` signs, uniform on {-1, 1}^d: what a Hopfield network stores.

    Raises ValueError for n < 1 or d < 1.
    """
    at_least(n=(n, 1), d=(d, 1))
    generator = as_generator(generator)
    return torch.randint(2, (n, d), generator=generator, device=generator.device) * 2.0 - 1


def flipped(X: Float[Tensor, "n d"], share: float, *, generator: torch.Generator | int = 0) -> Float[Tensor, "n d"]:
    """Return the patterns with each sign flipped with probability ``share``. Raises ValueError unless 0 <= share <
    1.
    """
    if not 0 <= share < 1:
        raise ValueError(f"share = {share!r}: must be at least 0 and below 1")
    generator = as_generator(generator)
    turned = torch.rand(X.shape, generator=generator, device=generator.device) < share
    return torch.where(turned.to(X.device), -X, X)
