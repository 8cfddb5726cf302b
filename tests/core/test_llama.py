"""The Llama against a forward pass in NumPy that loops over heads and places and turns pairs as complex numbers."""

import copy

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.special import expit, softmax
from torch import nn

from companion.core.llama import Llama, LlamaConfig, rotated, rotation

CONFIG = {
    "vocabulary": 19,
    "width": 24,
    "layers": 2,
    "heads": 6,
    "key_heads": 2,
    "hidden": 20,
    "context": 9,
    "base": 50,
}
KINDS = pytest.mark.parametrize("switches", [{}, {"tied": False}, {"key_heads": 6}, {"key_heads": 1}], ids=str)


def llama(**switches) -> Llama:
    """A small one in float64, its norms random, too."""
    torch.manual_seed(0)
    model = Llama(LlamaConfig(**CONFIG | switches)).double().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.RMSNorm):
            nn.init.normal_(module.weight, 1.0, 0.3)
    return model


def texts(seed=0, length=7):
    return torch.randint(19, (2, length), generator=torch.Generator().manual_seed(seed))


def by_hand(model, tokens, changes=None):
    """Every named value of the forward pass in NumPy, where ``changes[name](value)`` replaces it."""
    config, weights = model.config, {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    h, values = config.width // config.heads, {}
    (batch, length), shared = tokens.shape, config.heads // config.key_heads

    def named(name, value):
        values[name] = (changes or {}).get(name, lambda value: value)(value)
        return values[name]

    def norm(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + config.eps) * weights[f"{name}.weight"]

    def turn(x):
        whole = x[..., : h // 2] + 1j * x[..., h // 2 :]  # channels i and i + h / 2 as one complex number
        for place in range(length):
            whole[:, :, place] *= np.exp(1j * place * config.base ** (-2 * np.arange(h // 2) / h))
        return np.concatenate([whole.real, whole.imag], axis=-1)

    x = named("hook_embed", weights["embed.weight"][tokens.numpy()])
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
    return x @ weights["embed.weight" if config.tied else "unembed.weight"].T, values


@KINDS
def test_the_cache_is_the_forward_pass_in_numpy(switches):
    model, tokens = llama(**switches), texts()
    logits, cache = model.run_with_cache(tokens)
    expected, values = by_hand(model, tokens)
    np.testing.assert_allclose(logits, expected, atol=1e-9)
    assert list(cache) == list(values) == model.hook_names
    for name, value in values.items():
        np.testing.assert_allclose(cache[name], value, atol=1e-9, err_msg=name)
    torch.testing.assert_close(model(tokens), logits, rtol=0, atol=1e-9)


@KINDS
def test_whatever_a_hook_returns_is_what_the_computation_goes_on_with(switches):
    model, tokens = llama(**switches), texts(1)
    plain = model(tokens)
    for name in model.hook_names:
        with model.hooks({name: lambda value, _: 0.5 * value.flip(1) + 0.1}):
            changed = model(tokens)
        expected, _ = by_hand(model, tokens, {name: lambda value: 0.5 * value[:, ::-1] + 0.1})
        np.testing.assert_allclose(changed, expected, atol=1e-8, err_msg=name)
        assert (changed - plain).abs().max() > 1e-3, name
    assert torch.equal(model(tokens), plain)


@KINDS
def test_what_is_on_request_is_what_each_head_reads_and_writes(switches):
    model, tokens = llama(**switches), texts()
    requested = model.at.on_request
    logits, whole = model.run_with_cache(tokens)
    changed, cache = model.run_with_cache(tokens, names=requested)
    assert set(cache) == set(requested)
    assert not set(cache) & set(whole)
    torch.testing.assert_close(changed, logits, rtol=0, atol=1e-9)
    for block in ("blocks.0", "blocks.1"):
        stream = whole[f"{block}.hook_resid_pre"][:, None].expand(-1, 6, -1, -1)
        for kind in "qkv":
            torch.testing.assert_close(cache[f"{block}.hook_{kind}_input"], stream)
        torch.testing.assert_close(cache[f"{block}.attn.hook_result"].sum(1), whole[f"{block}.hook_attn_out"])


@pytest.mark.parametrize("kind", ["q", "k", "v"])
@KINDS
def test_one_head_reads_what_a_hook_gives_it_and_no_other_head_does(switches, kind):
    """Not even one that shares its keys and values."""
    model, tokens = llama(**switches), texts()
    names = [f"blocks.1.attn.hook_{each}" for each in "qkv"]
    _, before = model.run_with_cache(tokens, names=names)
    given = torch.randn(2, 7, 24, dtype=torch.float64)

    def head_4_reads_another(value, _):
        value[:, 4] = given
        return value

    with model.hooks({f"blocks.1.hook_{kind}_input": head_4_reads_another}):
        _, after = model.run_with_cache(tokens, names=names)
    with model.hooks({"blocks.1.hook_resid_pre": lambda value, _: given}):
        _, all_read_it = model.run_with_cache(tokens, names=names)
    others = [0, 1, 2, 3, 5]
    for name in names:
        torch.testing.assert_close(after[name][:, 4], (all_read_it if name.endswith(kind) else before)[name][:, 4])
        torch.testing.assert_close(after[name][:, others], before[name][:, others])


def test_scores_see_how_far_apart_two_tokens_are_and_not_where():
    q, k = torch.randn(2, 4, dtype=torch.float64)
    by_place = [rotated(x.expand(1, 1, 9, 4), rotation(9, 4, 50.0, like=x)) for x in (q, k)]
    scores = (by_place[0] @ by_place[1].mT)[0, 0]  # (query's place, key's place)
    for distance in range(-8, 9):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along))
    assert scores[0].unique().numel() == 9


def test_the_last_places_logits_alone_are_the_last_of_all():
    model, tokens = llama(), texts()
    torch.testing.assert_close(model(tokens, only_last=True), model(tokens)[:, -1:])
    logits, cache = model.run_with_cache(tokens, names="ln_final.hook_normalized", only_last=True)
    assert logits.shape == (2, 1, 19)
    assert cache["ln_final.hook_normalized"].shape == (2, 7, 24)


def test_nothing_is_seen_of_the_future():
    model, tokens = llama(), texts()
    other = tokens.clone()
    other[:, 4:] = (other[:, 4:] + 1) % 19
    torch.testing.assert_close(model(other)[:, :4], model(tokens)[:, :4])
    assert (model(other)[:, 4:] - model(tokens)[:, 4:]).abs().max() > 0.01


@pytest.mark.parametrize("names", [[], ["blocks.0.attn.hook_pattern", "blocks.1.hook_k_input"]], ids=["plain", "asked"])
def test_half_the_precision_is_near_the_whole(names):
    model = llama()
    half = copy.deepcopy(model).bfloat16()
    logits, cache = half.run_with_cache(texts(), names=names)
    assert {logits.dtype, *(value.dtype for value in cache.values())} == {torch.bfloat16}
    torch.testing.assert_close(logits.double(), model(texts()), rtol=0, atol=0.1 * model(texts()).abs().max().item())


test_what_does_not_fit_is_refused = refusals(
    (lambda: LlamaConfig(**CONFIG | {"heads": 5}), "heads = 5: must divide width = 24 into even widths"),
    (lambda: LlamaConfig(**CONFIG | {"heads": 8}), "heads = 8: must divide width = 24 into even widths"),
    (lambda: LlamaConfig(**CONFIG | {"key_heads": 4}), "key_heads = 4: must divide heads = 6"),
    (lambda: LlamaConfig(**CONFIG | {"layers": 0}), "layers = 0: must be at least 1"),
    (lambda: llama()(texts(length=10)), r"tokens of shape \(2, 10\): length must be 1 to 9"),
    (lambda: llama()(texts()[:, :0]), r"tokens of shape \(2, 0\): length must be 1 to 9"),
    (lambda: llama()(texts() + 19), r"tokens: \d+ is out of range; must be 0 to 18"),
)
