"""A student of the shape of its teacher: m heads of attention with full d x d matrices, trained by gradient descent."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.arguments import at_least


@dataclass(frozen=True)
class MultiHeadConfig:
    """``heads`` heads on tokens of ``d`` dimensions."""

    d: int
    heads: int

    def __post_init__(self):
        at_least(d=(self.d, 1), heads=(self.heads, 1))


class MultiHead(nn.Module):
    """F(X) = sum_i softmax(X Theta_i X^T) X W_i, from a small random start, in float64."""

    def __init__(self, config: MultiHeadConfig):
        super().__init__()
        self.config = config
        shape = config.heads, config.d, config.d
        self.thetas = nn.Parameter(0.5 / config.d * torch.randn(shape, dtype=torch.float64))
        self.ws = nn.Parameter(torch.randn(shape, dtype=torch.float64) / config.d**0.5)

    def forward(self, X: Float[Tensor, "n k d"]) -> Float[Tensor, "n k d"]:
        """Compute the layer's answer to every sequence."""
        patterns = torch.einsum("nkd,hde,nle->hnkl", X, self.thetas, X).softmax(dim=-1)
        return torch.einsum("hnkl,nle,hef->nkf", patterns, X, self.ws)


def relative_loss(model, X, Y):
    """Square loss over that of answering 0, |model(X) - Y|^2 / |Y|^2, for ``X`` and ``Y`` (batch, k, d)."""
    return (model(X) - Y).square().sum() / Y.square().sum()
