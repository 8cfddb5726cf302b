"""One linear map per layer, fitted to read an answer off the residual stream while everything else stays frozen."""

import torch
from jaxtyping import Float
from torch import Tensor


def fit_readouts(
    streams: Float[Tensor, "depth *points width"], targets: Float[Tensor, "*points"]
) -> Float[Tensor, "depth width_and_one"]:
    """Fit the least-squares readout of every layer, weights first, intercept last; one for all points (prompts and
    positions).

    Where the original trains readouts by gradient descent, the minimum is computed: least squares in float64, so that
    directions that a layer does not use get weight 0.
    """
    answers = targets.reshape(-1).double()
    readouts = []
    for stream in streams:  # one layer at a time: in float64, all of them would fill a small machine's memory
        features = _with_ones(stream.reshape(-1, stream.shape[-1]).double())
        readouts.append(torch.linalg.pinv(features.mT @ features, rtol=1e-12, hermitian=True) @ (features.mT @ answers))
    return torch.stack(readouts).to(streams.dtype)


def apply_readouts(
    readouts: Float[Tensor, "depth width_and_one"], streams: Float[Tensor, "depth *points width"]
) -> Float[Tensor, "depth *points"]:
    """Return what every layer's readout says."""
    return torch.einsum("l...w,lw->l...", _with_ones(streams), readouts)


def _with_ones(streams: Tensor) -> Tensor:
    return torch.cat([streams, torch.ones_like(streams[..., :1])], dim=-1)
