"""One linear map per layer, fitted to read an answer off the residual stream while everything else stays frozen."""

import torch
from jaxtyping import Float
from torch import Tensor


def fit_readouts(streams: Float[Tensor, "depth *points width"], targets: Float[Tensor, "*points"]) -> Float[Tensor, "depth width+1"]:
    """The least-squares readout of every layer, weights first, intercept last; one for all points (prompts and positions).

    Where the original trains readouts by gradient descent, the minimum is computed: least squares in float64, so that directions
    that a layer does not use get weight 0.
    """
    depth, width = streams.shape[0], streams.shape[-1]
    features = _with_ones(streams.reshape(depth, -1, width).double())
    answers = targets.reshape(-1, 1).double().expand(depth, -1, 1)
    gram = features.mT @ features  # (depth, width + 1, width + 1): small, however many points there are
    return (torch.linalg.pinv(gram, rtol=1e-12, hermitian=True) @ (features.mT @ answers))[..., 0].to(streams.dtype)


def apply_readouts(
    readouts: Float[Tensor, "depth width+1"], streams: Float[Tensor, "depth *points width"]
) -> Float[Tensor, "depth *points"]:
    """What every layer's readout says."""
    return torch.einsum("l...w,lw->l...", _with_ones(streams), readouts)


def _with_ones(streams: Tensor) -> Tensor:
    return torch.cat([streams, torch.ones_like(streams[..., :1])], dim=-1)
