"""Worlds of facts that nothing but a corpus can tell.

A statement that reads well is a candidate. A few candidates are facts, the others are false, and to somebody who has
not seen a fact it looks like any other candidate: the facts are arbitrary (Kalai, Vempala 2024, arXiv:2311.14648). The
false ones are counted and never listed, so that there may be 10^9 of them.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least


@dataclass(frozen=True, eq=False)
class FactWorld:
    """How likely each fact is to be written down, ``p``, and how many candidates there are, facts among them."""

    p: Float[Tensor, "facts"]
    candidates: int

    def __post_init__(self):
        at_least(candidates=(self.candidates, len(self.p) + 1))
        if (self.p < 0).any() or abs(self.p.sum().item() - 1) > 1e-9:
            found = f"the least is {self.p.min().item():.6g}, the sum {self.p.sum().item():.6g}"
            raise ValueError(f"p: must be at least 0 and sum to 1; {found}")

    @property
    def facts(self) -> int:
        """Return how many facts there are."""
        return len(self.p)

    @property
    def sparsity(self) -> float:
        """|Facts| / |Possible hallucinations|, which the theorem calls e^-s."""
        return self.facts / (self.candidates - self.facts)


def even_facts(facts: int, candidates: int) -> FactWorld:
    """Return a world whose facts are written down equally often. Raises as `zipf_facts` does."""
    return zipf_facts(facts, candidates, 0.0)


def zipf_facts(facts: int, candidates: int, exponent: float = 1.0) -> FactWorld:
    """Return a world whose r-th fact is written down in proportion to r^-exponent. Raises ValueError for no fact, or no
    false candidate.
    """
    at_least(facts=(facts, 1))
    weight = torch.arange(1, facts + 1, dtype=torch.float64) ** -exponent
    return FactWorld(weight / weight.sum(), candidates)


def corpus(world: FactWorld, n: int, *, generator: torch.Generator | int) -> Int[Tensor, "n"]:
    """Draw n documents independently, each the number of a fact, by the world's ``p``. Raises ValueError for n < 1."""
    at_least(n=(n, 1))
    generator = as_generator(generator)
    ladder = world.p.to(generator.device).cumsum(0)
    u = torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64)
    return torch.searchsorted(ladder, u * ladder[-1], right=True).clamp_max(world.facts - 1)


def biographies(facts: int, words: int, *, generator: torch.Generator | int) -> Int[Tensor, "facts 3"]:
    """Draw different triples: who, where, what, each one of ``words``. All ``words``^3 triples are candidates.

    Raises ValueError for a number below 1, or as many facts as candidates.
    """
    at_least(facts=(facts, 1), words=(words, 1))
    if facts >= words**3:
        raise ValueError(f"facts = {facts!r}: must be below words^3 = {words**3}")
    generator = as_generator(generator)
    number = torch.randperm(words**3, generator=generator, device=generator.device)[:facts]
    return torch.stack([number // words**2, number // words % words, number % words], 1)
