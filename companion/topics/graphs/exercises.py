"""The exercises of lesson 11, graph connectivity."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = [
    "channel_scores",
    "identity_layer",
    "push",
    "rounds_needed",
    "rule_scores",
    "spread",
    "within_steps",
]


def _chain(generator: Generator, n: int) -> Tensor:
    """The edges of a chain under shuffled names, without self-loops."""
    edges, order = torch.zeros(n, n, dtype=torch.float64), torch.randperm(n, generator=generator)
    edges[order[:-1], order[1:]] = edges[order[1:], order[:-1]] = 1
    return edges


# -- within_steps


def _draw_edges(generator: Generator) -> dict:
    """A chain, and a node without neighbours, which reaches nothing but itself."""
    n = draw_size(generator, 9, 12)
    edges, order = torch.block_diag(_chain(generator, n), torch.zeros(1, 1)), torch.randperm(n + 1, generator=generator)
    return {"edges": edges[order][:, order], "steps": draw_size(generator, 3, 6)}


def _within_steps(edges: Tensor, steps: int) -> Tensor:
    start = torch.eye(len(edges), dtype=edges.dtype, device=edges.device)
    loops = edges + start
    walks = start
    for _ in range(steps):
        walks = walks @ loops
    return walks > 0


within_steps = Exercise(
    name="within_steps",
    answer=_within_steps,
    draw=_draw_edges,
)


# -- identity_layer


def _draw_stream(generator: Generator) -> dict:
    return {"X": draw_normal(generator, draw_size(generator, 4, 5), draw_size(generator, 6, 8))}


def _identity_layer(X: Tensor) -> Tensor:
    scores = X @ X.mT
    pattern = scores / len(X)
    return X + pattern @ X


identity_layer = Exercise(
    name="identity_layer",
    answer=_identity_layer,
    draw=_draw_stream,
)


# -- spread


def _draw_rumour(generator: Generator) -> dict:
    n = draw_size(generator, 12, 15)
    graph = _chain(generator, n) + torch.eye(n, dtype=torch.float64)
    return {"graph": graph, "rounds": draw_size(generator, 2, 4)}


def _spread(graph: Tensor, rounds: int) -> Tensor:
    n = len(graph)
    labels = torch.arange(n, device=graph.device)
    for _ in range(rounds):
        heard = torch.where(graph > 0, labels, n)
        labels = heard.min(-1).values
    return labels


spread = Exercise(
    name="spread",
    answer=_spread,
    draw=_draw_rumour,
)


# -- rounds_needed

LENGTHS = (1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 27, 28, 32, 33, 64, 65, 81, 82)  # powers, and one more


def _draw_distances(generator: Generator) -> dict:
    factors = draw_size(generator, 2, 3)
    more = torch.randint(2, 90, (6,), generator=generator)
    distances = torch.cat([torch.tensor(LENGTHS), more])
    return {"distances": distances[torch.randperm(len(distances), generator=generator)], "factors": factors}


def _rounds_needed(distances: Tensor, factors: int) -> Tensor:
    rounds, reach = torch.zeros_like(distances), 1
    while (distances > reach).any():
        rounds = rounds + (distances > reach)
        reach = reach * factors
    return rounds


rounds_needed = Exercise(
    name="rounds_needed",
    answer=_rounds_needed,
    draw=_draw_distances,
)


# -- rule_scores


def _draw_graphs(generator: Generator) -> dict:
    """Pairs of cliques of several sizes, and random graphs: on some the rule is right everywhere, on others not."""
    n, graphs = 6, []
    for _ in range(draw_size(generator, 10, 14)):
        edges = (torch.rand(n, n, generator=generator, dtype=torch.float64) < 0.25).double().triu(1)
        graphs.append(edges + edges.mT + torch.eye(n, dtype=torch.float64))
    graphs[0] = torch.eye(n, dtype=torch.float64)
    graphs[1] = torch.ones(n, n, dtype=torch.float64)
    graphs = torch.stack(graphs)
    answers = torch.linalg.matrix_power(graphs, n) > 0
    return {"graphs": graphs, "answers": answers, "threshold": float((3, 4, 6)[draw_size(generator, 0, 2)])}


def _rule_scores(graphs: Tensor, answers: Tensor, threshold: float) -> Tensor:
    degrees = graphs.sum(-1)
    products = degrees[:, :, None] * degrees[:, None, :]
    said = (products > threshold) | (graphs > 0)
    right = (said == answers).to(graphs.dtype)
    return torch.stack([right.mean(), right.amin((1, 2)).mean()])


rule_scores = Exercise(
    name="rule_scores",
    answer=_rule_scores,
    draw=_draw_graphs,
)


# -- channel_scores


def _draw_channels(generator: Generator) -> dict:
    k, n = draw_size(generator, 2, 3), draw_size(generator, 4, 6)
    return {
        "h": draw_normal(generator, k, n, n),
        "local": draw_normal(generator, k, k),
        "degree": draw_normal(generator, k, k),
    }


def _channel_scores(h: Tensor, local: Tensor, degree: Tensor) -> Tensor:
    compared = torch.einsum("ab,aij,bkj->ik", local, h, h)
    sums = h.sum(-1)
    broadcast = sums.mT @ degree @ sums
    return torch.stack([compared, broadcast])


channel_scores = Exercise(
    name="channel_scores",
    answer=_channel_scores,
    draw=_draw_channels,
)


# -- push


def _draw_push(generator: Generator) -> dict:
    n = draw_size(generator, 5, 8)
    return {
        "logits": 2 * draw_normal(generator, n, n),
        "answers": torch.randint(2, (n, n), generator=generator).double(),
        "feature": 1 + draw_normal(generator, n, n).square(),
    }


def _push(logits: Tensor, answers: Tensor, feature: Tensor) -> Tensor:
    error = answers - logits.sigmoid()
    each = error * feature
    reward = (each * answers).mean()
    penalty = (each * (1 - answers)).mean()
    return torch.stack([reward, penalty])


push = Exercise(
    name="push",
    answer=_push,
    draw=_draw_push,
)
