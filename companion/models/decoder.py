"""The one transformer of the course: a stack of attention and MLP blocks around a residual stream.

Vaswani et al. (2017), arXiv:1706.03762, with the norm in front of each block (Xiong et al. 2020, arXiv:2002.04745). It maps
vectors to vectors; what turns a topic's data into vectors, and vectors into answers, is the topic's own model beside this file.

Where it departs from GPT-2: weights start at standard deviation 1/sqrt(fan-in) rather than 0.02, because at these widths it is what
decides whether a model trains in a minute (lesson 02 measures it); linear maps have no biases.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class DecoderConfig:
    """The switches of a `Decoder`. ``mlp`` is the hidden width as a multiple of ``width``; 0 leaves attention alone."""

    width: int
    layers: int
    heads: int
    context: int
    causal: bool = True
    attention: Literal["softmax", "linear", "delta"] = "softmax"
    norm: bool = True
    mlp: int = 4
    positions: bool = True

    def __post_init__(self):
        for name in ("width", "layers", "heads", "context"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)!r}: must be at least 1")
        if self.mlp < 0:
            raise ValueError(f"mlp = {self.mlp!r}: must be at least 0")
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads}: must divide width = {self.width}")
        if self.attention not in ("softmax", "linear", "delta"):
            raise ValueError(f"attention = {self.attention!r}: must be 'softmax', 'linear' or 'delta'")
        if self.attention == "delta" and not self.causal:
            raise ValueError(f"causal = {self.causal!r}: the delta rule writes token by token, so it must be True")


def delta_rule(
    q: Float[Tensor, "*heads length h"],
    k: Float[Tensor, "*heads length h"],
    v: Float[Tensor, "*heads length h"],
    strength: Float[Tensor, "*heads length 1"],
) -> Float[Tensor, "*heads length h"]:
    """S_t q_t for S_t = S_{t-1} + b_t (v_t - S_{t-1} k_t) k_t^T, S = 0 before the first token, for all t at once.

    What is written at t, u_t = b_t (v_t - sum_{j<t} (k_j . k_t) u_j), solves a triangular system; S_t is sum_{j<=t} u_j k_j^T
    (Yang et al. 2024, arXiv:2406.06484, section 3).
    """
    system = (strength * (k @ k.mT)).tril(-1)  # the 1 on the diagonal is understood
    written = torch.linalg.solve_triangular(system, strength * v, upper=False, unitriangular=True)
    return (q @ k.mT).tril() @ written


class Attention(nn.Module):
    """Multi-head self-attention. For each head, with queries Q, keys K and values V of the h = width / heads channels:

    softmax:  softmax(Q K^T / sqrt(h)) V        linear:  (Q K^T / length) V

    ``causal`` keeps position i from seeing j > i. The third kind keeps a matrix S of h x h numbers for each head, and no past tokens:

    delta:    S <- S + b (v - S k) k^T,  then the answer is S q        (keys of length 1, writing strength b = sigmoid(B x))

    (Schlag, Irie, Schmidhuber 2021, arXiv:2102.11174). A write changes what S answers for its own key and nothing orthogonal to it.
    """

    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.config = config
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        if config.attention == "delta":
            self.strength = nn.Linear(config.width, config.heads, bias=False)

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.config.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, head, length, h)
        if self.config.attention == "softmax":
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.config.causal)
        elif self.config.attention == "delta":
            mixed = delta_rule(q, F.normalize(k, dim=-1), v, self.strength(x).sigmoid().mT[..., None])
        else:
            scores = q @ k.mT / length
            mixed = (scores.tril() if self.config.causal else scores) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)): two readings of the residual stream, two additions to it."""

    def __init__(self, config: DecoderConfig):
        super().__init__()
        width, hidden = config.width, config.mlp * config.width
        self.norm1 = nn.LayerNorm(width) if config.norm else nn.Identity()
        self.attention = Attention(config)
        self.mlp = None
        if hidden:
            norm2 = nn.LayerNorm(width) if config.norm else nn.Identity()
            self.mlp = nn.Sequential(norm2, nn.Linear(width, hidden, bias=False), nn.GELU(), nn.Linear(hidden, width, bias=False))

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        x = x + self.attention(self.norm1(x))
        return x if self.mlp is None else x + self.mlp(x)


class Decoder(nn.Module):
    """Blocks around a residual stream. ``forward`` gives the last stream, normed; ``streams`` gives every one of them."""

    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.config = config
        self.positions = nn.Parameter(torch.randn(config.context, config.width) / config.width**0.5) if config.positions else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.norm else nn.Identity()
        for block in self.blocks:
            outputs = [block.attention.out] + ([block.mlp[-1]] if block.mlp is not None else [])
            for module in block.modules():
                if isinstance(module, nn.Linear):
                    nn.init.normal_(module.weight, std=module.in_features**-0.5)
            for module in outputs:  # 2 L additions of this size keep the stream's variance of order 1 at the end
                module.weight.data /= (2 * config.layers) ** 0.5

    def streams(self, x: Float[Tensor, "batch length width"]) -> list[Float[Tensor, "batch length width"]]:
        """The residual stream before the first block and after each block: layers + 1 tensors.

        Raises ValueError when ``x`` is longer than the context or of another width.
        """
        batch, length, width = x.shape
        if length > self.config.context or width != self.config.width:
            raise ValueError(f"x of shape {tuple(x.shape)}: length at most {self.config.context}, width {self.config.width}")
        if self.positions is not None:
            x = x + self.positions[:length]
        streams = [x]
        for block in self.blocks:
            streams.append(block(streams[-1]))
        return streams

    def memory(self, length: int) -> int:
        """How many numbers the past is kept in after ``length`` positions, causal: all keys and values, or a matrix for each head."""
        width, heads = self.config.width, self.config.heads
        each = 2 * width * length if self.config.attention == "softmax" else width * width // heads
        return self.config.layers * each

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """The last residual stream, normed."""
        return self.norm(self.streams(x)[-1])
