"""Linear maps in a language model, and of its stream: an MLP at half of its rank, a map fitted by ridge regression."""

import torch
from jaxtyping import Float
from torch import Tensor

from companion.pretrained.language import LanguageModel
from companion.topics.bigrams.probes import truncated

RIDGE = 0.01  # of the mean variance


def halve_rank(model: LanguageModel, layer: int) -> None:
    """Cut each of the three matrices of one MLP, in place, to half of its rank (Sharma et al. 2023)."""
    mlp = model.body.get_submodule(f"blocks.{layer}.mlp")
    for matrix in (*mlp.get_parameter("gate_and_up.weight").chunk(2), mlp.get_parameter("down.weight")):
        matrix.copy_(truncated(matrix, 0.5))


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
