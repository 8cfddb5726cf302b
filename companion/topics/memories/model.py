"""A memory that is trained: frozen random embeddings, and between them one matrix or one hidden layer."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range


@dataclass(frozen=True)
class FactsConfig:
    """``facts`` tokens, each with an answer of its own, in ``d`` dimensions; ``width`` ReLU units between them, or 0
    for one matrix.
    """

    facts: int
    d: int
    width: int = 0

    def __post_init__(self):
        at_least(facts=(self.facts, 2), d=(self.d, 1), width=(self.width, 0))


class Facts(nn.Module):
    """logits_k(z) = v_k . F(u_z), with F(u) = W u or W_1 relu(W_2 u). The embeddings u and v are random, N(0, 1/d), and
    not trained.

    The answer to z is z: as all v are random, any other one-to-one answer is the same problem.
    """

    def __init__(self, config: FactsConfig):
        super().__init__()
        self.config = config
        d, width = config.d, config.width
        self.register_buffer("u", torch.randn(config.facts, d) / d**0.5)
        self.register_buffer("v", torch.randn(config.facts, d) / d**0.5)
        if width:
            self.store = nn.Sequential(nn.Linear(d, width, bias=False), nn.ReLU(), nn.Linear(width, d, bias=False))
            nn.init.normal_(self.store[0].weight, std=1.0)  # embeddings have length 1: hidden units start at size 1
        else:
            self.store = nn.Linear(d, d, bias=False)
            nn.init.zeros_(self.store.weight)

    def forward(self, z: Int[Tensor, "batch"]) -> Float[Tensor, "batch facts"]:
        """Logits of every answer. Raises ValueError for a token that is out of range."""
        check_range(z=(z, self.config.facts))
        return self.store(self.u[z]) @ self.v.mT
