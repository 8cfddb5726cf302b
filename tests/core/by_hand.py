"""Small random models, and their forward passes in NumPy, which name every value themselves: of a `Decoder`, with its
recurrences token by token; of a `Llama`, with loops over heads and places and pairs that are turned as complex numbers.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from scipy.special import erf, expit, softmax
from torch import Tensor, nn

from companion.core.decoder import Decoder, DecoderConfig
from companion.core.llama import Llama, LlamaConfig

CONFIG = {"width": 12, "layers": 3, "heads": 3, "context": 7, "mlp": 2}
SIZES = {"width": 24, "layers": 2, "heads": 6, "key_heads": 2, "hidden": 20}
LLAMA = SIZES | {"vocabulary": 19, "context": 9, "base": 50}
Values = dict[str, np.ndarray]
Changes = Mapping[str, Callable[[np.ndarray], np.ndarray]]


def random_norms(model: nn.Module) -> Any:
    """The model in float64 and without gradients, its norms as random as all else."""
    for module in model.double().requires_grad_(False).modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            nn.init.normal_(module.weight, 1.0, 0.3)
        if isinstance(module, nn.LayerNorm):
            nn.init.normal_(module.bias, 0.0, 0.3)
    return model


def decoder(**switches) -> Decoder:
    return random_norms(Decoder(DecoderConfig(**CONFIG | switches)))


def llama(**switches) -> Llama:
    return random_norms(Llama(LlamaConfig(**LLAMA | switches)))


def inputs(model: nn.Module, seed: int = 0, length: int = 5) -> Tensor:
    """Two sequences for such a model: vectors for a decoder, tokens for a Llama."""
    generator = torch.Generator().manual_seed(seed)
    if isinstance(model, Llama):
        return torch.randint(19, (2, length), generator=generator)
    return torch.randn(2, length, 12, dtype=torch.float64, generator=generator)


def model_and_inputs(make: Callable[..., nn.Module], seed: int = 0, **switches) -> tuple[Any, Tensor]:
    """A model and its `inputs`."""
    model = make(**switches)
    return model, inputs(model, seed)


def by_hand(model: Decoder | Llama, asked: Tensor, changes: Changes | None = None) -> tuple[np.ndarray, Values]:
    """What the model gives, and every named value on the way, where ``changes[name](value)`` replaces it."""
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    values: Values = {}

    def named(name, value):
        values[name] = (changes or {}).get(name, lambda value: value)(value)
        return values[name]

    forward = _llama if isinstance(model, Llama) else _decoder
    return forward(model.config, weights, asked.numpy(), named), values


def _decoder(config, weights, x, named):
    (batch, length, _), heads, h = x.shape, config.heads, config.width // config.heads
    causal = np.tri(length, dtype=bool) if config.causal else np.ones((length, length), dtype=bool)
    seen = config.context if config.causal else length  # what is no softmax is divided by it

    def norm(x, name):
        if not config.norm:
            return x
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def split(x):
        return x.reshape(batch, length, heads, h).transpose(0, 2, 1, 3)

    def pattern(q, k):
        scores = np.einsum("bhtc,bhsc->bhts", q, k)
        if config.attention == "softmax":
            return softmax(np.where(causal, scores / np.sqrt(h), -np.inf), axis=-1)
        return np.where(causal, np.maximum(scores, 0) / np.sqrt(h) if config.attention == "relu" else scores, 0) / seen

    def kept(gates):
        """[b, head, t, s]: what is left at t of what was written at s, before each new token all of it fades."""
        left = np.zeros((batch, heads, length, length))
        for b, head, t, s in np.ndindex(left.shape):
            left[b, head, t, s] = gates[b, s + 1 : t + 1, head].prod()
        return left

    def delta(q, k, v, strength):
        z = np.zeros_like(v)
        for b, head in np.ndindex(batch, heads):
            memory = np.zeros((h, h))
            for t in range(length):
                key = k[b, head, t]
                memory = memory + strength[b, t, head] * np.outer(v[b, head, t] - memory @ key, key)
                z[b, head, t] = memory @ q[b, head, t]
        return z

    x = named("hook_embed", x + (weights["positions"][:length] if config.positions else 0))
    for layer in range(config.layers):
        block, at = f"blocks.{layer}", f"blocks.{layer}.attn.hook_"
        x = named(f"{block}.hook_resid_pre", x)
        normed = norm(x, f"{block}.norm1")
        q, k, v = (split(part) for part in np.split(normed @ weights[f"{block}.attention.qkv.weight"].T, 3, axis=-1))
        if config.attention == "delta":
            k = k / np.linalg.norm(k, axis=-1, keepdims=True)
        q, k, v = named(f"{at}q", q), named(f"{at}k", k), named(f"{at}v", v)
        if config.attention == "delta":
            z = delta(q, k, v, expit(normed @ weights[f"{block}.attention.strength.weight"].T))
        elif config.attention == "gated":
            gates = expit(normed @ weights[f"{block}.attention.gate.weight"].T) ** (1 / 16)
            z = named(f"{at}pattern", pattern(q, k) * kept(gates)) @ v
        else:
            z = named(f"{at}pattern", pattern(q, k)) @ v
        z = named(f"{at}z", z).transpose(0, 2, 1, 3).reshape(batch, length, -1)
        x = x + named(f"{block}.hook_attn_out", z @ weights[f"{block}.attention.out.weight"].T)
        if config.mlp:
            x = named(f"{block}.hook_resid_mid", x)
            hidden = norm(x, f"{block}.mlp.0") @ weights[f"{block}.mlp.1.weight"].T
            hidden = named(f"{block}.mlp.hook_post", hidden * (1 + erf(hidden / np.sqrt(2))) / 2)
            x = x + named(f"{block}.hook_mlp_out", hidden @ weights[f"{block}.mlp.3.weight"].T)
        x = named(f"{block}.hook_resid_post", x)
    return named("ln_final.hook_normalized", norm(x, "norm"))


def _llama(config, weights, tokens, named):
    h, (batch, length), shared = config.width // config.heads, tokens.shape, config.heads // config.key_heads

    def norm(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + config.eps) * weights[f"{name}.weight"]

    def turn(x):
        whole = x[..., : h // 2] + 1j * x[..., h // 2 :]  # channels i and i + h / 2 as one complex number
        for place in range(length):
            whole[:, :, place] *= np.exp(1j * place * config.base ** (-2 * np.arange(h // 2) / h))
        return np.concatenate([whole.real, whole.imag], axis=-1)

    x = named("hook_embed", weights["embed.weight"][tokens])
    for layer in range(config.layers):
        block = f"blocks.{layer}"
        x = named(f"{block}.hook_resid_pre", x)
        normed, read = norm(x, f"{block}.norm1"), {}
        for kind, part in (("q", "queries"), ("k", "keys"), ("v", "values")):
            matrix, each = weights[f"{block}.attention.{part}.weight"], np.zeros((batch, config.heads, length, h))
            for head in range(config.heads):
                row = h * (head if kind == "q" else head // shared)
                each[:, head] = normed @ matrix[row : row + h].T
            read[kind] = named(f"{block}.attn.hook_{kind}", each)
        q, k = (named(f"{block}.attn.hook_rot_{kind}", turn(read[kind])) for kind in "qk")
        pattern = np.zeros((batch, config.heads, length, length))
        for place in range(length):
            scores = np.einsum("bnh,bnth->bnt", q[:, :, place], k[:, :, : place + 1]) / np.sqrt(h)
            pattern[:, :, place, : place + 1] = softmax(scores, axis=-1)
        z = named(f"{block}.attn.hook_z", named(f"{block}.attn.hook_pattern", pattern) @ read["v"])
        together = z.transpose(0, 2, 1, 3).reshape(batch, length, -1)
        x = x + named(f"{block}.hook_attn_out", together @ weights[f"{block}.attention.out.weight"].T)
        x = named(f"{block}.hook_resid_mid", x)
        gate, up = np.split(norm(x, f"{block}.norm2") @ weights[f"{block}.mlp.gate_and_up.weight"].T, 2, axis=-1)
        hidden = named(f"{block}.mlp.hook_post", gate * expit(gate) * up)
        x = x + named(f"{block}.hook_mlp_out", hidden @ weights[f"{block}.mlp.down.weight"].T)
        x = named(f"{block}.hook_resid_post", x)
    x = named("ln_final.hook_normalized", norm(x, "norm"))
    return x @ weights["embed.weight" if config.tied else "unembed.weight"].T
