"""Graphs, of which it is asked who is connected with whom: random ones, chains, cliques, cycles; and filters on them.

A graph on n nodes is its adjacency matrix A with a self-loop at every node, so that [A^k]_ij > 0 says that j is at most
k steps from i; the answer is the matrix R of all pairs in one component (Ye, Fu, Jia, Sharan 2026, arXiv:2510.19753).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from companion.core.arguments import as_generator, at_least


def erdos_renyi(
    batch: int, n: int, low: float, high: float, *, generator: torch.Generator | int
) -> Float[Tensor, "batch n n"]:
    """Random graphs: each pair is an edge with probability p, drawn for each graph uniformly from low to high.

    ``batch``, ``n``: how many graphs, and nodes in each.
    ``low``, ``high``: the range of p; twice the same number for the usual ER(n, p).
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1, or a range that is not within [0, 1].
    """
    at_least(batch=(batch, 1), n=(n, 1))
    if not 0 <= low <= high <= 1:
        raise ValueError(f"low = {low!r}, high = {high!r}: must be 0 <= low <= high <= 1")
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    p = low + (high - low) * torch.rand(batch, 1, 1, **where)
    upper = (torch.rand(batch, n, n, **where) < p).float().triu(1)
    return upper + upper.mT + torch.eye(n, device=generator.device)


def disjoint(
    batch: int, kind: str, sizes: tuple[int, ...], *, generator: torch.Generator | int
) -> Float[Tensor, "batch n n"]:
    """Chains, cliques or cycles side by side, the same graph each time under other names.

    ``batch``: how many graphs.
    ``kind``: what every component is, 'chain', 'clique' or 'cycle'; one of a single node is that node alone.
    ``sizes``: the components' numbers of nodes, of which n is the sum.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1, or an unknown kind.
    """
    at_least(batch=(batch, 1), sizes=(min(sizes, default=0), 1))
    if kind not in ("chain", "clique", "cycle"):
        raise ValueError(f"kind = {kind!r}: must be 'chain', 'clique' or 'cycle'")
    generator = as_generator(generator)
    n = sum(sizes)
    graph, start = torch.eye(n, device=generator.device), 0
    for size in sizes:
        nodes = torch.arange(start, start + size)
        if kind == "clique":
            graph[start : start + size, start : start + size] = 1
        else:
            following = nodes.roll(-1)[: size - (kind == "chain")]
            graph[nodes[: len(following)], following] = graph[following, nodes[: len(following)]] = 1
        start += size
    names = torch.rand(batch, n, generator=generator, device=generator.device).argsort(-1)
    return graph[names[:, :, None], names[:, None, :]]


def reach(graphs: Float[Tensor, "batch n n"], steps: int) -> Bool[Tensor, "batch n n"]:
    """Return which nodes are at most so many steps apart: A^steps > 0. Raises ValueError for steps below 0."""
    at_least(steps=(steps, 0))
    reached = torch.eye(graphs.shape[-1], dtype=torch.bool, device=graphs.device).expand_as(graphs)
    for _ in range(steps):
        reached = reached.to(graphs.dtype) @ graphs > 0
    return reached


def connected(graphs: Float[Tensor, "batch n n"]) -> Bool[Tensor, "batch n n"]:
    """Return the answer R: which nodes are in one component, those that are at most n - 1 steps apart; every squaring
    doubles the steps.
    """
    reached, steps = graphs > 0, 1
    while steps < graphs.shape[-1] - 1:
        paths = reached.to(graphs.dtype)
        reached, steps = paths @ paths > 0, 2 * steps
    return reached


def within(graphs: Float[Tensor, "batch n n"], steps: int) -> Bool[Tensor, "batch"]:
    """Apply the capacity filter: return whether all connected nodes of a graph are at most so many steps apart.
    Raises ValueError for steps below 0.
    """
    return (reach(graphs, steps) == connected(graphs)).flatten(1).all(1)


def matched(
    graphs: Float[Tensor, "batch n n"], kept: Bool[Tensor, "batch"], *, generator: torch.Generator | int
) -> Bool[Tensor, "batch"]:
    """Draw the control of a filter: as many graphs are kept as ``kept`` keeps, of each number of connected pairs just
    as many, but chosen blindly among them. The base rate is the filter's; its choice is not.
    """
    generator = as_generator(generator)
    pairs = connected(graphs).flatten(1).sum(1)
    chosen = torch.zeros_like(kept)
    for number in pairs.unique():
        same = (pairs == number).nonzero().flatten()
        order = torch.randperm(len(same), generator=generator, device=generator.device)
        chosen[same[order[: int(kept[same].sum())].to(same.device)]] = True
    return chosen
