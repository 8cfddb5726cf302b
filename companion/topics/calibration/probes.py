"""Who was seen how often, what a model gives to each candidate and into which bins that falls, and how sure it is."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range, positive


class Groups(NamedTuple):
    """Candidates by how often a corpus shows them, the unseen first.

    ``seen``: times; ``size``: how many candidates; ``true``: how many of them are facts; ``p``: the facts' probability
    together.
    """

    seen: Int[Tensor, "groups"]
    size: Int[Tensor, "groups"]
    true: Int[Tensor, "groups"]
    p: Float[Tensor, "groups"]


def by_times_seen(drawn: Int[Tensor, "n"], p: Float[Tensor, "facts"], candidates: int) -> Groups:
    """Group all candidates by how often they were drawn.

    ``drawn``: the facts of a corpus, by number.
    ``p``: how likely each fact is.
    ``candidates``: how many candidates there are, facts among them; the others are never drawn.

    Raises ValueError for an unknown fact, or fewer candidates than facts.
    """
    check_range(drawn=(drawn, len(p)))
    at_least(candidates=(candidates, len(p)))
    counts = torch.bincount(drawn, minlength=len(p))
    seen, group = torch.cat([counts, counts.new_zeros(1)]).unique(return_inverse=True)  # the unseen are there, always
    true = torch.bincount(group[:-1], minlength=len(seen))
    size = true.clone()
    size[0] += candidates - len(p)
    return Groups(seen, size, true, torch.zeros(len(seen), dtype=p.dtype, device=p.device).index_add(0, group[:-1], p))


def tempered(g: Float[Tensor, "groups"], size: Int[Tensor, "groups"], temperature: float) -> Float[Tensor, "groups"]:
    """Return the masses after g(y) -> g(y)^(1 / temperature), normalised. Raises ValueError unless that is positive."""
    positive(temperature=temperature)
    weight = (g / size).log() / temperature + size.double().log()  # a group without mass has weight -inf, and stays so
    return weight.softmax(0)


@torch.no_grad()
def log_probabilities(model: nn.Module) -> Float[Tensor, "who where what"]:
    """Compute what a `BiographyModel` gives to every candidate: the sum of its three logarithms, in float64."""
    words = model.config.words
    every = torch.arange(words, device=next(model.parameters()).device)
    said = model(torch.cartesian_prod(every, every)).double().unflatten(0, (words, words))
    return said[0, 0, 0][:, None, None] + said[:, 0, 1][:, :, None] + said[:, :, 2]


def equal_mass_bins(g: Float[Tensor, "candidates"], bins: int) -> Int[Tensor, "candidates"]:
    """Return the number of each candidate's bin: sorted by g, each bin has nearly the same mass of g.

    A network gives no two candidates the same number, so bins by value alone would hold one candidate each. Equal
    values stay in one bin. Raises ValueError for no bin.
    """
    at_least(bins=(bins, 1))
    value, which = g.unique(return_inverse=True)
    mass = torch.zeros_like(value).index_add(0, which, g).cumsum(0)
    return (mass * bins / mass[-1]).ceil().long().clamp(1, bins)[which] - 1


class Answers(NamedTuple):
    """Of each question, how sure the model says it is, and whether its likeliest answer is right."""

    stated: Float[Tensor, "questions"]
    right: Float[Tensor, "questions"]


@torch.no_grad()
def ask_what(model: nn.Module, facts: Int[Tensor, "questions 3"]) -> Answers:
    """Ask a `BiographyModel` for the last word of each fact, given the first two."""
    said = model(facts[:, :2])[:, 2].double().exp()
    stated, answer = said.max(1)
    return Answers(stated, (answer == facts[:, 2]).double())
