"""What a search has found, and what a structure looks like: who is stored beside whom."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def best_so_far(
    found: Int[Tensor, "batch lookups"], distances: Float[Tensor, "batch n"]
) -> Bool[Tensor, "batch lookups"]:
    """Entry i: whether a nearest point is among the first i + 1 that were looked at; -1 stands for a lookup that
    touched no point.

    The mean over the batch is the zero-one accuracy of Salemohamed et al. (2024), arXiv:2411.03253. Where several
    points are nearest, any of them will do. Raises ValueError for a place that is not -1 to n - 1.
    """
    n = distances.shape[1]
    outside = found[(found < -1) | (found >= n)]
    if len(outside):
        raise ValueError(
            f"found: has the entry {int(outside[0])}; must be a point, 0 to n - 1 = {n - 1}, or -1 for none"
        )
    nearest = distances == distances.amin(1, keepdim=True)
    right = nearest.gather(1, found.clamp(min=0)) & (found >= 0)
    return right.int().cummax(1).values.bool()


def place_distances(values: Float[Tensor, "batch places dim"]) -> Float[Tensor, "views places places"]:
    """Entry (v, k, l): how far apart what lies in places k and l is on average; view v < dim is |x_k - x_l| along axis
    v, the last one Euclid's distance.

    Sorted points give bands; a k-d tree gives blocks, halved along one axis at each level (Salemohamed et al. 2024,
    arXiv:2411.03253, figure 3).
    """
    along = torch.stack([torch.cdist(x[..., None], x[..., None]).mean(0) for x in values.unbind(-1)])
    return torch.cat([along, torch.cdist(values, values).mean(0)[None]])


def banding(view: Float[Tensor, "places places"]) -> float:
    """Measure how well the distance between two places follows how far apart the places are: the correlation of
    ``view[k, l]`` with l - k over all k < l; 1 for a sorted axis, 0 for none.
    """
    k, other = torch.triu_indices(*view.shape, offset=1, device=view.device)
    return torch.corrcoef(torch.stack([(other - k).to(view.dtype), view[k, other]]))[0, 1].item()


def principal_components(
    rows: Float[Tensor, "rows dim"],
) -> tuple[Float[Tensor, "components"], Float[Tensor, "dim components"]]:
    """Compute the shares of the rows' variance along their principal components, largest first, and the components."""
    _, sizes, directions = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
    return sizes.square() / sizes.square().sum(), directions.mT
