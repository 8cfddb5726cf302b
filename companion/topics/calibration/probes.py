"""Who was seen how often, and what a model gives to each candidate and into which bins that falls."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range, positive

BINS = 2000  # the last one takes all that is less likely


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


class Bins(NamedTuple):
    """What a model gives to all candidates, by how likely it finds them, and what the world writes of them.

    ``g``, ``p``: the masses in each bin; ``log_g``: log g of each fact.
    """

    g: Float[Tensor, "bins"]
    p: Float[Tensor, "bins"]
    log_g: Float[Tensor, "facts"]


@torch.no_grad()
def by_probability(
    model: nn.Module, facts: Int[Tensor, "facts 3"], p: Float[Tensor, "facts"], *, width: float = 0.05
) -> Bins:
    """Put every candidate of a `BiographyModel` into the bin of log g, ``width`` nats wide, that it falls into.

    A network gives no two candidates the same number, so bins of equal value would hold one candidate each.

    ``model``: whose probabilities are read, all ``words``^3 of them, one "who" at a time.
    ``facts``: the true ones.
    ``p``: how likely each fact is to be written.
    ``width``: of a bin, so that its members are equally likely up to that factor.

    Raises ValueError for a width that is not positive.
    """
    positive(width=width)
    every = torch.arange(model.config.words, device=p.device)
    g, log_g = torch.zeros(BINS, dtype=p.dtype, device=p.device), torch.empty_like(p)
    for who in every:
        said = model(torch.stack([who.expand_as(every), every], 1))
        here = said[0, 0, who] + said[0, 1][:, None] + said[:, 2]  # (where, what)
        g += _number(here.flatten(), width).bincount(here.flatten().exp(), minlength=BINS)
        mine = facts[:, 0] == who
        log_g[mine] = here[facts[mine, 1], facts[mine, 2]].to(p)
    return Bins(g, torch.zeros_like(g).index_add(0, _number(log_g, width), p), log_g)


def _number(log_g: Float[Tensor, "candidates"], width: float) -> Int[Tensor, "candidates"]:
    return (-log_g / width).long().clamp(0, BINS - 1)
