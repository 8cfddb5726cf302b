"""What a memory is compared with: the nearest of all stored vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def nearest(V: Float[Tensor, "n d"], queries: Float[Tensor, "t d"]) -> Int[Tensor, "t"]:
    """Return, for each query x, the number of the stored vector with the largest inner product, argmax_i v_i . x.

    It takes n d products a query. What a memory of patterns is compared with.
    """
    return torch.cat([(part @ V.mT).argmax(1) for part in queries.split(256)])
