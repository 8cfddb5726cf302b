"""The one transformer of the course: a stack of attention and MLP blocks around a residual stream.

Vaswani et al. (2017), arXiv:1706.03762, with the norm in front of each block (Xiong et al. 2020, arXiv:2002.04745). It
maps vectors to vectors; what turns a topic's data into vectors, and vectors into answers, is the topic's own model
beside this file.

What it computes on the way has names, by which `Decoder.run_with_cache` hands it out and `Decoder.hooks` changes it:

    hook_embed                    the input, with positions           (batch, length, width), as all but these:
    blocks.0.hook_resid_pre       the stream that block 0 reads
    blocks.0.attn.hook_q, _k, _v  queries, keys and values            (batch, head, length, h); an LSTM has none
    blocks.0.attn.hook_pattern    who attends to whom                 (batch, head, query, key); nor has the delta rule
    blocks.0.attn.hook_z          what each head found                (batch, head, length, h); of an LSTM, its hidden
                                                                      states (batch, length, hidden)
    blocks.0.hook_attn_out        what attention adds to the stream
    blocks.0.hook_resid_mid       the stream between attention and MLP
    blocks.0.mlp.hook_post        the hidden units, after GELU        (batch, length, mlp * width)
    blocks.0.hook_mlp_out         what the MLP adds to the stream
    blocks.0.hook_resid_post      the stream after block 0
    ln_final.hook_normalized      the output

and, computed only where they are asked for, what cuts one wire between two heads:

    blocks.0.hook_q_input, hook_k_input, hook_v_input
                                  the stream before the norm, as the queries, keys and values of each head read it:
                                  (batch, head, length, width); what fades and what is erased reads on as it did
    blocks.0.attn.hook_result     what each head adds to the stream   (batch, head, length, width); an LSTM has neither

Where it departs from GPT-2: weights start at standard deviation 1/sqrt(fan-in) rather than 0.02, because at these
widths it is what decides whether a model trains in a minute (lesson 02 measures it); linear maps have no biases.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.arguments import at_least
from companion.core.hooks import Hooked, HookPoints

AttentionKind = Literal["softmax", "relu", "linear", "gated", "delta", "lstm"]
HEAD_INPUTS = {kind: f"hook_{kind}_input" for kind in "qkv"}


@dataclass(frozen=True)
class DecoderConfig:
    """The switches of a `Decoder`. ``mlp`` is the hidden width as a multiple of ``width``; 0 leaves attention alone."""

    width: int
    layers: int
    heads: int
    context: int
    causal: bool = True
    attention: AttentionKind = "softmax"
    norm: bool = True
    mlp: float = 4
    positions: bool = True

    def __post_init__(self):
        at_least(width=(self.width, 1), layers=(self.layers, 1), heads=(self.heads, 1), context=(self.context, 1))
        at_least(mlp=(self.mlp, 0))
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads}: must divide width = {self.width}")
        if self.attention not in get_args(AttentionKind):
            raise ValueError(f"attention = {self.attention!r}: must be one of {', '.join(get_args(AttentionKind))}")
        if self.attention in ("gated", "delta", "lstm") and not self.causal:
            raise ValueError(f"causal = {self.causal!r}: {self.attention} reads token by token, so it must be True")
        if self.attention == "lstm" and self.memory % 2:
            raise ValueError(
                f"heads = {self.heads}: width^2 / heads = {self.memory}; must be even, as an LSTM keeps two vectors"
            )

    @property
    def memory(self) -> int:
        """Count the numbers of state of one layer whose state does not grow: a matrix for each head, or as many in an
        LSTM.
        """
        return self.width**2 // self.heads


def hook_names(config: DecoderConfig) -> list[str]:
    """Return the names that `Decoder.run_with_cache` and `Decoder.hooks` know, in the order of the computation."""
    looks = [] if config.attention == "lstm" else ["attn.hook_q", "attn.hook_k", "attn.hook_v"]
    pattern = [] if config.attention in ("delta", "lstm") else ["attn.hook_pattern"]
    attention = [*looks, *pattern, "attn.hook_z", "hook_attn_out"]
    mlp = ["hook_resid_mid", "mlp.hook_post", "hook_mlp_out"] if config.mlp else []
    block = ["hook_resid_pre", *attention, *mlp, "hook_resid_post"]
    blocks = [f"blocks.{layer}.{name}" for layer in range(config.layers) for name in block]
    return ["hook_embed", *blocks, "ln_final.hook_normalized"]


def names_on_request(config: DecoderConfig) -> list[str]:
    """Return the names that are computed only where they are asked for."""
    names = [] if config.attention == "lstm" else [*HEAD_INPUTS.values(), "attn.hook_result"]
    return [f"blocks.{layer}.{name}" for layer in range(config.layers) for name in names]


def delta_rule(
    q: Float[Tensor, "*heads length h"],
    k: Float[Tensor, "*heads length h"],
    v: Float[Tensor, "*heads length h"],
    strength: Float[Tensor, "*heads length 1"],
) -> Float[Tensor, "*heads length h"]:
    """Return S_t q_t for S_t = S_{t-1} + b_t (v_t - S_{t-1} k_t) k_t^T, S = 0 before the first token, for all t at
    once.

    What is written at t, u_t = b_t (v_t - sum_{j<t} (k_j . k_t) u_j), solves a triangular system; S_t is sum_{j<=t} u_j
    k_j^T (Yang et al. 2024, arXiv:2406.06484, section 3).

    ``q``, ``k``, ``v``: queries, keys and values of every head.
    ``strength``: b_t, how much of what is stored at a key is replaced, 0 to 1.
    """
    system = (strength * (k @ k.mT)).tril(-1)  # the 1 on the diagonal is understood
    written = torch.linalg.solve_triangular(system, strength * v, upper=False, unitriangular=True)
    return (q @ k.mT).tril() @ written


class Attention(nn.Module):
    """Multi-head self-attention. For each head, with queries Q, keys K and values V of the h = width / heads channels:

    softmax:  softmax(Q K^T / sqrt(h)) V        linear:  (Q K^T / length) V
    relu:     relu(Q K^T / sqrt(h)) V / length  where the weights need not sum to 1: twice as many matches, twice as
                                                much is found (Ye, Fu, Jia, Sharan 2026, arXiv:2510.19753, section 3)

    ``causal`` keeps position i from seeing j > i; then linear attention (divided by the context instead, which does not
    grow with what is read) needs no past tokens, only a matrix S of h x h numbers for each head: S <- S + v k^T, and
    the answer is S q / context. Two kinds change how S is written:

    gated:    S <- a S + v k^T,  a = sigmoid(A x)^(1/16)    the whole state fades (after Yang et al. 2024,
                                                            arXiv:2312.06635; there each channel has an a of its own)
    delta:    S <- S + b (v - S k) k^T,  b = sigmoid(B x)   with keys of length 1, and the answer is S q (Schlag, Irie,
                                                            Schmidhuber 2021, arXiv:2102.11174)

    A write of the delta rule changes what S answers for its own key and nothing orthogonal to it.
    """

    def __init__(self, config: DecoderConfig, at: HookPoints):
        super().__init__()
        self.config, self.at = config, at
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        if config.attention == "delta":
            self.strength = nn.Linear(config.width, config.heads, bias=False)
        if config.attention == "gated":
            self.gate = nn.Linear(config.width, config.heads, bias=False)

    def pattern(
        self, q: Float[Tensor, "batch heads length h"], k: Float[Tensor, "batch heads length h"]
    ) -> Float[Tensor, "batch heads length length"]:
        """Return how much each query weights each key, before any fading."""
        kind = self.config.attention
        scores = q @ k.mT  # (batch, head, query, key)
        if kind in ("softmax", "relu"):
            scores = scores / q.shape[-1] ** 0.5
        if kind == "relu":
            scores = scores.relu()
        if kind != "softmax":
            return scores.tril() / self.config.context if self.config.causal else scores / q.shape[-2]
        if self.config.causal:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        return scores.softmax(dim=-1)

    def kept(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch heads length length"]:
        """Return what has not faded at i of what was written at j <= i: the product of the gates of j + 1 .. i."""
        written = F.logsigmoid(self.gate(x)).div(16).cumsum(1).mT  # (batch, head, length)
        return (written[..., :, None] - written[..., None, :]).tril().exp()

    def read(self, kind: str, x: Float[Tensor, "batch heads length width"]) -> Float[Tensor, "batch heads length h"]:
        """Return the queries ("q"), keys ("k") or values ("v") where each head reads a stream of its own."""
        place, shape = "qkv".index(kind), (3, self.config.heads, -1)
        found = x @ self.qkv.weight.unflatten(0, shape)[place].mT
        return found if self.qkv.bias is None else found + self.qkv.bias.unflatten(0, shape)[place][:, None]

    def forward(
        self,
        x: Float[Tensor, "batch length width"],
        apart: Mapping[str, Float[Tensor, "batch heads length width"]] = MappingProxyType({}),
    ) -> Float[Tensor, "batch length width"]:
        """Compute what all heads add to the stream; of ``apart``, "q", "k" and "v" are read in place of ``x``."""
        batch, length, width = x.shape
        kind, at = self.config.attention, self.at
        qkv = self.qkv(x).view(batch, length, 3, self.config.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, head, length, h)
        if apart:
            q, k, v = (
                self.read(each, apart[each]) if each in apart else z for each, z in zip("qkv", (q, k, v), strict=True)
            )
        if kind == "delta":
            k = F.normalize(k, dim=-1)
        q, k, v = at("hook_q", q), at("hook_k", k), at("hook_v", v)
        if kind == "delta":
            z = delta_rule(q, k, v, self.strength(x).sigmoid().mT[..., None])
        elif kind == "softmax" and not at.asked("hook_pattern"):
            z = F.scaled_dot_product_attention(q, k, v, is_causal=self.config.causal)  # faster: keeps no pattern
        else:
            pattern = self.pattern(q, k)
            z = at("hook_pattern", pattern * self.kept(x) if kind == "gated" else pattern) @ v
        z = at("hook_z", z)
        if at.asked("hook_result"):
            by_head = self.out.weight.unflatten(1, (self.config.heads, -1)).permute(1, 2, 0)  # (head, h, width)
            written = at("hook_result", z @ by_head).sum(1)
            return written if self.out.bias is None else written + self.out.bias
        return self.out(z.transpose(1, 2).reshape(batch, length, width))


class Recurrence(nn.Module):
    """An LSTM in the place of attention, and back to the stream's width: hidden state and cell together are as many
    numbers as the matrices of `Attention` are. Forget gates start open, as in `companion.core.lstm`.
    """

    def __init__(self, config: DecoderConfig, at: HookPoints):
        super().__init__()
        self.at, hidden = at, config.memory // 2
        self.cell = nn.LSTM(config.width, hidden, batch_first=True)
        self.out = nn.Linear(hidden, config.width, bias=False)
        nn.init.ones_(self.cell.get_parameter("bias_ih_l0").data[hidden : 2 * hidden])

    def forward(
        self, x: Float[Tensor, "batch length width"], *_: dict
    ) -> Float[Tensor, "batch length width"]:  # no heads to read apart
        return self.out(self.at("hook_z", self.cell(x)[0]))


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)): two readings of the residual stream, two additions to it."""

    def __init__(self, config: DecoderConfig, at: HookPoints):
        super().__init__()
        width, hidden = config.width, round(config.mlp * config.width)
        self.at, self.heads = at, config.heads
        self.norm1 = nn.LayerNorm(width) if config.norm else nn.Identity()
        self.attention = (Recurrence if config.attention == "lstm" else Attention)(config, at.scoped("attn."))
        self.mlp = None
        if hidden:
            norm2 = nn.LayerNorm(width) if config.norm else nn.Identity()
            self.mlp = nn.Sequential(
                norm2, nn.Linear(width, hidden, bias=False), nn.GELU(), nn.Linear(hidden, width, bias=False)
            )

    def apart(self, x: Float[Tensor, "batch length width"]) -> dict[str, Float[Tensor, "batch heads length width"]]:
        """Return what each head's queries, keys or values read, normed, where a hook asks for it."""
        return {
            kind: self.norm1(self.at(name, x[:, None].repeat(1, self.heads, 1, 1)))
            for kind, name in HEAD_INPUTS.items()
            if self.at.asked(name)
        }

    def attend(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """Compute what the heads add to the stream, ``x``."""
        apart = [self.apart(x)] if self.at.hooks else []
        return self.attention(self.norm1(x), *apart)

    def transform(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """Compute what the MLP adds to the stream, ``x``: zeros where there is none."""
        if self.mlp is None:
            return torch.zeros_like(x)
        norm2, up, gelu, down = self.mlp
        return down(self.at("mlp.hook_post", gelu(up(norm2(x)))))  # hidden units are (batch, length, mlp * width)

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        at = self.at
        x = at("hook_resid_pre", x)
        x = x + at("hook_attn_out", self.attend(x))
        if self.mlp is not None:
            x = at("hook_resid_mid", x)
            x = x + at("hook_mlp_out", self.transform(x))
        return at("hook_resid_post", x)


class Decoder(Hooked):
    """Blocks around a residual stream. ``forward`` gives the last stream, normed; `run_with_cache`, all of them."""

    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.config, self.at = config, HookPoints(hook_names(config), names_on_request(config))
        self.positions = (
            nn.Parameter(torch.randn(config.context, config.width) / config.width**0.5) if config.positions else None
        )
        blocks = [Block(config, self.at.scoped(f"blocks.{layer}.")) for layer in range(config.layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(config.width) if config.norm else nn.Identity()
        for block in blocks:
            outputs = [block.attention.out.weight]
            if block.mlp is not None:
                outputs.append(block.mlp.get_parameter("3.weight"))
            for module in block.modules():
                if isinstance(module, nn.Linear):
                    nn.init.normal_(module.weight, std=module.in_features**-0.5)
            for weight in outputs:  # 2 L additions of this size keep the stream's variance of order 1 at the end
                weight.data /= (2 * config.layers) ** 0.5

    def memory(self, length: int) -> int:
        """Return how many numbers keep the past after ``length`` positions: all keys and values, 2 L width length, or
        without softmax and ReLU L width^2 / heads, however long the past: a matrix for each head, or an LSTM's vectors.
        """
        grows = self.config.attention in ("softmax", "relu")
        return self.config.layers * (2 * self.config.width * length if grows else self.config.memory)

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """Compute the last residual stream, normed.

        Raises ValueError when ``x`` is longer than the context or of another width.
        """
        _, length, width = x.shape
        if length > self.config.context or width != self.config.width:
            raise ValueError(
                f"x of shape {tuple(x.shape)}: must be (batch, length, {self.config.width}), with length at most "
                f"{self.config.context}"
            )
        if self.positions is not None:
            x = x + self.positions[:length]
        x = self.at("hook_embed", x)
        for block in self.blocks:
            x = block(x)
        return self.at("ln_final.hook_normalized", self.norm(x))
