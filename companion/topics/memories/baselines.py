"""What a memory is compared with: a table of everything seen, and the nearest of all stored vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import at_least


def unseen_mass(p: Float[Tensor, "N"], n: int) -> Float[Tensor, ""]:
    """Compute the expected error of a table without limits after ``n`` samples: the mass of what it has not seen, sum_z
    p(z) (1 - p(z))^n.

    For p(z) ~ z^-alpha it falls as n^-((alpha - 1) / alpha) (Hutter 2021, arXiv:2102.04074). Raises ValueError for n <
    0.
    """
    at_least(n=(n, 0))
    return (p * (1 - p) ** n).sum()


def nearest(V: Float[Tensor, "n d"], queries: Float[Tensor, "t d"]) -> Int[Tensor, "t"]:
    """Return, for each query x, the number of the stored vector with the largest inner product, argmax_i v_i . x.

    It takes n d products a query. What a memory of patterns is compared with.
    """
    return torch.cat([(part @ V.mT).argmax(1) for part in queries.split(256)])
