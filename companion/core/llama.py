"""The forward pass of a Llama, the kind of transformer that most open language models are (Touvron et al. 2023,
arXiv:2302.13971): what others trained is read into it by `companion.pretrained`.

It is the second forward pass of the house. Beside `companion.core.decoder` four things are different in it:

    norm        x / sqrt(mean(x^2) + eps) * g, without a mean taken out (Zhang and Sennrich 2019, arXiv:1910.07467)
    positions   none are added; queries and keys are turned by angles that grow with the position, so that a score sees
                how far apart the two are (Su et al. 2021, arXiv:2104.09864)
    heads       several query heads share the keys and values of one (Ainslie et al. 2023, arXiv:2305.13245)
    MLP         W_down (silu(W_gate x) * W_up x) (Shazeer 2020, arXiv:2002.05202)

Its values have a decoder's names, `Llama.run_with_cache` hands them out and `Llama.hooks` changes them. Keys and values
are repeated, so that every query head has its own: all are (batch, head, length, h). Beside the decoder's names:

    blocks.0.attn.hook_q, hook_k          queries and keys before they are turned
    blocks.0.attn.hook_rot_q, hook_rot_k  after it
    blocks.0.mlp.hook_post                the hidden units, silu(gate) * up

and on request, as in a decoder, hook_q_input, hook_k_input, hook_v_input and attn.hook_result.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range
from companion.core.decoder import HEAD_INPUTS
from companion.core.hooks import Hooked, HookPoints

READS = ("hook_q", "hook_k", "hook_v", "hook_rot_q", "hook_rot_k", "hook_pattern", "hook_z")
AROUND = ("hook_attn_out", "hook_resid_mid", "mlp.hook_post", "hook_mlp_out", "hook_resid_post")


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes of a `Llama`: of ``heads`` query heads, ``heads / key_heads`` share keys and values; ``hidden`` is the
    width inside an MLP; position t turns the slowest pair of channels by about t / ``base``; ``tied`` reads the logits
    with the embeddings.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    hidden: int
    context: int
    base: float = 10_000.0
    eps: float = 1e-5
    tied: bool = True

    def __post_init__(self):
        sizes = ("vocabulary", "width", "layers", "heads", "key_heads", "hidden", "context")
        at_least(**{name: (getattr(self, name), 1) for name in sizes})
        if self.width % (2 * self.heads):
            raise ValueError(
                f"heads = {self.heads}: width / heads must be a whole and even number; width = {self.width}"
            )
        if self.heads % self.key_heads:
            raise ValueError(f"key_heads = {self.key_heads}: must divide heads = {self.heads}")


class Rotation(NamedTuple):
    """The cosines and sines of t / base^(2 i / h), by which position t turns channels i and i + h / 2 together."""

    cos: Float[Tensor, "length half"]
    sin: Float[Tensor, "length half"]


def rotation(length: int, h: int, base: float, like: Tensor) -> Rotation:
    """Compute the rotation of every position.

    ``length``, ``h``: how many positions, and the width of a head.
    ``base``: how much slower the slowest pair turns than the first.
    ``like``: a tensor of the device and precision that are meant; angles have float32's at least.
    """
    exact = {"device": like.device, "dtype": torch.promote_types(like.dtype, torch.float32)}
    angles = torch.arange(length, **exact)[:, None] / base ** (torch.arange(0, h, 2, **exact) / h)
    return Rotation(angles.cos().to(like.dtype), angles.sin().to(like.dtype))


def rotated(x: Float[Tensor, "batch heads length h"], by: Rotation) -> Float[Tensor, "batch heads length h"]:
    """Turn the plane of channels i and i + h / 2 at every position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * by.cos - second * by.sin, second * by.cos + first * by.sin], dim=-1)


class GroupedAttention(nn.Module):
    """softmax(Q K^T / sqrt(h)) V for each query head, causal, with turned queries and keys; neighbouring query heads
    share keys and values.
    """

    def __init__(self, config: LlamaConfig, at: HookPoints):
        super().__init__()
        self.config, self.at, self.h = config, at, config.width // config.heads
        self.queries = nn.Linear(config.width, config.width, bias=False)
        self.keys = nn.Linear(config.width, config.key_heads * self.h, bias=False)
        self.values = nn.Linear(config.width, config.key_heads * self.h, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def read(
        self, linear: nn.Linear, x: Float[Tensor, "batch *heads length width"]
    ) -> Float[Tensor, "batch every_head length h"]:
        """Return queries, keys or values of every query head: of one stream for all, or of one for each."""
        times = self.config.width // linear.out_features  # how many query heads read the same
        if x.ndim == 3:
            return linear(x).unflatten(-1, (-1, self.h)).transpose(1, 2).repeat_interleave(times, dim=1)
        return x @ linear.weight.unflatten(0, (-1, self.h)).repeat_interleave(times, dim=0).mT

    def forward(
        self,
        x_q: Float[Tensor, "batch *q_heads length width"],
        x_k: Float[Tensor, "batch *k_heads length width"],
        x_v: Float[Tensor, "batch *v_heads length width"],
        by: Rotation,
    ) -> Float[Tensor, "batch length width"]:
        """Compute what all heads add to the stream. Queries, keys and values read ``x_q``, ``x_k`` and ``x_v``, which
        mostly are the same normed stream; queries and keys are turned ``by`` the positions' angles.
        """
        at = self.at
        q = at("hook_q", self.read(self.queries, x_q))  # all (batch, head, length, h)
        k = at("hook_k", self.read(self.keys, x_k))
        v = at("hook_v", self.read(self.values, x_v))
        q, k = at("hook_rot_q", rotated(q, by)), at("hook_rot_k", rotated(k, by))
        if at.asked("hook_pattern"):
            scores = q / self.h**0.5 @ k.mT  # (batch, head, query, key)
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            z = at("hook_pattern", scores.masked_fill(future, -torch.inf).softmax(dim=-1)) @ v
        else:
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # faster: keeps no pattern
        z = at("hook_z", z)
        if at.asked("hook_result"):
            by_head = self.out.weight.unflatten(1, (-1, self.h)).permute(1, 2, 0)  # (head, h, width)
            return at("hook_result", z @ by_head).sum(1)
        return self.out(z.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    """W_down (silu(W_gate x) * W_up x). Both matrices that read the stream are one, the gate's rows first."""

    def __init__(self, config: LlamaConfig, at: HookPoints):
        super().__init__()
        self.at = at
        self.gate_and_up = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        gate, up = (F.linear(x, half) for half in self.gate_and_up.weight.chunk(2))
        return self.down(self.at("hook_post", F.silu(gate) * up))


class LlamaBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: LlamaConfig, at: HookPoints):
        super().__init__()
        self.config, self.at = config, at
        self.norm1 = nn.RMSNorm(config.width, eps=config.eps)
        self.attention = GroupedAttention(config, at.scoped("attn."))
        self.norm2 = nn.RMSNorm(config.width, eps=config.eps)
        self.mlp = SwiGLU(config, at.scoped("mlp."))

    def forward(
        self, x: Float[Tensor, "batch length width"], by: Rotation | None = None
    ) -> Float[Tensor, "batch length width"]:
        """Compute the next stream. All blocks turn ``by`` the same angles, which one alone computes itself."""
        at = self.at
        x = at("hook_resid_pre", x)
        x = at("hook_resid_mid", x + at("hook_attn_out", self.attend(x, by)))
        return at("hook_resid_post", x + at("hook_mlp_out", self.transform(x)))

    def attend(
        self, x: Float[Tensor, "batch length width"], by: Rotation | None = None
    ) -> Float[Tensor, "batch length width"]:
        """Compute what the heads add to the stream, ``x``."""
        at, heads = self.at, self.config.heads
        by = by or rotation(x.shape[1], x.shape[2] // heads, self.config.base, like=x)
        normed = self.norm1(x)
        q_k_v = (
            self.norm1(at(name, x[:, None].repeat(1, heads, 1, 1))) if at.asked(name) else normed
            for name in HEAD_INPUTS.values()
        )
        return self.attention(*q_k_v, by)

    def transform(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """Compute what the MLP adds to the stream, ``x``."""
        return self.mlp(self.norm2(x))


class Llama(Hooked):
    """Tokens to logits. As it is made, its weights are random, of standard deviation 1 / sqrt(fan_in);
    `companion.pretrained.language.LanguageModel` fills one from a folder.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        blocks = [f"blocks.{layer}." for layer in range(config.layers)]
        inside = ["hook_resid_pre", *(f"attn.{name}" for name in READS), *AROUND]
        names = [prefix + name for prefix in blocks for name in inside]
        requested = [prefix + name for prefix in blocks for name in (*HEAD_INPUTS.values(), "attn.hook_result")]
        self.at = HookPoints(["hook_embed", *names, "ln_final.hook_normalized"], requested)
        self.embed = nn.Embedding.from_pretrained(torch.empty(config.vocabulary, config.width), freeze=False)
        self.blocks = nn.ModuleList(LlamaBlock(config, self.at.scoped(prefix)) for prefix in blocks)
        self.norm = nn.RMSNorm(config.width, eps=config.eps)
        self.unembed = None if config.tied else nn.Linear(config.width, config.vocabulary, bias=False)
        for module in self.modules():  # not normal: for that torch loads for seconds where there are shapes alone
            if isinstance(module, nn.Linear | nn.Embedding):
                bound = (3 / module.weight.shape[1]) ** 0.5
                nn.init.uniform_(module.weight, -bound, bound)

    @property
    def unembedding(self) -> Float[Tensor, "vocabulary width"]:
        """Return the directions of the normed stream that the logits are read along."""
        return self.embed.weight if self.unembed is None else self.unembed.weight

    def forward(
        self, tokens: Int[Tensor, "batch length"], *, only_last: bool = False
    ) -> Float[Tensor, "batch places vocabulary"]:
        """Compute every token's logit for the token after each place, or after the last one alone.

        Raises ValueError for more tokens than the context has, and for a token that the vocabulary does not.
        """
        if not 1 <= tokens.shape[1] <= self.config.context:
            raise ValueError(f"tokens of shape {tuple(tokens.shape)}: length must be 1 to {self.config.context}")
        check_range(tokens=(tokens, self.config.vocabulary))
        x = self.at("hook_embed", self.embed(tokens))
        by = rotation(x.shape[1], self.config.width // self.config.heads, self.config.base, like=x)
        for block in self.blocks:
            x = block(x, by)
        x = self.at("ln_final.hook_normalized", self.norm(x))
        return (x[:, -1:] if only_last else x) @ self.unembedding.mT
