"""What learns synthetic biographies: the course's `Decoder`, which says of each place in a triple which word comes."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked


@dataclass(frozen=True)
class BiographyModelConfig:
    """``words`` for each of three places; the decoder's width."""

    words: int
    width: int = 48

    def __post_init__(self):
        at_least(words=(self.words, 2))


class BiographyModel(Hooked):
    """log p(who), log p(where | who), log p(what | who, where), each over the words of its own place.

    Only words of the right place are offered, so that whatever it says is a candidate: a biography that reads well.
    """

    def __init__(self, config: BiographyModelConfig):
        super().__init__()
        self.config = config
        self.decoder = Decoder(DecoderConfig(config.width, layers=1, heads=4, context=3))
        self.at = self.decoder.at
        self.embed = nn.Embedding(1 + 2 * config.words, config.width)  # a start, who, where; nothing follows what
        self.unembed = nn.Parameter(torch.randn(3, config.words, config.width) / (3 * config.width**0.5))

    def forward(self, known: Int[Tensor, "batch known"]) -> Float[Tensor, "batch known_and_one words"]:
        """Logarithms of probabilities for the first place, and for each that follows a known word.

        Raises ValueError for an unknown word.
        """
        words = self.config.words
        check_range(known=(known, words))
        place = torch.arange(known.shape[1], device=known.device)
        tokens = torch.cat([known.new_zeros(len(known), 1), 1 + words * place + known], 1)
        stream = self.decoder(self.embed(tokens))
        return torch.einsum("btw,tvw->btv", stream, self.unembed[: tokens.shape[1]]).log_softmax(-1)
