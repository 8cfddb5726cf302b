"""A decoder that reads ``a + b =`` as four tokens and answers with a number: every number is a token, as in GPT-2 (Zhou
et al. 2024, arXiv:2406.03445). Numbers are read and written by one table of embeddings.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked


@dataclass(frozen=True)
class AdderConfig:
    """Operands are 0 .. numbers - 1, answers 0 .. 2 numbers - 2; ``frozen`` embeddings of numbers do not learn."""

    numbers: int
    width: int
    layers: int
    heads: int
    frozen: bool

    def __post_init__(self):
        at_least(numbers=(self.numbers, 1), width=(self.width, 1), layers=(self.layers, 1), heads=(self.heads, 1))

    @property
    def answers(self) -> int:
        """Return how many answers there are."""
        return 2 * self.numbers - 1


class Adder(Hooked):
    """Reads [a, +, b, =] and answers at the last; starts from number ``embeddings``, or from N(0, .02^2)."""

    def __init__(self, config: AdderConfig, embeddings: Float[Tensor, "answers width"] | None = None):
        super().__init__()
        self.config = config
        table = 0.02 * torch.randn(config.answers, config.width) if embeddings is None else embeddings.float()
        self.numbers = nn.Parameter(table.clone(), requires_grad=not config.frozen)
        self.signs = nn.Parameter(table.square().mean().sqrt() * torch.randn(2, config.width))
        self.decoder = Decoder(DecoderConfig(config.width, config.layers, config.heads, context=4))
        self.at = self.decoder.at

    def embed(self, operands: Int[Tensor, "batch two"]) -> Float[Tensor, "batch 4 width"]:
        """Return the four tokens' embeddings. Raises ValueError for an operand out of range."""
        check_range(operands=(operands, self.config.numbers))
        a, b = self.numbers[operands].unbind(1)
        plus, equals = self.signs.expand(len(operands), -1, -1).unbind(1)
        return torch.stack([a, plus, b, equals], dim=1)

    def forward(self, operands: Int[Tensor, "batch two"]) -> Float[Tensor, "batch answers"]:
        """Compute every answer's logit."""
        return self.decoder(self.embed(operands))[:, -1] @ self.numbers.mT
