"""What learns to follow an automaton, to hop along pointers, and to work in steps: tokens in, logits out.

The network between is the course's `Decoder` or its `LSTM`; what it may compute depends on its depth, and on whether it
reads what it has written (`generate`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked
from companion.core.lstm import LSTM, LSTMConfig


@dataclass(frozen=True)
class StepModelConfig:
    """``vocabulary`` tokens, sequences up to ``context``; ``recurrent`` for the LSTM in the decoder's place, for which
    ``heads``, ``mlp`` and ``causal`` mean nothing. With ``own_places`` positions are as large as tokens' embeddings,
    which lets attention find a place sooner, and a sequence may begin at any of them.
    """

    vocabulary: int
    context: int
    width: int = 32
    layers: int = 1
    heads: int = 1
    mlp: int = 4
    causal: bool = True
    recurrent: bool = False
    own_places: bool = False

    def __post_init__(self):
        at_least(vocabulary=(self.vocabulary, 2), context=(self.context, 1))
        if self.recurrent and self.own_places:
            raise ValueError(f"own_places = {self.own_places}: an LSTM has no positions, so it must be False")


class StepModel(Hooked):
    """Embeddings, the network, and a linear readout at every place."""

    def __init__(self, config: StepModelConfig):
        super().__init__()
        self.config = config
        if config.recurrent:
            self.network = LSTM(LSTMConfig(config.width, config.layers))
        else:
            shape = {"heads": config.heads, "context": config.context, "mlp": config.mlp, "causal": config.causal}
            shape["positions"] = not config.own_places
            self.network = Decoder(DecoderConfig(config.width, config.layers, **shape))
        self.at = self.network.at
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.unembed = nn.Linear(config.width, config.vocabulary)
        if config.own_places:
            self.places = nn.Parameter(torch.randn(config.context, config.width))

    def forward(
        self, tokens: Int[Tensor, "batch length"], start: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Logits at every place.

        ``start`` is the place at which each sequence begins, the first if it is not given; only a model with
        ``own_places`` takes one. Raises ValueError for an unknown token, or a place beyond the last.
        """
        check_range(tokens=(tokens, self.config.vocabulary))
        x = self.embed(tokens)
        if self.config.own_places:
            first = torch.zeros_like(tokens[:, 0]) if start is None else start
            at = first[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
            check_range(places=(at, self.config.context))
            x = x + self.places[at]
        elif start is not None:
            raise ValueError("start: must be None for a model whose own_places is False")
        return self.unembed(self.network(x))

    @torch.no_grad()
    def generate(self, tokens: Int[Tensor, "batch length"], steps: int) -> Int[Tensor, "batch steps"]:
        """Return the likeliest token after the sequence, written behind it and read again, ``steps`` times. Raises
        ValueError for no step.
        """
        at_least(steps=(steps, 1))
        length = tokens.shape[1]
        for _ in range(steps):
            tokens = torch.cat([tokens, self(tokens)[:, -1:].argmax(-1)], 1)
        return tokens[:, length:]
