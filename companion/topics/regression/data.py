"""Prompts of linear regression problems: a fresh task, and fresh data, in every sequence.

Set-up of Garg, Tsipras, Liang, Valiant (2022), arXiv:2208.01066, and of Fu, Chen, Jia, Sharan (2024), arXiv:2310.17086
(section 3 of each).
"""

from fractions import Fraction
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import as_generator

FACTORS = ("1/3", "1/2", "2", "3")
SHIFTS = (
    "as trained",
    "other orthant",
    "half the dimensions",
    "query orthogonal",
    "query an example",
    *(f"{what} times {factor}" for what in ("inputs", "weights") for factor in FACTORS),
)


class Prompts(NamedTuple):
    """A batch of prompts: inputs, labels, and the weights that made them (which no learner sees)."""

    xs: Float[Tensor, "batch n d"]
    ys: Float[Tensor, "batch n"]
    ws: Float[Tensor, "batch d"]


def prompts(
    batch: int,
    n: int,
    d: int,
    *,
    kappa: float = 1.0,
    noise: float = 0.0,
    generator: torch.Generator | int = 0,
    dtype: torch.dtype = torch.float32,
) -> Prompts:
    """Draw w ~ N(0, I_d), x_i ~ N(0, Sigma), y_i = w^T x_i + noise * N(0, 1), anew for every sequence.

    With ``kappa = 1`` Sigma is the identity ("isotropic"). With ``kappa > 1`` half of its eigenvalues (the larger half,
    rounded down) are kappa, the others 1, in a basis drawn uniformly for each sequence ("ill-conditioned").

    ``generator`` is a seed, or a ``torch.Generator``, whose device is then the device of the prompts.

    >>> prompts(batch=64, n=21, d=5).xs.shape
    torch.Size([64, 21, 5])

    ``batch``, ``n``, ``d``: sequences, pairs in each, and dimensions of x.
    ``kappa``: the condition number of Sigma.
    ``noise``: the standard deviation of the labels' noise.
    ``dtype``: of the prompts.

    Raises ValueError for batch < 1, n < 2 (an example and a query), d < 1, kappa < 1 (or kappa > 1 with d = 1), noise <
    0.
    """
    for name, value, least in (("batch", batch, 1), ("n", n, 2), ("d", d, 1), ("kappa", kappa, 1), ("noise", noise, 0)):
        if not least <= value < float("inf"):
            raise ValueError(f"{name} = {value!r}: must be finite and at least {least}")
    if kappa > 1 and d < 2:
        raise ValueError(f"kappa = {kappa!r} with d = {d}: two different eigenvalues need d >= 2")
    generator = as_generator(generator)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=generator.device, dtype=dtype)

    ws, xs = normal(batch, d), normal(batch, n, d)
    if kappa > 1:
        # The orthogonal factor of a Gaussian matrix, columns signed by R's diagonal, is uniform over all bases
        # (Mezzadri 2007).
        basis, r = torch.linalg.qr(normal(batch, d, d))
        basis = basis * r.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]
        eigenvalues = torch.ones(d, device=xs.device, dtype=dtype)
        eigenvalues[: d // 2] = kappa
        xs = (xs * eigenvalues.sqrt()) @ basis.mT
    ys = torch.einsum("bnd,bd->bn", xs, ws)
    if noise > 0:
        ys = ys + noise * normal(batch, n)
    return Prompts(xs, ys, ws)


def prompts_with_spectrum(
    batch: int, n: int, eigenvalues: Float[Tensor, "d"], *, generator: torch.Generator | int = 0
) -> Prompts:
    """Prompts whose first n - 1 inputs X have exactly these ``eigenvalues`` of X^T X, in a random basis; w and the last
    input, the query, are N(0, I).

    ``batch``: how many prompts.
    ``n``: inputs in each, the query among them; n - 1 must be at least d.
    ``eigenvalues``: the d of them, none negative.
    ``generator``: a seed, or a ``torch.Generator``.

    They tell algorithms apart whose pace depends on the spectrum: conjugate gradient ends in as many steps as there
    are distinct eigenvalues.
    """
    d = len(eigenvalues)
    if n - 1 < d or d < 1 or not (eigenvalues >= 0).all():
        said = f"n = {n}, eigenvalues = {eigenvalues.tolist()}"
        raise ValueError(f"{said}: must be at least one eigenvalue, none negative, and n above their number")
    generator = as_generator(generator)

    def normal(*shape: int) -> Tensor:
        return torch.randn(batch, *shape, generator=generator, device=generator.device, dtype=torch.float64)

    columns, basis = torch.linalg.qr(normal(n - 1, d)).Q, torch.linalg.qr(normal(d, d)).Q
    ws = normal(d)
    xs = torch.cat([columns * eigenvalues.double().sqrt() @ basis.mT, normal(1, d)], dim=1)
    return Prompts(xs.float(), torch.einsum("bnd,bd->bn", xs, ws).float(), ws.float())


def shifted_prompts(shift: str, batch: int, examples: int, d: int, *, generator: torch.Generator | int = 0) -> Prompts:
    """Isotropic prompts of ``examples`` and a query that are not those of training: one of `SHIFTS`.

    "other orthant": the examples of a prompt have one pattern of signs, the query any. "half the dimensions": all
    inputs lie in a random subspace of d / 2 dimensions, and are as long as others. "query orthogonal": to all examples,
    of which there must be fewer than d, and as long as another. "query an example": the first. "inputs times 3",
    "weights times 3": as they say. Source: Garg et al. (2022), section 4.

    ``shift``: what is changed.
    ``batch``: how many prompts.
    ``examples``, ``d``: in each, and the dimensions of x.
    ``generator``: a seed, or a ``torch.Generator``.

    Raises ValueError for an unknown ``shift``.
    """
    if shift not in SHIFTS:
        raise ValueError(f"shift = {shift!r}: must be one of {', '.join(SHIFTS)}")
    generator = as_generator(generator)
    xs, _, ws = prompts(batch, examples + 1, d, generator=generator)
    other = torch.randn(batch, d, d, generator=generator, device=xs.device)
    what, _, factor = shift.partition(" times ")
    if factor and what == "inputs":
        xs = xs * float(Fraction(factor))
    elif factor:
        ws = ws * float(Fraction(factor))
    elif shift == "other orthant":
        xs[:, :-1] = xs[:, :-1].abs() * other[:, :1].sign()
    elif shift == "half the dimensions":
        basis = torch.linalg.qr(other[:, :, : d // 2]).Q
        xs = xs @ basis @ basis.mT * (d / (d // 2)) ** 0.5
    elif shift == "query orthogonal":
        outside = xs[:, -1] - (torch.linalg.pinv(xs[:, :-1]) @ xs[:, :-1] @ xs[:, -1:].mT)[..., 0]
        xs[:, -1] = outside * d**0.5 / outside.norm(dim=-1, keepdim=True)
    elif shift == "query an example":
        xs[:, -1] = xs[:, 0]
    return Prompts(xs, torch.einsum("bnd,bd->bn", xs, ws), ws)
