"""Linear maps that are fitted to read one stream of a model as another."""

import torch
from jaxtyping import Float
from torch import Tensor

RIDGE = 0.01  # of the mean variance


def ridge(
    x: Float[Tensor, "places width"], y: Float[Tensor, "places width"]
) -> tuple[Float[Tensor, "width width"], Float[Tensor, "width"]]:
    """Fit the matrix A and the offset b of y = x A + b by ridge regression."""
    middle, mean = x.mean(0), y.mean(0)
    centred = x - middle
    products = centred.mT @ centred
    products.diagonal().add_(RIDGE * products.trace() / len(products))
    A = torch.linalg.solve(products, centred.mT @ (y - mean))
    return A, mean - middle @ A
