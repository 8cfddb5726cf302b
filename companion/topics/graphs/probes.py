"""What a model of connectivity gets right, by graph and by distance; and what its degree channel feels and does."""

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def exact_match(logits: Float[Tensor, "batch *runs n n"], answers: Bool[Tensor, "batch n n"]) -> Float[Tensor, "*runs"]:
    """Measure the share of graphs of which every pair is right, for each run."""
    answers = answers.view(len(answers), *[1] * (logits.ndim - 3), *answers.shape[1:])
    return ((logits > 0) == answers).flatten(-2).all(-1).double().mean(0)


def by_distance(said: Bool[Tensor, "batch n n"], distance: Float[Tensor, "batch n n"]) -> dict[float, float]:
    """Measure the share of pairs that are said to be connected, by their distance; infinite where there is no path."""
    return {step: said[distance == step].double().mean().item() for step in sorted(set(distance.flatten().tolist()))}


def without(model: nn.Module, channel: str, part: str | None = None) -> nn.Module:
    """Return a copy of a `companion.topics.graphs.model.Channels` whose numbers of one channel are 0.

    ``channel``: 'local', the algorithm's, or 'degree', the heuristic's.
    ``part``: 'scores', those of every layer, or 'readout'; both unless told.

    Raises ValueError for another channel or part.
    """
    if channel not in ("local", "degree"):
        raise ValueError(f"channel = {channel!r}: must be 'local' or 'degree'")
    if part not in (None, "scores", "readout"):
        raise ValueError(f"part = {part!r}: must be 'scores', 'readout' or None")
    model = copy.deepcopy(model)
    numbers = {"scores": list(getattr(model, channel)), "readout": [getattr(model, f"read_{channel}")]}
    for each in [*numbers["scores"], *numbers["readout"]] if part is None else numbers[part]:
        each.data.zero_()
    return model


def felt(model: nn.Module, graphs: Float[Tensor, "batch 1 n n"]) -> Float[Tensor, "batch runs n n"]:
    """Compute how every logit of a `Channels` of one layer moves with D's last number, that of products of degrees d_i
    d_j: its derivative, which is 0 beyond pairs of nodes whose score the ReLU cuts off.
    """
    with torch.no_grad():
        h = model.streams(graphs)[0]
        k, degrees = h.shape[-3], h[..., -1, :, :].sum(-1)
        passed = sum(model.scores(h, 0)) > 0
        products = passed * degrees[..., :, None] * degrees[..., None, :]
        found = products[..., None, :, :] @ h / graphs.shape[-1]
        read = torch.einsum("rk,...rkij->...rij", model.read_local[:, k:], found)
        return read + torch.einsum("rk,...rki->...ri", model.read_degree[:, k:], found.sum(-1))[..., None]


def draw_graph(
    ax: "Axes",
    graph: Float[Tensor, "n n"],
    colors: Sequence[str],
    order: Sequence[int] | None = None,
    marked: Bool[Tensor, "n n"] | None = None,
) -> None:
    """Draw the nodes on a circle, in the order given or by name, and a line for each edge.

    ``ax``: where it is drawn.
    ``graph``: the adjacency matrix.
    ``colors``: a node's colour.
    ``order``: the nodes, as they follow each other on the circle.
    ``marked``: pairs that get a dashed line, whether they are neighbours or not.
    """
    n = len(graph)
    angles = 2 * math.pi * torch.arange(n) / n
    at = torch.stack([angles.sin(), angles.cos()], 1)[torch.tensor(order or range(n)).argsort()]
    for i, j in graph.triu(1).nonzero().tolist():
        ax.plot(*at[[i, j]].T, color=".5", linewidth=1.2, zorder=1)
    for i, j in [] if marked is None else marked.triu(1).nonzero().tolist():
        ax.plot(*at[[i, j]].T, color="black", linewidth=1.2, linestyle=(0, (2, 3)), zorder=1)
    ax.scatter(*at.T, c=list(colors), s=90, zorder=2, edgecolors="black", linewidths=0.6)
    ax.set_aspect("equal")
    ax.axis("off")
