"""Teachers for a multi-head attention layer, and the sequences on which they answer.

F(X) = sum_i softmax(X Theta_i X^T) X W_i for a sequence X of k tokens in d dimensions (Chen and Li 2024,
arXiv:2402.04084).
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import as_generator, at_least, positive


class Teacher(NamedTuple):
    """The two matrices of every head: where it looks, what it moves."""

    thetas: Float[Tensor, "heads d d"]
    ws: Float[Tensor, "heads d d"]

    def __call__(self, X: Float[Tensor, "n k d"]) -> Float[Tensor, "n k d"]:
        """What the layer answers, head by head, summed."""
        return sum((X @ theta @ X.mT).softmax(dim=-1) @ X @ w for theta, w in zip(self.thetas, self.ws, strict=True))


def teacher(d: int, heads: int, *, sharpness: float = 1.0, generator: torch.Generator | int = 0) -> Teacher:
    """Random heads: entries of Theta N(0, (sharpness / d)^2), so that scores have that standard deviation; of W N(0,
    1/d).

    Raises ValueError for d < 1, heads < 1, or a sharpness that is not positive and finite.

    ``d``: the dimension of a token.
    ``heads``: how many.
    ``sharpness``: the standard deviation of a score.
    ``generator``: of the entries, or its seed.
    """
    at_least(d=(d, 1), heads=(heads, 1))
    positive(sharpness=sharpness)
    generator = as_generator(generator)
    thetas, ws = torch.randn(2, heads, d, d, generator=generator, device=generator.device, dtype=torch.float64)
    return Teacher(sharpness / d * thetas, ws / d**0.5)


def cancelling_teacher(d: int, *, rank: int, generator: torch.Generator | int = 0) -> Teacher:
    """Two random heads whose W add up to a matrix of the given rank: what the algorithm's non-degeneracy rules out.

    W_2 = L R^T / d - W_1 with L and R (d, rank) of entries N(0, 1). Raises ValueError for d < 1 or rank < 0.

    ``d``: the dimension of a token.
    ``rank``: of W_1 + W_2; 0 lets the heads cancel.
    ``generator``: of the entries, or its seed.
    """
    at_least(rank=(rank, 0))
    generator = as_generator(generator)
    thetas, ws = teacher(d, 2, generator=generator)
    left, right = torch.randn(2, d, rank, generator=generator, device=generator.device, dtype=torch.float64)
    return Teacher(thetas, torch.stack([ws[0], left @ right.mT / d - ws[0]]))


def parity_teacher(d: int, support: int, *, sharpness: float = 3.0) -> Teacher:
    """``support`` heads that hide a parity: for k = 2, where the two tokens differ in coordinate 1, their answer is
    nearly P for odd support and x_1 (1 - P) for even, with P the product of the token's coordinates 2 .. support + 1.

    Theta_i = c (sum_{j in S} e_j - t_i e_1) e_1^T with t_i = -s + 1, -s + 3, .., s - 1, and W_i = (-1)^i e_1 e_1^T: as
    s heads hide one of C(d - 1, s) orthogonal functions, no learner by statistical queries finds it quickly (our
    construction, after the lower bound of arXiv:2402.04084).
    """
    at_least(support=(support, 1), d=(d, support + 1))
    e = torch.eye(d, dtype=torch.float64)
    inside = e[1 : support + 1].sum(0)
    thetas = [sharpness * torch.outer(inside - t * e[0], e[0]) for t in range(-support + 1, support, 2)]
    ws = [(-1.0) ** i * torch.outer(e[0], e[0]) for i in range(support)]
    return Teacher(torch.stack(thetas), torch.stack(ws))


def sequences(
    n: int, k: int, d: int, *, kind: Literal["boolean", "gaussian"] = "boolean", generator: torch.Generator | int = 0
) -> Float[Tensor, "n k d"]:
    """``n`` sequences of ``k`` tokens in ``d`` dimensions, in float64.

    Raises ValueError for n < 1, k < 2 (a single token attends to itself) or d < k.

    ``n``, ``k``, ``d``: the sizes.
    ``kind``: "boolean", uniform on {-1, 1}^d, or "gaussian", N(0, I_d).
    ``generator``: of the entries, or its seed.
    """
    at_least(n=(n, 1), k=(k, 2), d=(d, k))
    generator = as_generator(generator)
    X = torch.randn(n, k, d, generator=generator, device=generator.device, dtype=torch.float64)
    return torch.where(X > 0, 1.0, -1.0).to(X) if kind == "boolean" else X


def with_noise(
    Y: Float[Tensor, "n k d"], noise: float, *, generator: torch.Generator | int = 0
) -> Float[Tensor, "n k d"]:
    """Labels Y + E with independent entries of E from N(0, noise^2), ``noise`` in the labels' own units.

    Raises ValueError unless noise is at least 0 and finite.
    """
    if not 0 <= noise < float("inf"):
        raise ValueError(f"noise = {noise!r}: must be at least 0 and finite")
    generator = as_generator(generator)
    return Y + noise * torch.randn(Y.shape, generator=generator, device=generator.device, dtype=Y.dtype).to(Y.device)


def _linear(X: Tensor, outputs: int, generator: torch.Generator) -> Tensor:
    """A random linear map of all tokens at once, with values of size 1."""
    flat = X.flatten(1)
    return flat @ _normal(flat.shape[1], outputs, generator=generator) / flat.shape[1] ** 0.5


def _normal(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64, device=generator.device)


def _by_scores(attend: Callable[[Tensor], Tensor]) -> Callable[[Tensor, torch.Generator], Tensor]:
    """Two heads that make of their scores what ``attend`` says, in place of a softmax."""

    def label(X: Tensor, generator: torch.Generator) -> Tensor:
        heads = teacher(X.shape[2], 2, generator=generator)
        return sum(attend(X @ theta @ X.mT) @ X @ w for theta, w in zip(heads.thetas, heads.ws, strict=True))

    return label


def _half_noise(X: Tensor, generator: torch.Generator) -> Tensor:
    Y = teacher(X.shape[2], 2, generator=generator)(X)
    return with_noise(Y, Y.std().item(), generator=generator)


# Labels that no layer of two heads gives, or none that can be certified: functions of sequences and a generator
HOSTILE: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
    "random labels": lambda X, generator: _normal(*X.shape, generator=generator),
    "another sequence's labels": lambda X, generator: teacher(X.shape[2], 2, generator=generator)(X).roll(1, 0),
    "tanh of a linear map": lambda X, generator: _linear(X, X[0].numel(), generator).tanh().view(X.shape),
    "an MLP": lambda X, generator: _linear(_linear(X, 64, generator).relu(), X[0].numel(), generator).view(X.shape),
    "hard attention": _by_scores(
        lambda scores: torch.nn.functional.one_hot(scores.argmax(-1), len(scores[0])).double()
    ),
    "attention without a softmax": _by_scores(lambda scores: scores / len(scores[0])),
    "three heads": lambda X, generator: teacher(X.shape[2], 3, generator=generator)(X),
    "sum of W = 0": lambda X, generator: cancelling_teacher(X.shape[2], rank=0, generator=generator)(X),
    "sum of W of rank 1": lambda X, generator: cancelling_teacher(X.shape[2], rank=1, generator=generator)(X),
    "a parity": lambda X, _: Teacher(*(part.to(X.device) for part in parity_teacher(X.shape[2], 2)))(X),
    "as much noise as signal": _half_noise,
}


def hostile(
    kind: str, n: int, k: int, d: int, *, generator: torch.Generator | int
) -> tuple[Float[Tensor, "n k d"], Float[Tensor, "n k d"]]:
    """``n`` sequences of ``k`` tokens on {-1, 1}^d, and labels that a learner of two heads must refuse.

    Raises ValueError, naming what there is, for a kind that is not in `HOSTILE`, and for sizes as `sequences` does.

    ``kind``: a key of `HOSTILE`.
    ``n``, ``k``, ``d``: the sizes.
    ``generator``: of sequences and labels, or its seed.
    """
    if kind not in HOSTILE:
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join(HOSTILE)}")
    generator = as_generator(generator)
    X = sequences(n, k, d, generator=generator)
    return X, HOSTILE[kind](X, generator)
