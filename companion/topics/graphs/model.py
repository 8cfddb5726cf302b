"""What learns who is connected with whom: a disentangled transformer of a few numbers, and the course's `Decoder`.

The disentangled transformer (Ye, Fu, Jia, Sharan 2026, arXiv:2510.19753, section 4) appends what attention finds to
the stream, h <- [h, Attn(h)] with Attn(h) = ReLU(h W h^T) h / n, and starts from h = [I, A]. Data that look the same
under other names let every weight matrix be of the form

    W = L (x) I + D (x) J,      J the matrix of ones,

one number for each pair of blocks (their theorem 4.7, where L and D are A and B). I compares nodes by what they reach:
the algorithm's channel. J sees sums over rows alone, degrees: the heuristic's channel.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.arguments import at_least, positive
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked


@dataclass(frozen=True)
class ChannelsConfig:
    """``runs`` models are trained side by side, each with its own numbers and its own graphs.

    ``start`` is the largest number at the start; all are positive, as the theory has them.
    """

    layers: int = 1
    runs: int = 1
    start: float = 0.1

    def __post_init__(self):
        at_least(layers=(self.layers, 1), runs=(self.runs, 1))
        positive(start=self.start)


class Channels(nn.Module):
    """The disentangled transformer in its two channels: 17 numbers with one layer, for graphs of any size.

    ``local[l]`` and ``degree[l]`` are L and D of layer l, ``read_local`` and ``read_degree`` those of the readout; a
    bias is common to all pairs.
    """

    def __init__(self, config: ChannelsConfig):
        super().__init__()
        self.config = config
        blocks = [2 ** (layer + 1) for layer in range(config.layers + 1)]

        def draw(*shape):
            return nn.Parameter(config.start * torch.rand(config.runs, *shape))

        self.local = nn.ParameterList(draw(k, k) for k in blocks[:-1])
        self.degree = nn.ParameterList(draw(k, k) for k in blocks[:-1])
        self.read_local, self.read_degree = draw(blocks[-1]), draw(blocks[-1])
        self.bias = nn.Parameter(torch.zeros(config.runs))

    def scores(
        self, h: Float[Tensor, "batch runs blocks n n"], layer: int
    ) -> tuple[Float[Tensor, "batch runs n n"], Float[Tensor, "batch runs n n"]]:
        """Layer's scores h W h^T before the ReLU, in two parts: sum_ab L_ab h_a h_b^T, and the same of D with J."""
        local = torch.einsum("rab,...rbij->...raij", self.local[layer], h)
        sums = h.sum(-1)  # (batch, runs, blocks, n): J sees these
        weighted = torch.einsum("rab,...rbi->...rai", self.degree[layer], sums)
        wide = h.transpose(-3, -2).flatten(-2)  # (batch, runs, n, blocks * n)
        return wide @ local.transpose(-3, -2).flatten(-2).mT, sums.mT @ weighted

    def streams(self, graphs: Float[Tensor, "batch each n n"]) -> list[Float[Tensor, "batch runs _ n n"]]:
        """Return the stream's blocks before each layer and at the end, twice as many after each."""
        n = graphs.shape[-1]
        graphs = graphs.expand(-1, self.config.runs, -1, -1)
        streams = [torch.stack([torch.eye(n, device=graphs.device).expand_as(graphs), graphs], -3)]
        for layer in range(self.config.layers):
            local, degree = self.scores(streams[-1], layer)
            found = (local + degree).relu()[..., None, :, :] @ streams[-1] / n
            streams.append(torch.cat([streams[-1], found], -3))
        return streams

    def forward(self, graphs: Float[Tensor, "batch each n n"]) -> Float[Tensor, "batch runs n n"]:
        """Logits for every pair; where there are graphs for one run only, they serve all."""
        h = self.streams(graphs)[-1]
        read = torch.einsum("rk,...rkij->...rij", self.read_local, h)
        sums = torch.einsum("rk,...rki->...ri", self.read_degree, h.sum(-1))
        return read + sums[..., None] + self.bias[:, None, None]


@dataclass(frozen=True)
class GraphModelConfig:
    """Graphs on ``n`` nodes, read by a `Decoder` of this shape."""

    n: int
    width: int = 64
    layers: int = 1
    heads: int = 1
    mlp: int = 4
    attention: Literal["softmax", "relu"] = "softmax"

    def __post_init__(self):
        at_least(n=(self.n, 1))


class GraphModel(Hooked):
    """A node's row of the adjacency matrix goes in, a linear readout says whom it is connected with."""

    def __init__(self, config: GraphModelConfig):
        super().__init__()
        self.config = config
        shape = {"mlp": config.mlp, "causal": False, "positions": False, "attention": config.attention}
        self.decoder = Decoder(DecoderConfig(config.width, config.layers, config.heads, config.n, **shape))
        self.at = self.decoder.at
        self.read_in = nn.Linear(config.n, config.width)
        self.read_out = nn.Linear(config.width, config.n)

    def forward(self, graphs: Float[Tensor, "batch n n"]) -> Float[Tensor, "batch n n"]:
        """Logits: row i says whom node i is connected with."""
        return self.read_out(self.decoder(self.read_in(graphs)))
