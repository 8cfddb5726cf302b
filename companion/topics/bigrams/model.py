"""What learns the trigger-bigram task: a `Decoder` with one head a layer between frozen random embeddings.

Bietti, Cabannes, Bouchacourt, Jegou, Bottou (2023), arXiv:2306.00802, section 4. In their simplified transformer almost
everything stays random; what is left to train are three matrices, and each of them can be read as an associative
memory.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked


@dataclass(frozen=True)
class BigramModelConfig:
    """``trains``: 'memories' (W_K of every layer, the last W_O alone, as published for two layers) or 'everything'."""

    vocabulary: int
    context: int
    width: int
    layers: int = 2
    mlp: int = 0
    trains: Literal["memories", "everything"] = "memories"

    def __post_init__(self):
        at_least(vocabulary=(self.vocabulary, 2), context=(self.context, 2))
        if self.trains not in ("memories", "everything"):
            raise ValueError(f"trains = {self.trains!r}: must be 'memories' or 'everything'")


class BigramModel(Hooked):
    """x_t = E[z_t] + P_t, one head a layer that adds to it, and logits U x_t. At the start E, P ~ N(0, 1) and U ~ N(0,
    1/d).

    With ``trains='memories'`` these three are frozen, W_Q is the identity, and W_V and the earlier W_O are frozen at
    N(0, 1/d): a key s has for a query t the score x_t^T W_K x_s / sqrt(d), and what the head adds is W_O W_V sum_s a_ts
    x_s. The trained matrices, W_K of each layer and the last W_O, start at 0 (our choice): at first the second W_K gets
    no gradient, and the first one only through the frozen random maps. There is no LayerNorm.
    """

    def __init__(self, config: BigramModelConfig):
        super().__init__()
        self.config = config
        d = config.width
        self.decoder = Decoder(
            DecoderConfig(d, config.layers, heads=1, context=config.context, norm=False, mlp=config.mlp)
        )
        self.at = self.decoder.at
        self.embed = nn.Embedding(config.vocabulary, d)
        self.unembed = nn.Linear(d, config.vocabulary, bias=False)
        nn.init.normal_(self.decoder.positions)
        nn.init.normal_(self.unembed.weight, std=d**-0.5)
        if config.trains == "memories":
            for frozen in (self.embed.weight, self.decoder.positions, self.unembed.weight):
                frozen.requires_grad_(False)
            *earlier, last = (block.attention for block in self.decoder.blocks)
            for attention in (*earlier, last):
                attention.qkv.weight.data[:d] = torch.eye(d)
                attention.qkv.weight.data[d : 2 * d] = 0
                attention.qkv.weight.register_hook(_keys_alone)
                nn.init.normal_(attention.out.weight, std=d**-0.5)
            for attention in earlier:
                attention.out.weight.requires_grad_(False)
            nn.init.zeros_(last.out.weight)

    def keys(self, layer: int) -> Float[Tensor, "width width"]:
        """W_K of a layer, a view: what is written into it, the model reads."""
        d = self.config.width
        return self.decoder.blocks[layer].attention.qkv.weight.data[d : 2 * d]

    def values(self, layer: int) -> Float[Tensor, "width width"]:
        """W_V of a layer, a view."""
        return self.decoder.blocks[layer].attention.qkv.weight.data[2 * self.config.width :]

    def outputs(self, layer: int) -> Float[Tensor, "width width"]:
        """W_O of a layer, a view."""
        return self.decoder.blocks[layer].attention.out.weight.data

    def stream(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length width"]:
        """Return what the decoder reads, but for the positions, which it adds. Raises ValueError for an unknown token,
        or length < 2.
        """
        if tokens.shape[1] < 2:
            raise ValueError(f"tokens of shape {tuple(tokens.shape)}: length must be at least 2")
        check_range(tokens=(tokens, self.config.vocabulary))
        return self.embed(tokens)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocabulary"]:
        """Logits for the token after each position."""
        return self.unembed(self.decoder(self.stream(tokens)))


def _keys_alone(gradient: Tensor) -> Tensor:
    """Queries, keys and values lie in one matrix; only the keys' third is trained."""
    third = len(gradient) // 3
    masked = torch.zeros_like(gradient)
    masked[third : 2 * third] = gradient[third : 2 * third]
    return masked
