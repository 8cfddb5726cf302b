"""What learns in the first lesson: a decoder over tokens; and heads of attention beside MLPs on bits, many training
runs in one tensor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked


@dataclass(frozen=True)
class TokenModelConfig:
    """A `Decoder` of ``layers`` of attention alone over ``vocabulary`` tokens."""

    vocabulary: int
    context: int
    width: int
    layers: int
    heads: int

    def __post_init__(self):
        at_least(vocabulary=(self.vocabulary, 2))


class TokenModel(Hooked):
    """Token embeddings, attention layers without MLPs, and a linear map to the next token's logits."""

    def __init__(self, config: TokenModelConfig):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.decoder = Decoder(DecoderConfig(config.width, config.layers, config.heads, config.context, mlp=0))
        self.at = self.decoder.at
        self.unembed = nn.Linear(config.width, config.vocabulary, bias=False)
        nn.init.normal_(self.embed.weight, std=config.width**-0.5)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocabulary"]:
        """Logits for the token after each position."""
        return self.unembed(self.decoder(self.embed(tokens)))


class BitHeads(nn.Module):
    """``runs`` independent heads of attention, each a classifier of ``length`` bits.

    Every pair of position and bit has a score s and a value u (a query and a linear readout of learned embeddings come
    to that): logit = sum_t softmax_t(s[t, x_t]) u[t, x_t] + bias. There is no residual stream, and so no names to hook.
    """

    def __init__(self, runs: int, length: int):
        super().__init__()
        self.score = nn.Parameter(0.02 * torch.randn(runs, 2, length))
        self.value = nn.Parameter(0.02 * torch.randn(runs, 2, length))
        self.bias = nn.Parameter(torch.zeros(runs, 1))

    def forward(self, xs: Float[Tensor, "runs batch length"]) -> Float[Tensor, "runs batch"]:
        """Logits that the label is 1, of every run on its own batch of bits (+1 and -1)."""
        return self.in_groups([self.seen(xs)])[0]

    @staticmethod
    def seen(xs: Float[Tensor, "runs batch length"]) -> Float[Tensor, "runs batch pairs"]:
        """Return what `in_groups` reads: 1 for each of the 2 T pairs of bit and position that occurs, 0 for the
        others.
        """
        return torch.cat([xs > 0, xs <= 0], -1).to(xs.dtype)

    def in_groups(self, batches: Sequence[Float[Tensor, "group _ pairs"]]) -> list[Float[Tensor, "group _"]]:
        """Return the logits of the runs in as many equal groups as there are ``batches``, each what is `seen` of some
        bits; they may differ in size.

        A bit has two values, so a position needs two exponentials for all samples, and a sum over positions is a
        matrix product.
        """
        weight = (self.score - self.score.amax((1, 2), keepdim=True)).exp()
        sums = torch.stack([weight * self.value, weight], -1).flatten(1, 2)  # (runs, 2 T, 2)
        logits = []
        parameters = (each.chunk(len(batches)) for each in (sums, self.bias))
        for seen, of_group, bias in zip(batches, *parameters, strict=True):
            numerator, denominator = (seen @ of_group).unbind(-1)
            logits.append(numerator / denominator + bias)
        return logits


class BitMLPs(nn.Module):
    """``runs`` independent ReLU networks with one hidden layer of ``hidden`` units, each a classifier of ``length``
    bits.
    """

    def __init__(self, runs: int, length: int, hidden: int = 64):
        super().__init__()
        self.first = nn.Parameter(torch.randn(runs, length, hidden) * (2 / length) ** 0.5)
        self.shift = nn.Parameter(torch.zeros(runs, 1, hidden))
        self.second = nn.Parameter(torch.randn(runs, hidden, 1) * hidden**-0.5)
        self.bias = nn.Parameter(torch.zeros(runs, 1))

    def forward(self, xs: Float[Tensor, "runs batch length"]) -> Float[Tensor, "runs batch"]:
        """Logits that the label is 1, of every run on a batch of its own: w_2 . relu(W_1 x + b_1) + b_2."""
        return self.in_groups([self.seen(xs)])[0]

    @staticmethod
    def seen(xs: Float[Tensor, "runs batch length"]) -> Float[Tensor, "runs batch length"]:
        """Return what `in_groups` reads: the bits as they are."""
        return xs

    def in_groups(self, batches: Sequence[Float[Tensor, "group _ length"]]) -> list[Float[Tensor, "group _"]]:
        """Return the logits of the runs in as many equal groups as there are ``batches``, each what is `seen` of some
        bits; they may differ in size.

        The parameters are divided once for all groups: a slice for each would fill a gradient of the whole with zeros
        as often. And the hidden layers, which take most of the time, are written once and changed in place.
        """
        parameters = (each.chunk(len(batches)) for each in (self.first, self.shift, self.second, self.bias))
        logits = []
        for xs, first, shift, second, bias in zip(batches, *parameters, strict=True):
            hidden = torch.baddbmm(shift, xs, first).relu_()
            logits.append(torch.baddbmm(bias[:, None], hidden, second)[..., 0])
        return logits
