"""The classical rivals: breadth-first search, repeated squaring, union-find; and what degrees alone tell."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def breadth_first(graphs: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch n n"]:
    """Compute the distance of every pair of nodes, infinite where there is no path: from all nodes at once, one step of
    every search a round, until a round finds nothing. So the rounds are the largest finite distance.
    """
    found = torch.eye(graphs.shape[-1], dtype=torch.bool, device=graphs.device).expand_as(graphs)
    distance = torch.where(found, 0.0, math.inf)
    for step in range(1, graphs.shape[-1]):
        new = (found.float() @ graphs > 0) & ~found
        if not new.any():
            break
        distance = torch.where(new, float(step), distance)
        found = found | new
    return distance


def diameters(graphs: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch"]:
    """Compute the largest distance within a component of each graph."""
    distance = breadth_first(graphs)
    return torch.where(distance.isinf(), 0, distance).flatten(1).amax(1)


def rounds(graphs: Float[Tensor, "batch n n"], factors: int) -> Int[Tensor, "batch"]:
    """Count how many rounds X <- X^factors, from X = A, take until another changes nothing that is reached: 2 for
    repeated squaring, 3 for what attention does. That is ceil(log_factors of the diameter).
    """
    power, count = graphs > 0, torch.zeros(len(graphs), dtype=torch.long, device=graphs.device)
    while True:
        new = power.float()
        for _ in range(factors - 1):
            new = (new @ power.float() > 0).float()
        grown = ((new > 0) != power).flatten(1).any(1)
        if not grown.any():
            return count
        power, count = new > 0, count + grown


def union_find(graph: Float[Tensor, "n n"]) -> tuple[Int[Tensor, "n"], int]:
    """Find the smallest node of each node's component, and how many pointers were followed: edge after edge, with paths
    halved on the way (Tarjan and van Leeuwen 1984). The work is nearly linear in the edges; none of it is parallel.
    """
    parent, followed = list(range(len(graph))), 0

    def root(node):
        nonlocal followed
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node, followed = parent[node], followed + 1
        return node

    for i, j in graph.triu(1).nonzero().tolist():
        a, b = root(i), root(j)
        parent[max(a, b)] = min(a, b)
    return torch.tensor([root(node) for node in range(len(graph))], device=graph.device), followed


def degree_rule(graphs: Float[Tensor, "batch n n"], threshold: float) -> Bool[Tensor, "batch n n"]:
    """Apply the heuristic: two nodes are connected if the product d_i d_j of their degrees, which count the self-loop,
    exceeds a threshold, or if they are one or neighbours.
    """
    degrees = graphs.sum(-1)
    return (degrees[:, :, None] * degrees[:, None, :] > threshold) | (graphs > 0)
