"""Hash functions that are fitted to data: the learned rivals on the sphere in Salemohamed et al. (2024),
arXiv:2411.03253, table 1.

Each gives a function from vectors (.., dim) to the numbers of their buckets (..), with which
`companion.topics.structures.baselines.search.in_buckets` searches.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.arguments import as_generator, at_least
from companion.core.extras import Extra
from companion.core.training import seeded

Code = Callable[[Tensor], Tensor]


def itq(sample: Float[Tensor, "m dim"], bits: int, *, rounds: int = 50, generator: torch.Generator | int) -> Code:
    """Fit Iterative Quantization (Gong, Lazebnik 2011): the leading principal components of the sample, turned until
    their signs lose least; the signs are the ``bits`` of a bucket's number.

    In each round the signs B are those of the turned components V R, and then R is the rotation that takes V nearest to
    B, which a singular value decomposition of B^T V gives (Procrustes).

    ``sample``: what it is fitted to.
    ``bits``, ``rounds``: how many signs, and how often they and the rotation take turns.
    ``generator``: for the first rotation, or its seed.

    Raises ValueError for a number below 1, and for more bits than dimensions.
    """
    at_least(bits=(bits, 1), rounds=(rounds, 1))
    if bits > sample.shape[1]:
        raise ValueError(f"bits = {bits!r}: must be at most dim = {sample.shape[1]}")
    generator, centre = as_generator(generator), sample.mean(0)
    axes = torch.linalg.svd(sample - centre, full_matrices=False).Vh[:bits].mT
    components = (sample - centre) @ axes
    first = torch.randn(bits, bits, generator=generator, device=generator.device).to(sample)
    turn = torch.linalg.qr(first).Q
    for _ in range(rounds):
        signs = torch.where(components @ turn >= 0, 1.0, -1.0).to(sample)
        u, _, vh = torch.linalg.svd(signs.mT @ components)
        turn = (u @ vh).mT
    digits = 2 ** torch.arange(bits, device=sample.device)
    return lambda x: (((x - centre) @ axes @ turn >= 0) * digits).sum(-1)


def k_means(sample: Float[Tensor, "m dim"], buckets: int, *, generator: torch.Generator | int) -> Code:
    """Fit ``buckets`` centres to the ``sample`` by k-means, as scikit-learn does it; a vector belongs to the nearest.

    ``generator``: for the first centres, or its seed. Raises ValueError for fewer points than buckets, or none.
    """
    at_least(buckets=(buckets, 1), sample=(len(sample), buckets))
    with Extra("lessons"):
        from sklearn.cluster import KMeans  # noqa: PLC0415
    generator = as_generator(generator)
    seed = torch.randint(2**31, (1,), generator=generator, device=generator.device).tolist()[0]
    fitted = KMeans(buckets, n_init=1, random_state=seed).fit(sample.cpu().numpy())
    centres = torch.tensor(fitted.cluster_centers_.tolist(), dtype=sample.dtype, device=sample.device)
    return lambda x: torch.cdist(x, centres).argmin(-1)


def neural_hash(
    sample: Float[Tensor, "m dim"],
    near: Float[Tensor, "m dim"],
    buckets: int,
    *,
    hidden: int = 128,
    steps: int = 400,
    generator: torch.Generator | int,
) -> Code:
    """Train a network to put a point and what is near it into one bucket, and as many points into each.

    With p(x) = softmax(f(x)) over the buckets, the loss is the mean of -log p(x) . p(near) plus KL(mean of p || all
    alike). NeuralLSH (Dong et al. 2020, arXiv:1901.08544) wants the same, first cuts a graph of neighbours into equal
    parts and then fits a network to the parts; here the network itself looks for them.

    ``sample``, ``near``: points, and beside each what must be found from it or finds it, such as a query.
    ``buckets``: how many.
    ``hidden``, ``steps``: units of its one hidden layer, and steps of Adam, 512 pairs each.
    ``generator``: for weights and batches, or its seed.

    Raises ValueError for a number below 1.
    """
    at_least(buckets=(buckets, 1), hidden=(hidden, 1), steps=(steps, 1))
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    with seeded(torch.randint(2**31, (1,), **where).tolist()[0]):
        network = nn.Sequential(nn.Linear(sample.shape[1], hidden), nn.ReLU(), nn.Linear(hidden, buckets))
    network.to(sample)
    adam = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(steps):
        batch = torch.randint(len(sample), (512,), **where).to(sample.device)
        one, other = (network(x[batch]).log_softmax(-1) for x in (sample, near))
        share = torch.cat([one, other]).exp().mean(0)
        loss = (share * (share * buckets).log()).sum() - (one + other).logsumexp(-1).mean()
        network.zero_grad()
        loss.backward()
        adam.step()
    network.requires_grad_(False)
    return lambda x: network(x).argmax(-1)
