"""What learns to follow an automaton, to hop along pointers, and to work in steps: tokens in, logits out.

The network between is the course's `Decoder` or its `LSTM`; what it may compute depends on its depth, and on whether it
reads what it has written (`generate`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.arguments import at_least, check_range
from companion.models.decoder import Decoder, DecoderConfig
from companion.models.door import Hooked
from companion.models.lstm import LSTM, LSTMConfig


@dataclass(frozen=True)
class StepModelConfig:
    """``vocabulary`` tokens, sequences up to ``context``; ``recurrent`` for the LSTM in the decoder's place, for which
    ``heads``, ``mlp`` and ``causal`` mean nothing.
    """

    vocabulary: int
    context: int
    width: int = 32
    layers: int = 1
    heads: int = 1
    mlp: int = 4
    causal: bool = True
    recurrent: bool = False

    def __post_init__(self):
        at_least(vocabulary=(self.vocabulary, 2), context=(self.context, 1))


class StepModel(Hooked):
    """Embeddings, the network, and a linear readout at every place."""

    def __init__(self, config: StepModelConfig):
        super().__init__()
        self.config = config
        if config.recurrent:
            self.network = LSTM(LSTMConfig(config.width, config.layers))
        else:
            shape = {"heads": config.heads, "context": config.context, "mlp": config.mlp, "causal": config.causal}
            self.network = Decoder(DecoderConfig(config.width, config.layers, **shape))
        self.at = self.network.at
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.unembed = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocabulary"]:
        """Logits at every place. Raises ValueError for an unknown token."""
        check_range(tokens=(tokens, self.config.vocabulary))
        return self.unembed(self.network(self.embed(tokens)))

    @torch.no_grad()
    def generate(self, tokens: Int[Tensor, "batch length"], steps: int) -> Int[Tensor, "batch steps"]:
        """The likeliest token after the sequence, written behind it and read again, ``steps`` times. Raises ValueError
        for no step.
        """
        at_least(steps=(steps, 1))
        length = tokens.shape[1]
        for _ in range(steps):
            tokens = torch.cat([tokens, self(tokens)[:, -1:].argmax(-1)], 1)
        return tokens[:, length:]
