"""What comes through the hooks against a forward pass in NumPy that names its values itself, untouched and interfered
with; hooks leave nothing behind.
"""

import copy

import numpy as np
import pytest
import torch
from core.by_hand import CONFIG, by_hand, decoder, inputs, llama, model_and_inputs
from torch import nn

from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Cache
from companion.core.lstm import LSTM, LSTMConfig
from companion.topics.addition.model import Adder, AdderConfig
from companion.topics.attention.model import TokenModel, TokenModelConfig
from companion.topics.bigrams.model import BigramModel, BigramModelConfig
from companion.topics.regression.model import InContextRegressor, RegressorConfig
from companion.topics.structures.model import Structure, StructureConfig

DECODERS = [
    {},
    {"causal": False},
    {"norm": False, "mlp": 0},
    {"positions": False, "heads": 1},
    {"attention": "linear"},
    {"attention": "linear", "causal": False, "mlp": 0},
    {"attention": "gated"},
    {"attention": "delta"},
    {"attention": "delta", "norm": False, "mlp": 0, "positions": False},
]
LLAMAS = [{}, {"tied": False}, {"key_heads": 6}, {"key_heads": 1}]


def kinds(*cases: tuple) -> pytest.MarkDecorator:
    """What makes a model, and its switches."""
    return pytest.mark.parametrize(
        ("make", "switches"), cases, ids=[f"{make.__name__} {switches}" for make, switches in cases]
    )


of_decoders = kinds(*((decoder, switches) for switches in DECODERS))
of_both = kinds(*((decoder, switches) for switches in DECODERS), *((llama, switches) for switches in LLAMAS))


@of_both
def test_the_cache_is_the_forward_pass_in_numpy(make, switches):
    model, asked = model_and_inputs(make, **switches)
    output, cache = model.run_with_cache(asked)
    expected, values = by_hand(model, asked)
    np.testing.assert_allclose(output, expected, atol=1e-9)
    assert list(cache) == list(values) == model.hook_names
    for name, value in values.items():
        assert cache[name].shape == value.shape, name
        np.testing.assert_allclose(cache[name], value, atol=1e-9, err_msg=name)
    torch.testing.assert_close(model(asked), output, rtol=0, atol=1e-9)


@of_both
def test_whatever_a_hook_returns_is_what_the_computation_goes_on_with(make, switches):
    model, asked = model_and_inputs(make, 1, **switches)
    plain = model(asked)
    for name in model.hook_names:
        with model.hooks({name: lambda value, _: 0.5 * value.flip(1) + 0.1}):
            changed = model(asked)
        expected, _ = by_hand(model, asked, {name: lambda value: 0.5 * value[:, ::-1] + 0.1})
        np.testing.assert_allclose(changed, expected, atol=1e-8, err_msg=name)
        assert (changed - plain).abs().max() > 1e-3, name
    assert torch.equal(model(asked), plain)


@pytest.mark.parametrize("head", range(3))
def test_ablating_a_head_is_taking_its_columns_out_of_the_output_map(head):
    model, x = model_and_inputs(decoder, 2, layers=2)

    def without(z, _):
        return z * (torch.arange(3) != head).double()[:, None, None]

    with model.hooks({"blocks.1.attn.hook_z": without}):
        ablated = model(x)
    by_weights = copy.deepcopy(model)
    by_weights.blocks[1].attention.out.weight[:, 4 * head : 4 * head + 4] = 0
    torch.testing.assert_close(ablated, by_weights(x))
    assert (ablated - model(x)).abs().max() > 0.01


@of_decoders
@pytest.mark.parametrize("layer", [0, 2])
def test_patching_a_whole_stream_continues_the_other_run(make, switches, layer):
    """From there on nothing of the first input is left; patched at one position, the rest stays (with a mask)."""
    model = make(**switches)
    x, other = inputs(model, 3), inputs(model, 4)
    output, cache = model.run_with_cache(other)
    name = f"blocks.{layer}.hook_resid_pre"
    with model.hooks({name: lambda value, name: cache[name]}):
        torch.testing.assert_close(model(x), output)

    def at_3(value, name):
        return torch.cat([value[:, :3], cache[name][:, 3:4], value[:, 4:]], dim=1)

    with model.hooks({name: at_3}):
        patched = model(x)
    streams, others = (by_hand(model, each)[1][name] for each in (x, other))
    mixed = np.concatenate([streams[:, :3], others[:, 3:4], streams[:, 4:]], axis=1)
    np.testing.assert_allclose(patched, by_hand(model, x, {name: lambda _: mixed})[0], atol=1e-8)
    if model.config.causal:
        torch.testing.assert_close(patched[:, :3], model(x)[:, :3])


def test_a_value_asked_for_is_in_the_cache_as_the_hooks_left_it():
    model, x = model_and_inputs(decoder)
    name = "blocks.1.attn.hook_pattern"
    with model.hooks({name: lambda value, _: torch.full_like(value, 0.2)}):
        output, cache = model.run_with_cache(x, names=[name, "blocks.1.attn.hook_z", "blocks.1.attn.hook_v"])
    assert (cache[name] == 0.2).all()
    mean = cache["blocks.1.attn.hook_v"].mean(2, keepdim=True).expand_as(cache["blocks.1.attn.hook_v"])
    torch.testing.assert_close(cache["blocks.1.attn.hook_z"], mean)
    assert (output - model(x)).abs().max() > 1e-3


def test_names_choose_and_nothing_else_is_computed(monkeypatch):
    model, x = model_and_inputs(decoder)
    assert list(model.run_with_cache(x, names="hook_embed")[1]) == ["hook_embed"]
    names = [name for name in model.hook_names if "pattern" not in name]
    monkeypatch.setattr("companion.core.decoder.Attention.pattern", None)
    model(x)
    assert list(model.run_with_cache(x, names=names)[1]) == names
    with pytest.raises(TypeError):
        model.run_with_cache(x)


@of_both
def test_what_is_on_request_is_what_each_head_reads_and_writes(make, switches):
    """Each head's own copy of the stream; what all heads write together is what attention adds."""
    model, asked = model_and_inputs(make, **switches)
    heads, requested = model.config.heads, list(model.at.on_request)
    plain, whole = model.run_with_cache(asked)
    assert not set(requested) & set(whole)
    output, cache = model.run_with_cache(asked, names=requested)
    assert list(cache) == requested
    torch.testing.assert_close(output, plain, rtol=0, atol=1e-9)
    for layer, block in enumerate(model.blocks):
        stream = whole[f"blocks.{layer}.hook_resid_pre"][:, None].expand(-1, heads, -1, -1)
        for kind in "qkv":
            torch.testing.assert_close(cache[f"blocks.{layer}.hook_{kind}_input"], stream)
        written = cache[f"blocks.{layer}.attn.hook_result"]
        torch.testing.assert_close(written.sum(1), whole[f"blocks.{layer}.hook_attn_out"])
        for head in range(heads):
            z = whole[f"blocks.{layer}.attn.hook_z"] * (torch.arange(heads) == head).double()[:, None, None]
            torch.testing.assert_close(written[:, head], block.attention.out(z.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("kind", ["q", "k", "v"])
@of_both
def test_one_head_reads_what_a_hook_gives_it_and_no_other_head_does(make, switches, kind):
    """Not even one that shares its keys and values."""
    model, asked = model_and_inputs(make, **switches)
    head = max(0, model.config.heads - 2)
    names = [f"blocks.1.attn.hook_{each}" for each in "qkv"]
    _, before = model.run_with_cache(asked, names=names)
    other = torch.randn(2, 5, model.config.width, dtype=torch.float64)

    def one_head_reads_another(value, _):
        value[:, head] = other  # in place: each head has a stream of its own
        return value

    with model.hooks({f"blocks.1.hook_{kind}_input": one_head_reads_another}):
        _, after = model.run_with_cache(asked, names=names)
    with model.hooks({"blocks.1.hook_resid_pre": lambda value, _: other}):
        _, all_read_it = model.run_with_cache(asked, names=names)
    others = torch.arange(model.config.heads) != head
    for name in names:
        mine = all_read_it if name.endswith(kind) else before
        torch.testing.assert_close(after[name][:, head], mine[name][:, head])
        torch.testing.assert_close(after[name][:, others], before[name][:, others])
    name = f"blocks.1.attn.hook_{kind}"
    assert (after[name][:, head] - before[name][:, head]).abs().max() > 0.01


def test_a_map_with_biases_is_cut_by_heads_with_its_biases():
    model, x = model_and_inputs(decoder)
    for block in model.blocks:
        for name in ("qkv", "out"):
            linear = getattr(block.attention, name)
            biased = nn.Linear(linear.in_features, linear.out_features).double().requires_grad_(False)
            setattr(block.attention, name, biased)
    torch.testing.assert_close(model.run_with_cache(x, names=model.at.on_request)[0], model(x))


def test_hooks_nest_the_inner_after_the_outer():
    (model, x), seen = model_and_inputs(decoder), []

    def note(what):
        return lambda value, name: seen.append((what, name))  # returns None: the value stays

    name = "blocks.0.hook_attn_out"
    with model.hooks({name: note("outer"), "hook_embed": note("outer")}):
        with model.hooks({name: note("inner")}) as inside:
            assert inside is model
            within = model(x)
        model(x)
    assert torch.equal(within, model(x))
    outer, inner = ("outer", name), ("inner", name)
    assert seen == [("outer", "hook_embed"), outer, inner, ("outer", "hook_embed"), outer]
    with (
        model.hooks({"hook_embed": lambda value, _: 2 * value}),
        model.hooks({"hook_embed": lambda value, _: value + 1}),
    ):
        assert torch.equal(
            model.run_with_cache(x, names="hook_embed")[1]["hook_embed"], 2 * (x + model.positions[:5]) + 1
        )


def test_the_same_function_may_be_asked_twice():
    model, x = model_and_inputs(decoder)
    hook = {"hook_embed": lambda value, _: 2 * value}
    with model.hooks(hook):
        with model.hooks(hook):
            twice = model.run_with_cache(x, names="hook_embed")[1]["hook_embed"]
        once = model.run_with_cache(x, names="hook_embed")[1]["hook_embed"]
    assert torch.equal(twice, 2 * once)
    assert not model.at.hooks


def test_no_hook_is_left_behind_by_what_fails():
    model, x = model_and_inputs(decoder)
    plain = model(x)
    with pytest.raises(KeyError), model.hooks({"hook_embed": lambda value, _: 0 * value}):
        raise KeyError
    with pytest.raises(ZeroDivisionError), model.hooks({"blocks.1.hook_resid_pre": lambda value, _: value / (1 // 0)}):
        model(x)
    with pytest.raises(ValueError, match="with length at most 7"):
        model.run_with_cache(inputs(model, length=8))
    assert not model.at.hooks
    assert torch.equal(model(x), plain)


def test_unknown_names_are_told_what_there_is():
    model = decoder(layers=2, attention="delta", mlp=0)
    there = (
        "must be one of hook_embed, ln_final.hook_normalized, blocks.N.{hook_resid_pre, attn.hook_q, attn.hook_k, "
        "attn.hook_v, attn.hook_z, hook_attn_out, hook_resid_post, hook_q_input, hook_k_input, hook_v_input, "
        "attn.hook_result} for N = 0, 1"
    )
    for name in ("blocks.0.attn.hook_pattern", "blocks.2.attn.hook_q", "hook_q", "blocks.0.mlp.hook_post"):
        with pytest.raises(ValueError) as raised, model.hooks({"hook_embed": lambda value, _: value, name: print}):
            pass
        assert str(raised.value) == f"hook = {name!r}: {there}"
        with pytest.raises(ValueError, match=f"hook = '{name}'"):
            model.run_with_cache(inputs(model), names=name)
    assert not model.at.hooks
    with pytest.raises(KeyError, match=r"'hook_embed' is not in the cache, which has blocks.N.\{hook_attn_out\} for N"):
        model.run_with_cache(inputs(model), names=["blocks.0.hook_attn_out"])[1]["hook_embed"]
    with pytest.raises(KeyError, match="which has nothing"):
        Cache()["hook_embed"]


def test_a_value_of_another_shape_is_refused():
    model = decoder()
    with (
        pytest.raises(
            ValueError,
            match=r"blocks.0.hook_attn_out: its hook returned a value of shape \(2, 1, 12\); must be \(2, 5, 12\)",
        ),
        model.hooks({"blocks.0.hook_attn_out": lambda value, _: value.mean(1, keepdim=True)}),
    ):
        model(inputs(model))


def test_gradients_flow_through_the_cache_and_through_hooks():
    model = decoder()
    x = inputs(model).requires_grad_()
    output, cache = model.run_with_cache(x)
    (gradient,) = torch.autograd.grad(output.square().sum(), cache["blocks.2.hook_resid_pre"], retain_graph=True)
    assert gradient.abs().min() > 0
    with model.hooks({"blocks.2.hook_resid_pre": lambda value, _: value.detach()}):
        assert not model(x).requires_grad


def test_a_copy_has_a_door_of_its_own():
    model, x = model_and_inputs(decoder)
    other = copy.deepcopy(model)
    with other.hooks({"blocks.1.attn.hook_z": lambda value, _: 0 * value}):
        assert not model.at.hooks
        assert not other.run_with_cache(x)[1]["blocks.1.hook_attn_out"].any()
        assert model.run_with_cache(x)[1]["blocks.1.hook_attn_out"].any()


def test_the_state_has_no_more_keys_than_before():
    assert list(Decoder(DecoderConfig(**CONFIG | {"layers": 1, "attention": "delta"})).state_dict()) == [
        "positions",
        "blocks.0.norm1.weight",
        "blocks.0.norm1.bias",
        "blocks.0.attention.qkv.weight",
        "blocks.0.attention.out.weight",
        "blocks.0.attention.strength.weight",
        "blocks.0.mlp.0.weight",
        "blocks.0.mlp.0.bias",
        "blocks.0.mlp.1.weight",
        "blocks.0.mlp.3.weight",
        "norm.weight",
        "norm.bias",
    ]


AROUND = {
    "adder": lambda: (Adder(AdderConfig(9, 8, 2, 2, frozen=False)), torch.tensor([[1, 2], [8, 8]])),
    "tokens": lambda: (TokenModel(TokenModelConfig(9, 6, 8, 2, 2)), torch.randint(9, (2, 6))),
    "bigrams": lambda: (BigramModel(BigramModelConfig(9, 6, 8, trains="everything")), torch.randint(9, (2, 6))),
    "structure": lambda: (Structure(StructureConfig(5, 2, 2, width=8)), torch.randn(2, 5, 2)),
    "regressor": lambda: (InContextRegressor(RegressorConfig(3, 5, 8, 2, 2)), torch.randn(2, 5, 3), torch.randn(2, 5)),
    "delta": lambda: (
        InContextRegressor(RegressorConfig(3, 5, 8, 2, 2, mixer="delta", tokens="interleaved")),
        torch.randn(2, 5, 3),
        torch.randn(2, 5),
    ),
    "lstm": lambda: (
        InContextRegressor(RegressorConfig(3, 5, 8, 2, 2, mixer="lstm")),
        torch.randn(2, 5, 3),
        torch.randn(2, 5),
    ),
}


def first(output):
    return output[0] if isinstance(output, tuple) else output


@pytest.mark.parametrize("name", AROUND)
def test_models_around_a_decoder_pass_its_door_on(name):
    model, *given = AROUND[name]()
    read, whole = [], model(*given)
    with model.decoder.hooks({"hook_embed": lambda value, _: read.append(value)}):
        model(*given)
    output, cache = model.run_with_cache(*given)
    torch.testing.assert_close(first(output), first(whole), rtol=1e-4, atol=1e-5)
    assert list(cache) == model.hook_names == model.decoder.hook_names
    assert torch.equal(cache["hook_embed"], read[0])
    streams = model.decoder.streams(read[0] - (model.decoder.positions if name not in ("structure", "lstm") else 0))
    for layer in range(len(streams) - 1):
        torch.testing.assert_close(cache[f"blocks.{layer}.hook_resid_post"], streams[layer + 1], rtol=1e-4, atol=1e-5)
    with model.hooks({"blocks.1.hook_resid_post": lambda value, _: torch.zeros_like(value)}):
        assert not model.run_with_cache(*given)[1]["blocks.1.hook_resid_post"].any()
    assert not model.decoder.at.hooks


def test_an_lstm_names_its_hidden_states_as_a_decoder_its_streams():
    model, x = LSTM(LSTMConfig(6, 3)), torch.randn(2, 5, 6)
    cache = model.run_with_cache(x)[1]
    assert list(cache) == ["hook_embed", *(f"blocks.{layer}.hook_resid_post" for layer in range(3))]
    hidden = x
    for layer, stream in zip(model.layers, model.streams(x)[1:], strict=True):
        hidden = layer(hidden)[0]
        assert torch.equal(hidden, stream)
    with model.hooks({"blocks.0.hook_resid_post": lambda value, _: torch.zeros_like(value)}):
        torch.testing.assert_close(model(x), model.layers[2](model.layers[1](torch.zeros_like(x))[0])[0])
