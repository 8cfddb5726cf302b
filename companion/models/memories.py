"""A memory that is trained: frozen random embeddings, and between them one matrix or one hidden layer."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class FactsConfig:
    """``facts`` tokens, each with an answer of its own, in ``d`` dimensions; ``width`` ReLU units between them, or 0 for one matrix."""

    facts: int
    d: int
    width: int = 0

    def __post_init__(self):
        for name, least in (("facts", 2), ("d", 1), ("width", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} = {getattr(self, name)!r}: must be at least {least}")


class Facts(nn.Module):
    """logits_k(z) = v_k . F(u_z), with F(u) = W u or W_1 relu(W_2 u). The embeddings u and v are random, N(0, 1/d), and not trained.

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
        unknown = z[(z < 0) | (z >= self.config.facts)]
        if len(unknown):
            raise ValueError(f"z: {int(unknown[0])} is out of range; must be 0 to {self.config.facts - 1}")
        return self.store(self.u[z]) @ self.v.mT
