"""The Fourier basis over the numbers 0 .. n - 1: spectra of what a model keeps for each number, and filters in logit
space.

Zhou et al. (2024), arXiv:2406.03445, sections 3.2 and 3.3, with waves whose longest period is n - 1 rounded up to a
multiple of 20, so that periods of 2, 2.5, 5 and 10 are among them for every n (for n = 521 that is the paper's choice,
520).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range


def longest_period(n: int) -> int:
    """P, the period of the slowest wave over 0 .. n - 1: n - 1, rounded up to a multiple of 20.

    So P/2, P/5 and P/10 are whole, and periods of 2, 5 and 10 are among the waves. Raises ValueError for n < 2.
    """
    at_least(n=(n, 2))
    return -(-(n - 1) // 20) * 20


def periods(n: int) -> Float[Tensor, "waves"]:
    """Return the period of every wave but the constant: P, P/2, P/3, .., 2 with P = `longest_period`."""
    P = longest_period(n)
    return P / torch.arange(1, P // 2 + 1, dtype=torch.float64)


def basis(n: int, waves: Tensor | range | list[int] | None = None) -> Float[Tensor, "rows n"]:
    """Return a cosine and a sine row for each wave number k (all, from 0, unless told), cos(2 pi k x / P) and sin(2 pi
    k x / P), of norm 1.

    Rows that vanish are left out: the sines of k = 0 and of period 2. Rows are nearly orthogonal, not exactly: P is not
    n. Raises ValueError for a wave number that is not 0 .. P/2.
    """
    P = longest_period(n)
    waves = torch.arange(P // 2 + 1) if waves is None else torch.as_tensor(list(waves), dtype=torch.long)
    check_range(waves=(waves, P // 2 + 1))
    angles = waves[:, None] * torch.arange(n, dtype=torch.float64) * (2 * torch.pi / P)
    sines = angles.sin()[(waves > 0) & (waves < P // 2)]
    rows = torch.cat([angles.cos(), sines])
    return rows / rows.norm(dim=1, keepdim=True)


def spectrum(values: Float[Tensor, "n channels"]) -> Float[Tensor, "waves"]:
    """Measure how much of each wave k = 1 .. P/2 there is: the norm over channels and over cosine and sine of <wave,
    values>, k = 0 left out.

    The wave of period 2 has no sine, and its cosine counts twice: so noise has the same size at every period. Values
    are not centred first: a constant has a little of every wave, as waves do not fit exactly into n.
    """
    n = len(values)
    half = longest_period(n) // 2
    parts = (basis(n).to(values.device) @ values.double()).square().sum(1)
    cosines, sines = parts[1 : half + 1], parts[half + 1 :]
    cosines[:-1] += sines
    cosines[-1] *= 2
    return cosines.sqrt()


def peaks(sizes: Float[Tensor, "waves"], n: int) -> list[float]:
    """Measure how far the waves of period 10, 5, 3.3, 2.5 and 2 stand out: each over the median of itself and the six
    waves on either side.

    ``sizes``: a `spectrum` of n numbers.
    ``n``: how many numbers.

    Raises ValueError unless there is a size for each wave.
    """
    if len(sizes) != longest_period(n) // 2:
        raise ValueError(
            f"sizes: has {len(sizes)} entries; must have {longest_period(n) // 2}, one for each wave of {n} numbers"
        )
    places = [longest_period(n) // 10 * j - 1 for j in range(1, 6)]
    return [(sizes[place] / sizes[max(0, place - 6) : place + 7].median()).item() for place in places]


def relative_spectrum(values: Float[Tensor, "n channels"]) -> Float[Tensor, "waves"]:
    """`spectrum`, with the median wave as the unit: how far each stands out."""
    waves = spectrum(values)
    return waves / waves.median()


def shuffled_level(
    values: Float[Tensor, "n channels"], *, shuffles: int = 40, generator: torch.Generator | int = 0
) -> float:
    """Return the null band of `relative_spectrum`: what the strongest wave of the same rows in random order stays below
    in 95 of 100 shuffles.

    Shuffling keeps the rows and takes away which number each stands for, so a wave above this level is no chance of the
    rows, whichever of the waves it is. Raises ValueError for shuffles < 20, too few for a twentieth.

    ``values``: of the numbers 0, 1, .., in this order.
    ``shuffles``: how many orders are drawn.
    ``generator``: a seed, or a generator, of the orders.
    """
    at_least(shuffles=(shuffles, 20))
    generator = as_generator(generator)
    strongest = [
        relative_spectrum(
            values[torch.randperm(len(values), generator=generator, device=generator.device).to(values.device)]
        ).max()
        for _ in range(shuffles)
    ]
    return torch.stack(strongest).quantile(0.95).item()


def low_waves(n: int, cut: int) -> range:
    """Wave numbers 0 .. cut - 1, the slow ones. Raises ValueError unless 1 <= cut <= P/2."""
    half = longest_period(n) // 2
    if not 1 <= cut <= half:
        raise ValueError(f"cut = {cut!r}: must be 1 to {half}")
    return range(cut)


def high_waves(n: int, cut: int) -> range:
    """Wave numbers cut .. P/2, the fast ones. Raises ValueError unless 1 <= cut <= P/2."""
    low_waves(n, cut)
    return range(cut, longest_period(n) // 2 + 1)


def band_filter(
    unembedding: Float[Tensor, "n width"], waves: Tensor | range | list[int]
) -> Float[Tensor, "width width"]:
    """Return the projection of a stream onto what has none of the ``waves`` in its logits: y = N N^T x, N the null
    space of basis @ unembedding.

    It is the nearest y to x. Raises ValueError if the width leaves no such direction: it must exceed the rank of what
    is removed.
    """
    if not len(waves):
        raise ValueError("waves: must be at least one")
    read = basis(len(unembedding), waves).to(unembedding.device) @ unembedding.double()
    _, sizes, directions = torch.linalg.svd(read, full_matrices=True)
    rank = int((sizes > sizes[0] * max(read.shape) * torch.finfo(torch.float64).eps).sum())
    width = unembedding.shape[1]
    if rank >= width:
        raise ValueError(
            f"width = {width}: must be above {rank}, the number of directions that carry these {len(waves)} waves in "
            f"the logits of {len(unembedding)} numbers; give fewer waves"
        )
    null = directions[rank:]
    return (null.mT @ null).to(unembedding.dtype)
