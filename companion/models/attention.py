"""What learns in the first lesson: a decoder over tokens; and heads of attention beside MLPs on bits, many training
runs in one tensor.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.arguments import at_least
from companion.models.decoder import Decoder, DecoderConfig
from companion.models.door import Hooked


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

    def forward(self, xs: Float[Tensor, "runs batch length"], runs: slice = slice(None)) -> Float[Tensor, "runs batch"]:
        """Logits that the label is 1, of the ``runs`` asked for, each on its own batch of bits (+1 and -1).

        A bit has two values, so a position needs two exponentials for all samples, and a sum over positions is a
        matrix product.
        """
        score, value = self.score[runs], self.value[runs]
        weight = (score - score.amax((1, 2), keepdim=True)).exp()
        seen = torch.cat([xs > 0, xs <= 0], -1).to(xs.dtype)  # which of the 2 T pairs of bit and position occur
        numerator, denominator = (seen @ torch.stack([weight * value, weight], -1).flatten(1, 2)).unbind(-1)
        return numerator / denominator + self.bias[runs]


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

    def forward(self, xs: Float[Tensor, "runs batch length"], runs: slice = slice(None)) -> Float[Tensor, "runs batch"]:
        """Logits that the label is 1, of the ``runs`` asked for, on a batch each: w_2 . relu(W_1 x + b_1) + b_2."""
        hidden = (xs @ self.first[runs] + self.shift[runs]).relu()
        return (hidden @ self.second[runs])[..., 0] + self.bias[runs]
