"""Connectivity as a task: a graph node by node, then pairs of nodes: is there a way from one to the other?"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.task import Problems, Task
from companion.topics.graphs.data import connected, erdos_renyi, reach

NODES = {"smoke": 6, "course": 8, "paper": 24}
STEPS = (1, 2, 3)  # of the shortest way between two nodes, if there is any
EDGES = 1.5  # a node has so many on the average


def connectivity_task(scale: str) -> Task:
    """Say of pairs of nodes whether they are connected, after all edges of a graph have been shown."""
    n = NODES[scale]
    p = EDGES / (n - 1)

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        graphs = erdos_renyi(batch, n, p, p, generator=generator)
        nodes = torch.eye(n, device=graphs.device).expand(batch, n, n)
        far = ~connected(graphs)
        near = ~far & (nodes == 0) if size is None else reach(graphs, size) & ~reach(graphs, size - 1)
        # where a node has both, it is asked about the one and the other equally often
        odds = sum(kind / kind.sum(-1, keepdim=True).clamp_min(1) for kind in (near, far)).flatten(0, 1)
        counts = (odds.sum(-1) > 0).view(batch, n)
        other = torch.multinomial(odds + ~counts.view(-1, 1), 1, generator=generator).view(batch, n, 1)
        targets = (~far).gather(2, other)[..., 0].long()
        told, asked = torch.cat([graphs, nodes], -1), torch.cat([nodes, F.one_hot(other[..., 0], n)], -1)
        inputs = torch.cat([F.pad(told, (0, n)), F.pad(asked, (n, 0))], 1)
        return Problems(inputs, F.pad(targets, (n, 0)), F.pad(counts, (n, 0)))

    def best(inputs: Float[Tensor, "batch length features"]) -> Int[Tensor, "batch length"]:
        graphs, one, other = inputs[:, :n, :n], inputs[..., n : 2 * n], inputs[..., 2 * n :]
        return ((one @ connected(graphs).float()) * other).sum(-1).long()

    return Task("steps", STEPS, draw, best, outputs=2)
