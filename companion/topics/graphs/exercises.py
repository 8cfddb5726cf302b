"""The exercises of lesson 11, graph connectivity."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.graphs.baselines import diameters
from companion.topics.graphs.data import connected


def _chain(generator: Generator, n: int) -> Tensor:
    """The edges of a chain under shuffled names, without self-loops."""
    edges, order = torch.zeros(n, n, dtype=torch.float64), torch.randperm(n, generator=generator)
    edges[order[:-1], order[1:]] = edges[order[1:], order[:-1]] = 1
    return edges


def _draw_edges(generator: Generator) -> dict:
    """A chain, and a node without neighbours, which reaches nothing but itself; in checks and grades now and then no
    step at all, but not where a mistake is known by what it does on further inputs: a power of -1 is another mistake.
    """
    n = draw_size(generator, 9, 12)
    edges, order = torch.block_diag(_chain(generator, n), torch.zeros(1, 1)), torch.randperm(n + 1, generator=generator)
    steps = 0 if generator.initial_seed() in range(4, 2000, 5) else draw_size(generator, 3, 6)
    return {"edges": edges[order][:, order], "steps": steps}


@exercise(draw=_draw_edges, now="you can say who is within reach of whom")
def within_steps(edges: Tensor, steps: int) -> Tensor:
    start = torch.eye(len(edges), dtype=edges.dtype, device=edges.device)
    loops = edges + start
    walks = start
    for _ in range(steps):
        walks = walks @ loops
    return walks > 0


def _draw_stream(generator: Generator) -> dict:
    return {"X": draw_normal(generator, draw_size(generator, 4, 5), draw_size(generator, 6, 8))}


@exercise(
    draw=_draw_stream, now="you have a transformer that decides connectivity up to its reach, without a trained weight"
)
def identity_layer(X: Tensor) -> Tensor:
    scores = X @ X.mT
    pattern = scores / len(X)
    return X + pattern @ X


def _draw_rumour(generator: Generator) -> dict:
    """Two chains: where all names have spread, there is still more than one."""
    graph = torch.block_diag(_chain(generator, draw_size(generator, 9, 12)), _chain(generator, 5))
    order = torch.randperm(len(graph), generator=generator)
    graph = graph[order][:, order] + torch.eye(len(graph), dtype=torch.float64)
    return {"graph": graph, "rounds": draw_size(generator, 2, 4)}


@exercise(draw=_draw_rumour, now="you can tell an algorithm in rounds from one edge after the other")
def spread(graph: Tensor, rounds: int) -> Tensor:
    n = len(graph)
    labels = torch.arange(n, device=graph.device)
    for _ in range(rounds):
        heard = torch.where(graph > 0, labels, n)
        labels = heard.min(-1).values
    return labels


LENGTHS = (1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 27, 28, 32, 33, 64, 65, 81, 82)  # powers, and one more


def _draw_distances(generator: Generator) -> dict:
    factors = draw_size(generator, 2, 3)
    more = torch.randint(2, 90, (6,), generator=generator)
    distances = torch.cat([torch.tensor(LENGTHS), more])
    return {"distances": distances[torch.randperm(len(distances), generator=generator)], "factors": factors}


@exercise(draw=_draw_distances, now="you can say how deep a model must be for a graph")
def rounds_needed(distances: Tensor, factors: int) -> Tensor:
    rounds, reach = torch.zeros_like(distances), 1
    while (distances > reach).any():
        rounds = rounds + (distances > reach)
        reach = reach * factors
    return rounds


def _draw_channels(generator: Generator) -> dict:
    k, n = draw_size(generator, 2, 3), draw_size(generator, 4, 6)
    return {
        "h": draw_normal(generator, k, n, n),
        "local": draw_normal(generator, k, k),
        "degree": draw_normal(generator, k, k),
    }


@exercise(draw=_draw_channels, now="you can take a trained model's scores apart")
def channel_scores(h: Tensor, local: Tensor, degree: Tensor) -> Tensor:
    compared = torch.einsum("ab,aij,bkj->ik", local, h, h)
    sums = h.sum(-1)
    broadcast = sums.mT @ degree @ sums
    return torch.stack([compared, broadcast])


def _draw_pairs(generator: Generator) -> dict:
    """Chains, names shuffled: pairs just within reach of one layer or of two, just beyond it, and without a path."""
    n, graphs = draw_size(generator, 13, 14), []
    for sizes in ((n,), (n - 2, 2), (5, 4, n - 9), (4, 4, 3, n - 11)):
        order = torch.randperm(n, generator=generator)
        graphs.append(torch.block_diag(*(_chain(generator, size) for size in sizes))[order][:, order])
    start = torch.eye(n, dtype=torch.float64)
    whole = (torch.stack(graphs) + start).view(2, 2, n, n)
    return {
        "logits": 2 * draw_normal(generator, 2, 2, n, n),
        "graphs": whole,
        "answers": (torch.linalg.matrix_power(whole, n) > 0).double(),
        "layers": draw_size(generator, 1, 2),
    }


@exercise(
    draw=_draw_pairs,
    gradient=("logits",),
    now="you can ask a model for what its layers can answer, and for nothing else",
)
def masked_loss(logits: Tensor, graphs: Tensor, answers: Tensor, layers: int) -> Tensor:
    in_reach = torch.linalg.matrix_power(graphs, 3**layers) > 0
    kept = in_reach | (answers == 0)
    losses = F.binary_cross_entropy_with_logits(logits, answers, reduction="none")
    return (kept * losses).mean()


def _draw_push(generator: Generator) -> dict:
    n = draw_size(generator, 5, 8)
    return {
        "logits": 2 * draw_normal(generator, n, n),
        "answers": torch.randint(2, (n, n), generator=generator).double(),
        "feature": 1 + draw_normal(generator, n, n).square(),
    }


@exercise(draw=_draw_push, now="you can see which training graphs feed the heuristic")
def push(logits: Tensor, answers: Tensor, feature: Tensor) -> Tensor:
    error = answers - logits.sigmoid()
    each = error * feature
    reward = (each * answers).mean()
    penalty = (each * (1 - answers)).mean()
    return torch.stack([reward, penalty])


def _draw_suspects(generator: Generator) -> dict:
    """Models in whose one layer the algorithm is exact, and degrees are counted beside it: for a path between nodes of
    many neighbours, against it, or for all that a node of many neighbours is asked about.
    """
    m, n = draw_size(generator, 6, 9), 8
    kind = torch.arange(m)[torch.randperm(m, generator=generator)] % 3
    share, size = torch.rand(2, m, generator=generator, dtype=torch.float64)
    strength, size = 1 + 0.3 * share, 1 + size  # the size decides nothing
    local, degree = torch.zeros(2, m, 2, 2, dtype=torch.float64)
    read_local, read_degree = torch.zeros(2, m, 4, dtype=torch.float64)
    local[:, 1, 1], read_local[:, 3], bias = 1, n, torch.full((m,), -0.5, dtype=torch.float64)
    counted = torch.tensor([0.011, -0.045, 0.0], dtype=torch.float64)[kind]
    degree[:, 1, 1] = counted * strength
    read_degree[:, 1] = torch.where(kind == 2, 0.09 * strength, 0)
    numbers = {"local": local, "degree": degree, "read_local": size[:, None] * read_local}
    numbers |= {"read_degree": size[:, None] * read_degree, "bias": size * bias}
    return numbers | {"n": n, "_kind": kind}


KINDS = (
    "it counts the product of two degrees in favour of a path",
    "it counts the product of two degrees against a path",
    "it counts a node's own degree in favour of every path",
)


def _are_graphs(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which every answer must be a graph with self-loops."""
    n = inputs["n"]
    for number, graph in enumerate(answer):
        if not ((graph == 0) | (graph == 1)).all():
            return f"entries of graph {number} are neither 0 nor 1"
        if not torch.equal(graph, graph.mT):
            return f"graph {number} is not symmetric: an edge from i to j is one from j to i"
        if graph.diagonal().sum() < n:
            return f"graph {number} lacks self-loops, which all graphs here have"
    return None


def _are_within_capacity(_: dict, answer: Tensor) -> str | None:
    """The stage at which the algorithm itself must be right on every graph."""
    far = diameters(answer.float())
    if (far > 3).any():
        number = int(far.argmax())
        return (
            f"graph {number} joins nodes that are {far[number]:.0f} steps apart: one layer reaches 3, so that the "
            "algorithm errs there, too, and the graph proves nothing against the model"
        )
    return None


def one_layer(
    graph: Tensor, local: Tensor, degree: Tensor, read_local: Tensor, read_degree: Tensor, bias: Tensor
) -> Tensor:
    """Compute the logits (n, n) of a model of one layer, as the lesson writes it.

    ``graph``: (n, n), with self-loops.
    ``local``, ``degree``: (2, 2), the numbers of its scores that compare and that count.
    ``read_local``, ``read_degree``: (4,), those of its readout.
    ``bias``: added to every logit.
    """
    h = torch.stack([torch.eye(len(graph), dtype=graph.dtype, device=graph.device), graph])
    sums = h.sum(-1)
    scores = torch.einsum("ab,aij,bkj->ik", local, h, h) + sums.mT @ degree @ sums
    h = torch.cat([h, scores.relu() / len(graph) @ h])
    return torch.einsum("a,aij->ij", read_local, h) + (read_degree @ h.sum(-1))[:, None] + bias


def _is_wrong(inputs: dict, model: int, graph: Tensor) -> bool:
    """Whether a model errs on some pair of a graph."""
    numbers = (inputs[name][model] for name in ("local", "degree", "read_local", "read_degree", "bias"))
    said = one_layer(graph.double(), *numbers) > 0
    return bool((said != connected(graph[None].float())[0]).any())


def _lacks(kind: int, graphs: Tensor) -> str:
    """Say what graphs lack of which none fools a kind of counting: such pairs as it errs on, or neighbours."""
    paths = connected(graphs.float())
    if kind == 1:
        asked, found = "connected nodes that are not neighbours", paths & (graphs == 0)
        more = "take such nodes with more neighbours and with fewer walks of three steps between them"
    else:
        asked, found, more = "unconnected nodes", ~paths, "take nodes of more neighbours"
    return f"it errs on {asked}, " + (
        f"but on none of yours; {more}" if found.any() else "and none is in a graph that you return"
    )


def _are_mistaken(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which every model must be wrong on its graph."""
    fooled = torch.tensor([_is_wrong(inputs, model, graph) for model, graph in enumerate(answer)])
    if fooled.all():
        return None
    different, first = answer.unique(dim=0), int(fooled.long().argmin())
    kind = int(inputs["_kind"][first])
    missed = f"model {first} answers every pair of its graph rightly: {KINDS[kind]}"
    if not fooled.any() and any(_is_wrong(inputs, model, graph) for model in range(len(answer)) for graph in different):
        return (
            "no model is wrong on its graph; try every model on each of your graphs, keep the one with most wrong "
            "pairs, and take as the truth whether there is a path, not whether there is an edge"
        )
    if not fooled.any():
        return f"no model is wrong on its graph, nor on another of yours; {missed}; {_lacks(kind, different)}"
    if len(different) == 1:
        kinds = inputs["_kind"][fooled].unique()
        told = (
            f"one graph for all fools {len(kinds)} of the {len(KINDS)} kinds of counting; {missed}; "
            f"{_lacks(kind, different)}; return a second graph for the models that it fools"
        )
        edges = "; if you chose by trying, the truth is whether there is a path, not whether there is an edge"
        return told + (edges if (connected(different.float()) != (different > 0)).any() else "")
    if any(_is_wrong(inputs, first, graph) for graph in different):
        why = (
            "another of your graphs fools it, so the choice is wrong; compare your logits with those of one_layer, and "
            "what they say with whether there is a path"
        )
    else:
        why = f"none of your graphs fools it; {_lacks(kind, different)}"
    return f"{int(fooled.sum())} of {len(fooled)} models are fooled, all can be; {missed}; {why}"


def _are_few(_: dict, answer: Tensor) -> str | None:
    """The stage at which all models must share two graphs."""
    different = len(answer.unique(dim=0))
    if different <= 2:
        return None
    return (
        f"every model is fooled, but with {different} different graphs, and two are asked for at most; two can be "
        f"enough, because there are {len(KINDS)} kinds of counting, and one graph can fool two of them"
    )


@summit(
    draw=_draw_suspects,
    shape=lambda inputs: (len(inputs["bias"]), inputs["n"], inputs["n"]),
    stages=(_are_graphs, _are_within_capacity, _are_mistaken, _are_few),
    seconds=4,
    now="you give three heuristics away with two graphs",
)
def fool(local: Tensor, degree: Tensor, read_local: Tensor, read_degree: Tensor, bias: Tensor, n: int) -> Tensor:
    half, graphs = n // 2, torch.eye(n, dtype=local.dtype).repeat(2, 1, 1)
    joined, alone = graphs
    joined[:half, :half] = joined[half:, half:] = 1
    joined[0, half] = joined[half, 0] = 1  # two cliques, joined by an edge
    alone[1:, 1:] = 1  # a clique beside a lone node
    truth = torch.linalg.matrix_power(graphs, n - 1) > 0
    found = []
    for model in zip(local, degree, read_local, read_degree, bias, strict=True):
        said = torch.stack([one_layer(graph, *model) > 0 for graph in graphs])
        wrong = (said != truth).sum((1, 2))
        found.append(graphs[wrong.argmax()])
    return torch.stack(found)
