"""Number embeddings that nobody trained on sums: from counting, from cosines, from another model."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import at_least, positive

PERIODS = (2.0, 5.0, 10.0, 100.0, 1000.0)


def ppmi_embeddings(
    counts: Float[Tensor, "numbers numbers"], width: int, *, power: float = 0.5
) -> Float[Tensor, "numbers width"]:
    """Compute what a text says of numbers by their company: positive pointwise mutual information, factored.

    M_ij = max(0, log(p_ij / (p_i p_j))), and the rows of U_k S_k^power of its truncated SVD; with sqrt(S_k), what
    word2vec does in other words (Levy and Goldberg 2014). The larger the power, the less weigh the last directions,
    which are noise (Levy, Goldberg, Dagan 2015). Raises ValueError for width < 1 or more than there are numbers, or
    power < 0.
    """
    if not 1 <= width <= len(counts):
        raise ValueError(f"width = {width!r}: must be 1 to {len(counts)}, the number of numbers")
    if not power >= 0:
        raise ValueError(f"power = {power!r}: must be at least 0")
    joint = counts / counts.sum()
    alone = joint.sum(1)
    information = (joint / torch.outer(alone, alone)).log().nan_to_num(nan=0, neginf=0).clamp_min(0)
    U, S, _ = torch.linalg.svd(information)
    return U[:, :width] * S[:width] ** power


def fourier_embeddings(
    numbers: int, width: int, periods: tuple[float, ...] = PERIODS
) -> Float[Tensor, "numbers width"]:
    """cos(2 pi n / T) and sin(2 pi n / T) for each period T, in the first channels; zeros in the others.

    Raises ValueError for numbers < 1, or a width that has no room for a cosine and a sine of each period.
    """
    at_least(numbers=(numbers, 1))
    if width < 2 * len(periods):
        raise ValueError(f"width = {width!r}: must be at least {2 * len(periods)}, two for each period")
    angles = (
        2 * math.pi * torch.arange(numbers, dtype=torch.float64)[:, None] / torch.tensor(periods, dtype=torch.float64)
    )
    return torch.nn.functional.pad(torch.cat([angles.cos(), angles.sin()], 1), (0, width - 2 * len(periods)))


def with_rms(embeddings: Float[Tensor, "numbers width"], rms: float) -> Float[Tensor, "numbers width"]:
    """Return the embeddings, scaled so that the root mean square of their entries is ``rms``: E rms / sqrt(mean
    E_ij^2).

    Raises ValueError unless rms > 0.
    """
    positive(rms=rms)
    return embeddings * (rms / embeddings.square().mean().sqrt())


def narrowed(embeddings: Float[Tensor, "numbers given"], width: int) -> Float[Tensor, "numbers width"]:
    """Embeddings of any width in ``width`` channels: their coordinates along the leading right singular vectors, E V_k,
    which keep inner products as well as any ``width`` channels can (Eckart and Young 1936); zeros in channels to spare.

    Raises ValueError for width < 1.
    """
    at_least(width=(width, 1))
    _, _, directions = torch.linalg.svd(embeddings.double(), full_matrices=False)
    kept = embeddings.double() @ directions[:width].mT
    return torch.nn.functional.pad(kept, (0, width - kept.shape[1]))
