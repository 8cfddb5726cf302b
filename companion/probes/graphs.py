"""What a model of connectivity gets right, by graph and by distance; and what its degree channel feels and does."""

import copy

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def exact_match(logits: Float[Tensor, "batch *runs n n"], answers: Bool[Tensor, "batch n n"]) -> Float[Tensor, "*runs"]:
    """The share of graphs of which every pair is right, for each run."""
    answers = answers.view(len(answers), *[1] * (logits.ndim - 3), *answers.shape[1:])
    return ((logits > 0) == answers).flatten(-2).all(-1).double().mean(0)


def by_distance(said: Bool[Tensor, "batch n n"], distance: Float[Tensor, "batch n n"]) -> dict[float, float]:
    """The share of pairs that are said to be connected, by their distance; infinite where there is no path."""
    return {step: said[distance == step].double().mean().item() for step in sorted(set(distance.flatten().tolist()))}


def without_degrees(model: nn.Module, *, readout: bool = True) -> nn.Module:
    """A copy of `companion.models.graphs.Channels` whose degree channel is removed: B = 0 in every layer, and, with
    ``readout``, there, too.
    """
    model = copy.deepcopy(model)
    for numbers in [*model.degree, *[model.read_degree] * readout]:
        numbers.data.zero_()
    return model


def felt(model: nn.Module, graphs: Float[Tensor, "batch 1 n n"]) -> Float[Tensor, "batch runs n n"]:
    """How every logit of a `Channels` of one layer moves with B's last number, that of products of degrees d_i d_j: its
    derivative, which is 0 beyond pairs of nodes whose score the ReLU cuts off.
    """
    with torch.no_grad():
        h = model.streams(graphs)[0]
        k, degrees = h.shape[-3], h[..., -1, :, :].sum(-1)
        passed = sum(model.scores(h, 0)) > 0
        products = passed * degrees[..., :, None] * degrees[..., None, :]
        found = products[..., None, :, :] @ h / graphs.shape[-1]
        read = torch.einsum("rk,...rkij->...rij", model.read_local[:, k:], found)
        return read + torch.einsum("rk,...rki->...ri", model.read_degree[:, k:], found.sum(-1))[..., None]
