"""The exercises of lesson 11, graph connectivity.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

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


def _walked(edges: Tensor, steps: int, loops: bool = True) -> Tensor:
    return torch.linalg.matrix_power(edges + loops * torch.eye(len(edges), dtype=edges.dtype), steps) > 0


within_steps = Exercise(
    name="within_steps",
    answer=_within_steps,
    draw=_draw_edges,
    mistakes={
        "the self-loops are missing: without them a power counts walks of exactly so many steps": (
            lambda edges, steps: _walked(edges, steps, False)
        ),
        "one step too many": lambda edges, steps: _walked(edges, steps + 1),
        "one step too few": lambda edges, steps: _walked(edges, steps - 1),
        "the power is taken entry by entry; a walk of two steps is a product of matrices": lambda edges, steps: _walked(
            edges, 1
        ),
        "every round squares what is there: that is 2^steps steps, not steps": lambda edges, steps: _walked(
            edges, 2**steps
        ),
        "a node does not reach itself: 0 steps are at most that many": lambda edges, steps: (
            _walked(edges, steps) & ~torch.eye(len(edges), dtype=torch.bool)
        ),
        "only nodes at exactly that distance; those that are nearer count, too": lambda edges, steps: (
            _walked(edges, steps) & ~_walked(edges, steps - 1)
        ),
    },
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
    mistakes={
        "a softmax is taken; this attention is linear, its weights are the scores divided by n": lambda X: (
            X + (X @ X.mT / len(X)).softmax(-1) @ X
        ),
        "what the stream held is lost: attention adds to it": lambda X: X @ X.mT @ X / len(X),
        "divided by the root of the width, as softmax attention does; linear attention divides by n": lambda X: (
            X + X @ X.mT @ X / X.shape[1] ** 0.5
        ),
        "divided by the width; it is the number of nodes, the rows": lambda X: X + X @ X.mT @ X / X.shape[1],
        "not divided by n": lambda X: X + X @ X.mT @ X,
        "the stream is divided by n, too": lambda X: (X + X @ X.mT @ X) / len(X),
        "a ReLU is taken of the scores; linear attention has none": lambda X: X + (X @ X.mT / len(X)).relu() @ X,
    },
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


def _spread_in_place(graph: Tensor, rounds: int) -> Tensor:
    labels = torch.arange(len(graph))
    for _ in range(rounds):
        for node in range(len(graph)):
            labels[node] = labels[graph[node] > 0].min()
    return labels


def _spread_by_squares(graph: Tensor, rounds: int) -> Tensor:
    labels = torch.arange(len(graph))
    for _ in range(rounds):
        labels = torch.where(graph > 0, labels, len(graph)).min(-1).values
        graph = graph @ graph
    return labels


spread = Exercise(
    name="spread",
    answer=_spread,
    draw=_draw_rumour,
    mistakes={
        "one round too many": lambda graph, rounds: _spread(graph, rounds + 1),
        "one round too few": lambda graph, rounds: _spread(graph, rounds - 1),
        "the largest label is kept, not the smallest": lambda graph, rounds: (
            len(graph) - 1 - _spread(graph.flip(0, 1), rounds).flip(0)
        ),
        "a round uses labels of the same round: all nodes must hear what was there before it": _spread_in_place,
        "the rounds do not build on each other: each starts from the nodes' own names": lambda graph, rounds: _spread(
            graph, 1
        ),
        "who is no neighbour counts as label 0": lambda graph, rounds: torch.zeros(len(graph), dtype=torch.long),
        "the graph is squared between rounds: that is another, faster algorithm": _spread_by_squares,
    },
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


def _counted_rounds(distances, factors, *, reach=1, grow=None, short=lambda distances, reach: distances > reach):
    """The loop with one thing done differently."""
    rounds = torch.zeros_like(distances)
    while short(distances, reach).any():
        rounds = rounds + short(distances, reach)
        reach = (grow or (lambda reach: reach * factors))(reach)
    return rounds


rounds_needed = Exercise(
    name="rounds_needed",
    answer=_rounds_needed,
    draw=_draw_distances,
    mistakes={
        "one round too many where the distance is just what is reached": lambda distances, factors: _counted_rounds(
            distances, factors, short=lambda distances, reach: distances >= reach
        ),
        "the reach grows by as many steps a round; it is multiplied": lambda distances, factors: _counted_rounds(
            distances, factors, grow=lambda reach: reach + factors
        ),
        "one round too few: before the first round the reach is 1": lambda distances, factors: _counted_rounds(
            distances, factors, reach=factors
        ),
        "the reach starts at 0, or one round is counted too many for every distance": lambda distances, factors: (
            _rounds_needed(distances, factors) + 1
        ),
        "the reach is squared each round; every round multiplies it by the same number": lambda distances, factors: (
            _counted_rounds(distances, factors, reach=factors, grow=lambda reach: reach * reach)
        ),
        "every distance gets the rounds of the largest": lambda distances, factors: torch.full_like(
            distances, int(_rounds_needed(distances, factors).max())
        ),
    },
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


def _judged(answers, said, exact=lambda right: right.amin((1, 2)).mean()):
    right = (said == answers).double()
    return torch.stack([right.mean(), exact(right)])


def _products(graphs, less=0):
    degrees = graphs.sum(-1) - less
    return degrees[:, :, None] * degrees[:, None, :]


def _said(graphs, threshold):
    return (_products(graphs) > threshold) | (graphs > 0)


rule_scores = Exercise(
    name="rule_scores",
    answer=_rule_scores,
    draw=_draw_graphs,
    mistakes={
        "the degrees are added; the rule multiplies them": lambda graphs, answers, threshold: _judged(
            answers, (graphs.sum(-1)[:, :, None] + graphs.sum(-1)[:, None, :] > threshold) | (graphs > 0)
        ),
        "the self-loop is taken off the degrees; here it counts": lambda graphs, answers, threshold: _judged(
            answers, (_products(graphs, 1) > threshold) | (graphs > 0)
        ),
        "neighbours, and a node and itself, are connected whatever their degrees": lambda graphs, answers, threshold: (
            _judged(answers, _products(graphs) > threshold)
        ),
        "a product that equals the threshold is above it": lambda graphs, answers, threshold: _judged(
            answers, (_products(graphs) >= threshold) | (graphs > 0)
        ),
        "exact match is taken over rows; all pairs of a graph must be right": lambda graphs, answers, threshold: (
            _judged(answers, _said(graphs, threshold), lambda right: right.amin(2).mean())
        ),
        "exact match is taken over the whole batch; each graph counts for itself": lambda graphs, answers, threshold: (
            _judged(answers, _said(graphs, threshold), lambda right: right.min())
        ),
        "both numbers are of pairs; an exact match needs all pairs of a graph": lambda graphs, answers, threshold: (
            _judged(answers, _said(graphs, threshold), lambda right: right.mean())
        ),
    },
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


def _compared(h, local):
    return torch.einsum("ab,aij,bkj->ik", local, h, h)


channel_scores = Exercise(
    name="channel_scores",
    answer=_channel_scores,
    draw=_draw_channels,
    mistakes={
        "J sums over the wrong axis: h_a J h_b^T holds sums over rows of h": lambda h, local, degree: torch.stack(
            [_compared(h, local), h.sum(1).mT @ degree @ h.sum(1)]
        ),
        "J takes means; it is a matrix of ones, and sums": lambda h, local, degree: torch.stack(
            [_compared(h, local), h.mean(-1).mT @ degree @ h.mean(-1)]
        ),
        "the two channels are exchanged": lambda h, local, degree: _channel_scores(h, local, degree).flip(0),
        "local and degree are exchanged": lambda h, local, degree: _channel_scores(h, degree, local),
        "only blocks with themselves: all pairs of blocks a, b count": lambda h, local, degree: _channel_scores(
            h, local.diag().diag(), degree.diag().diag()
        ),
        "the second h of the local channel is not transposed: rows are compared with rows": lambda h, local, degree: (
            torch.stack([torch.einsum("ab,aij,bjk->ik", local, h, h), h.sum(-1).mT @ degree @ h.sum(-1)])
        ),
        "the numbers of the blocks are transposed: A_ab belongs to h_a on the left": lambda h, local, degree: (
            _channel_scores(h, local.mT, degree.mT)
        ),
    },
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


def _pushed(answers, each):
    return torch.stack([(each * answers).mean(), (each * (1 - answers)).mean()])


push = Exercise(
    name="push",
    answer=_push,
    draw=_draw_push,
    mistakes={
        "the sign is that of the gradient; descent pushes the other way": lambda logits, answers, feature: (
            -_push(logits, answers, feature)
        ),
        "the logits are no probabilities yet: the sigmoid is missing": lambda logits, answers, feature: _pushed(
            answers, (answers - logits) * feature
        ),
        "the feature is missing: a pair pushes as much as the channel sees of it": lambda logits, answers, feature: (
            _pushed(answers, answers - logits.sigmoid())
        ),
        "means over the connected and over the others; both are over all pairs": lambda logits, answers, feature: (
            _push(logits, answers, feature) / torch.stack([answers.mean(), 1 - answers.mean()])
        ),
        "reward and penalty are exchanged": lambda logits, answers, feature: _push(logits, answers, feature).flip(0),
        "the derivative of the sigmoid is left in: with cross-entropy it cancels": lambda logits, answers, feature: (
            _pushed(answers, (answers - logits.sigmoid()) * feature * logits.sigmoid() * (1 - logits.sigmoid()))
        ),
        "a sum over pairs, not a mean": lambda logits, answers, feature: (
            _push(logits, answers, feature) * answers.numel()
        ),
    },
)
