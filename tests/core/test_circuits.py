"""The tools against what is known: a circuit of two heads written down by hand, where cutting a wire gives an exact
value, and a forward pass of a small Llama that is put together from its own matrices.
"""

import math

import pytest
import torch
from core.by_hand import llama, random_norms
from refusals import refusals
from torch import nn

from companion.core.circuits import (
    Part,
    _scale,
    ablation,
    direct_attribution,
    interchange,
    known_norm,
    unscaled,
    wire,
    wires,
)
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.llama import Llama
from companion.core.lstm import LSTM, LSTMConfig
from companion.topics.attention.model import TokenModel, TokenModelConfig

N, T, BETA = 5, 8, 60.0  # tokens, positions, sharpness
TOKEN, PLACE, BEFORE = slice(0, N), slice(N, N + T), slice(N + T, 2 * N + T)  # blocks of the stream
WIDTH, HEADS = 36, 2
H = WIDTH // HEADS
READER, WRITER = Part(1, 1), Part(0, 0)
TOKENS = torch.tensor([[3, 1, 4, 2, 0, 3, 1, 4], [0, 4, 1, 3, 2, 0, 4, 1]])


def rows(block: slice, matrix: torch.Tensor) -> torch.Tensor:
    """(h, width): reads one block of the stream by a matrix."""
    made = torch.zeros(H, WIDTH, dtype=torch.float64)
    made[: len(matrix), block] = matrix.double()
    return made


def induction() -> TokenModel:
    """Head 0.0 writes the token before each place; head 1.1 looks for the place after the same token, and says what
    stands there. Heads 0.1 and 1.0 write small random values, which nobody needs.
    """
    model = TokenModel(TokenModelConfig(N, T, WIDTH, 2, HEADS)).double().requires_grad_(False)
    decoder = model.decoder
    torch.manual_seed(0)
    model.embed.weight.zero_()[:, TOKEN] = torch.eye(N, dtype=torch.float64)
    decoder.positions.zero_()[:, PLACE] = torch.eye(T, dtype=torch.float64)
    model.unembed.weight.zero_()[:, TOKEN] = torch.eye(N, dtype=torch.float64)
    decoder.norm = nn.Identity()
    scale = BETA * H**0.5
    for layer, block in enumerate(decoder.blocks):
        block.norm1 = nn.Identity()
        q_k_v = block.attention.qkv.weight.view(3, HEADS, H, WIDTH)
        out = block.attention.out.weight.view(WIDTH, HEADS, H)
        noise = 1 - layer
        q_k_v[:, noise].normal_(std=0.1)
        out[:, noise] = 0
        out[-3:, noise].normal_(std=0.1)  # in channels that nobody reads
        if layer == 0:
            q_k_v[:, 0] = torch.stack(
                [
                    rows(PLACE, scale * torch.eye(T)),
                    rows(PLACE, torch.eye(T).roll(-1, 1)),  # the key of place s answers the query of s + 1
                    rows(TOKEN, torch.eye(N)),
                ]
            )
            out[:, 0] = 0
            out[BEFORE, 0, :N] = torch.eye(N, dtype=torch.float64)
        else:
            q_k_v[:, 1] = torch.stack(
                [rows(TOKEN, scale * torch.eye(N)), rows(BEFORE, torch.eye(N)), rows(TOKEN, torch.eye(N))]
            )
            out[:, 1] = 0
            out[TOKEN, 1, :N] = torch.eye(N, dtype=torch.float64)
    return model


def follows(pattern: torch.Tensor) -> torch.Tensor:
    """How much the places 6 and 7 look at the place after the same token, 2 and 3."""
    return pattern.diagonal(-4, dim1=-2, dim2=-1)[:, 2:].mean()


def pattern_of(model, reader, hooks):
    name = f"blocks.{reader.layer}.attn.hook_pattern"
    with model.hooks(hooks):
        return model.run_with_cache(TOKENS, names=name)[1][name][:, reader.head]


def test_the_circuit_by_hand_is_one():
    model = induction()
    assert follows(pattern_of(model, READER, {})).item() == pytest.approx(1, abs=1e-9)
    said = nn.functional.one_hot(TOKENS[:, 6], N) + nn.functional.one_hot(TOKENS[:, 2], N)
    torch.testing.assert_close(model(TOKENS)[:, 6], said.double(), msg="its own token, and what followed it")


def test_a_cut_wire_leaves_exactly_what_the_reader_sees_without_it():
    """Keys without the token before: all scores are 0, and place t looks at each of 0 .. t alike."""
    model = induction()
    cut = pattern_of(model, READER, wire(WRITER, READER, "keys"))
    alike = (torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]).double().expand(2, -1, -1)
    torch.testing.assert_close(cut, alike)
    whole = pattern_of(model, READER, {})
    for other in (wire(WRITER, READER, "queries"), wire(WRITER, READER, "values"), wire(Part(0, 1), READER, "keys")):
        torch.testing.assert_close(pattern_of(model, READER, other), whole)


def test_only_that_one_wire_is_cut():
    """The stream still has what the writer wrote, and the reader's neighbour still reads it."""
    model = induction()
    names = ["blocks.1.hook_resid_pre", *(f"blocks.1.attn.hook_{kind}" for kind in "qkv")]
    _, before = model.run_with_cache(TOKENS, names=names)
    for side in ("queries", "keys", "values"):
        with model.hooks(wire(WRITER, READER, side)):
            _, after = model.run_with_cache(TOKENS, names=names)
        assert torch.equal(after[names[0]], before[names[0]])
        for name in names[1:]:
            torch.testing.assert_close(after[name][:, 0], before[name][:, 0])
            if not name.endswith(side[0]):
                torch.testing.assert_close(after[name][:, 1], before[name][:, 1])


def test_the_wire_can_carry_what_was_written_on_another_text():
    """With the keys of another text, the reader looks where *that* text has its token before."""
    model = induction()
    other = TOKENS.flip(0)
    _, cache = model.run_with_cache(other, names=WRITER.written)
    swapped = pattern_of(model, READER, wire(WRITER, READER, "keys", other=WRITER.of(cache[WRITER.written])))
    before = torch.cat([torch.full((2, 1), -1), other[:, :-1]], 1)  # what stands before each place of the other text
    before[:, 0] = other[:, 0]  # the first place has nothing before it and reads itself
    matches = (TOKENS[:, :, None] == before[:, None, :]) & torch.ones(T, T, dtype=torch.bool).tril()
    expected = (
        torch.where(matches, BETA, 0.0).double().masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -torch.inf)
    )
    torch.testing.assert_close(swapped, expected.softmax(-1))


def test_the_wires_from_all_earlier_heads_name_the_one_that_counts():
    model = induction()
    by_keys = wires(model, TOKENS, reader=READER, side="keys", measure=follows)
    uniform = (1 / 7 + 1 / 8) / 2
    torch.testing.assert_close(by_keys, torch.tensor([[uniform, 1.0]], dtype=torch.float64))
    by_queries = wires(model, TOKENS, reader=READER, side="queries", measure=follows)
    torch.testing.assert_close(by_queries, torch.ones(1, 2, dtype=torch.float64))


def small_llama() -> Llama:
    return llama(layers=3)


def decoder_on_tokens() -> TokenModel:
    return random_norms(TokenModel(TokenModelConfig(19, 9, 24, 3, 6)))


MODELS = pytest.mark.parametrize("make", [small_llama, decoder_on_tokens])
TEXTS = torch.randint(19, (3, 9), generator=torch.Generator().manual_seed(3))


@MODELS
@pytest.mark.parametrize("side", ["queries", "keys", "values"])
def test_a_cut_wire_is_the_readers_own_matrices_on_the_rest_of_the_stream(make, side):
    """Head 2.4's side, from its norm and matrix, on the stream less what 0.3 wrote."""
    model, writer, reader = make(), Part(0, 3), Part(2, 4)
    name = f"blocks.2.attn.hook_{side[0]}"
    _, cache = model.run_with_cache(TEXTS, names=["blocks.2.hook_resid_pre", writer.written])
    block = model.body.blocks[2]
    normed = block.norm1(cache["blocks.2.hook_resid_pre"] - cache[writer.written][:, 3])
    if isinstance(model, Llama):
        matrix = {"q": block.attention.queries, "k": block.attention.keys, "v": block.attention.values}[side[0]].weight
        row = 4 * (4 if side == "queries" else 1)  # heads 3 to 5 share the second keys and values
    else:
        matrix = block.attention.qkv.weight.view(3, 24, 24)["qkv".index(side[0])]
        row = 4 * 4
    with model.hooks(wire(writer, reader, side)):
        _, cut = model.run_with_cache(TEXTS, names=name)
    torch.testing.assert_close(cut[name][:, 4], normed @ matrix[row : row + 4].mT)


@MODELS
@pytest.mark.parametrize("side", ["queries", "keys"])
def test_all_wires_are_what_one_by_one_gives(make, side):
    model, reader = make(), Part(2, 1)

    def spread(pattern):
        return pattern.square().mean()

    name = "blocks.2.attn.hook_pattern"
    found = wires(model, TEXTS, reader=reader, side=side, measure=spread)
    assert found.shape == (2, 6)
    for layer, head in ((0, 0), (0, 5), (1, 2)):
        with model.hooks(wire(Part(layer, head), reader, side)):
            _, cache = model.run_with_cache(TEXTS, names=name)
        torch.testing.assert_close(found[layer, head], spread(cache[name][:, 1]))
    assert found.unique().numel() == 12


def test_embedding_and_mlp_write_as_well():
    model, reader = small_llama(), Part(1, 0)
    for writer, name in ((Part(-1), "hook_embed"), (Part(0), "blocks.0.hook_mlp_out")):
        assert writer.written == name
        _, cache = model.run_with_cache(TEXTS, names=[name, "blocks.1.hook_resid_pre"])
        with model.hooks(wire(writer, reader, "values")):
            _, cut = model.run_with_cache(TEXTS, names="blocks.1.hook_v_input")
        expected = cache["blocks.1.hook_resid_pre"] - cache[name]
        torch.testing.assert_close(cut["blocks.1.hook_v_input"][:, 0], expected)


@MODELS
def test_the_parts_of_a_logit_add_up_to_it(make):
    model = make()
    unembedding = model.unembedding if isinstance(model, Llama) else model.unembed.weight
    for place in (-1, 4):
        parts = direct_attribution(model, TEXTS, direction=unembedding[7], place=place)
        logit = model(TEXTS)[:, place, 7]
        torch.testing.assert_close(parts.embedding + parts.heads.sum((1, 2)) + parts.mlps.sum(1) + parts.rest, logit)
        bias = model.body.norm.bias @ unembedding[7] if make is decoder_on_tokens else 0.0
        torch.testing.assert_close(parts.rest, torch.zeros(3).double() + bias)
    both = torch.stack([unembedding[7], unembedding[7], unembedding[2]])
    mixed = direct_attribution(model, TEXTS, direction=both)
    torch.testing.assert_close(mixed.heads[2], direct_attribution(model, TEXTS, direction=unembedding[2]).heads[2])
    torch.testing.assert_close(mixed.heads[:2], direct_attribution(model, TEXTS, direction=unembedding[7]).heads[:2])


@MODELS
def test_a_parts_share_is_what_the_logit_loses_without_it_while_the_scale_is_held(make):
    """The last stream less what head 1.2 wrote, through the last norm with the whole stream's scale, by hand."""
    model = make()
    unembedding = model.unembedding if isinstance(model, Llama) else model.unembed.weight
    names = ["blocks.2.hook_resid_post", "blocks.1.attn.hook_result"]
    _, cache = model.run_with_cache(TEXTS, names=names)
    stream, written = cache[names[0]][:, -1], cache[names[1]][:, 2, -1]
    norm = model.body.norm
    if isinstance(norm, nn.LayerNorm):
        written = written - written.mean(-1, keepdim=True)
        scale = stream.var(-1, correction=0) + norm.eps
    else:
        scale = stream.square().mean(-1) + norm.eps
    expected = (written * norm.weight) @ unembedding[7] / scale.sqrt()
    got = direct_attribution(model, TEXTS, direction=unembedding[7])
    torch.testing.assert_close(got.heads[:, 1, 2], expected)
    assert got.mlps.any() == isinstance(model, Llama), "this decoder has no MLPs"


def test_the_circuit_by_hand_answers_by_its_second_head_alone():
    """At place 6 (token 1, which 4 followed), 1.1 adds 1 to the logit of 4, and the embedding 1 to that of 1."""
    model = induction()
    parts = direct_attribution(model, TOKENS[:1], direction=model.unembed.weight[4] - model.unembed.weight[1], place=6)
    torch.testing.assert_close(parts.embedding, torch.tensor([-1.0]).double())
    torch.testing.assert_close(parts.heads, torch.tensor([[[0.0, 0.0], [0.0, 1.0]]]).double(), atol=1e-9, rtol=0)
    assert not parts.mlps.any()
    assert parts.rest.abs() < 1e-9


def test_a_norm_that_is_none_leaves_what_was_written():
    x = torch.randn(2, 4)
    assert unscaled(nn.Identity(), x) is x


def test_a_last_norm_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="norm = BatchNorm1d: must be a LayerNorm, an RMSNorm or an Identity"):
        known_norm(nn.BatchNorm1d(4))


def test_a_norm_without_an_eps_of_its_own_has_torchs():
    norm, x = nn.RMSNorm(4), 1e-4 * torch.randn(2, 4)
    torch.testing.assert_close(unscaled(norm, x) * _scale(norm, x)[:, None], norm(x))


@MODELS
def test_interchange_puts_one_head_at_one_place(make):
    model, name = make(), "blocks.1.attn.hook_z"
    _, other = model.run_with_cache(TEXTS.flip(1), names=name)
    _, mine = model.run_with_cache(TEXTS, names=name)
    for place in (-1, 3, [2, 5], slice(4, None), None):
        with model.hooks(interchange(name, other[name], head=4, place=place)):
            _, cache = model.run_with_cache(TEXTS, names=name)
        changed = torch.zeros(9, dtype=torch.bool)
        changed[slice(None) if place is None else place] = True
        torch.testing.assert_close(cache[name][:, 4, changed], other[name][:, 4, changed])
        torch.testing.assert_close(cache[name][:, 4, ~changed], mine[name][:, 4, ~changed])
        torch.testing.assert_close(cache[name][:, :4], mine[name][:, :4])


@MODELS
def test_the_whole_stream_of_another_text_is_the_other_run(make):
    model, name = make(), "blocks.2.hook_resid_pre"
    _, other = model.run_with_cache(TEXTS.flip(1), names=name)
    with model.hooks(interchange(name, other[name])):
        torch.testing.assert_close(model(TEXTS), model(TEXTS.flip(1)))
    with model.hooks(interchange(name, other[name][:1])):  # one text for all
        torch.testing.assert_close(model(TEXTS), model(TEXTS.flip(1))[:1].expand(3, -1, -1))


@MODELS
def test_ablations_are_zero_the_mean_and_the_neighbours_value(make):
    model, name = make(), "blocks.1.attn.hook_z"
    _, mine = model.run_with_cache(TEXTS, names=name)
    _, other = model.run_with_cache(TEXTS.flip(1), names=name)
    for options, expected in (
        ({"kind": "zero"}, torch.zeros_like(mine[name])),
        ({"kind": "mean"}, mine[name].mean((0, 2), keepdim=True).expand_as(mine[name])),
        ({"kind": "mean", "other": other[name]}, other[name].mean((0, 2), keepdim=True).expand_as(mine[name])),
        ({"kind": "resample"}, mine[name][[1, 2, 0]]),
        ({"kind": "resample", "other": other[name]}, other[name]),
    ):
        with model.hooks(ablation(name, head=4, **options)):
            _, cache = model.run_with_cache(TEXTS, names=name)
        torch.testing.assert_close(cache[name][:, 4], expected[:, 4])
        torch.testing.assert_close(cache[name][:, :4], mine[name][:, :4])


def test_the_circuit_by_hand_without_its_first_head():
    """Zero leaves the reader nothing to look for; what another text has before each place sends it elsewhere."""
    model, name = induction(), "blocks.0.attn.hook_z"
    uniform = (1 / 7 + 1 / 8) / 2
    zero = pattern_of(model, READER, ablation(name, "zero", head=0))
    assert follows(zero).item() == pytest.approx(uniform)
    untouched = pattern_of(model, READER, ablation(name, "zero", head=1))
    assert follows(untouched).item() == pytest.approx(1)
    mean = pattern_of(model, READER, ablation(name, "mean", head=0))
    assert follows(mean).item() == pytest.approx(uniform), "the same key at every place"
    elsewhere = pattern_of(model, READER, ablation(name, "resample", head=0))
    assert follows(elsewhere).item() == pytest.approx(0, abs=1e-9)


def test_parts_may_be_used_as_keys():
    assert {Part(1, 2): 0}[Part(1, 2)] == 0
    assert Part(3) != Part(3, 0)


test_what_cannot_be_done_is_refused = refusals(
    (lambda: Part(-2), "layer = -2: must be at least 0, or -1 for the embedding"),
    (lambda: Part(-1, 0), "layer = -1: must be at least 0, or -1 for the embedding, which has no heads"),
    (lambda: Part(0, -1), "head = -1: must be at least 0, or None for the MLP"),
    (lambda: wire(Part(0), Part(1), "keys"), r"reader = Part\(layer=1, head=None\): must be a head"),
    (lambda: wire(Part(1, 0), Part(1, 1), "keys"), "must be in a layer before the reader's, 1"),
    (
        lambda: wires(induction(), TOKENS, reader=READER, side="values", measure=follows),
        "side = 'values': must be queries or keys",
    ),
    (lambda: patched(head=2), r"head = 2: blocks.0.attn.hook_z has shape \(2, 2, 8, 18\); must be 0 to 1"),
    (lambda: patched(head=-1), "head = -1: blocks.0.attn.hook_z has shape"),
    (lambda: patched(place=8), "place = 8: must be 0 to 7 in blocks.0.attn.hook_z, or -1 to -8"),
    (lambda: patched(place=[0, 9]), r"place = \[0, 9\]: must be 0 to 7 in blocks.0.attn.hook_z, or -1 to -8"),
    (
        lambda: pattern_of(induction(), READER, wire(WRITER, Part(1, 2), "keys")),
        r"head = 2: blocks.1.hook_k_input has shape \(2, 2, 8, 36\); must be 0 to 1",
    ),
    (
        lambda: pattern_of(induction(), READER, wire(Part(0, 2), READER, "keys")),
        r"head = 2: blocks.0.attn.hook_result has shape \(2, 2, 8, 36\); must be 0 to 1",
    ),
    (
        lambda: wires(induction(), TOKENS, reader=Part(0, 1), side="keys", measure=follows),
        r"reader = Part\(layer=0, head=1\): must be in layer 1 or a later one",
    ),
    (lambda: patched("blocks.0.hook_attn_out", head=0), "must be None, as it is not split into heads"),
    (
        lambda: resampled(TOKENS[:1]),
        "kind = 'resample': must have `other`, another run's value, or a batch of several texts",
    ),
    (
        lambda: direct_attribution(LSTM(LSTMConfig(6, 2)), torch.randn(2, 5, 6), direction=torch.ones(6)),
        "must have attention heads",
    ),
    (
        lambda: direct_attribution(delta(attention="lstm"), torch.randn(2, 5, 12), direction=torch.ones(12)),
        "hook = 'blocks.0.attn.hook_result': must be one of hook_embed",
    ),
)


def delta(**switches) -> Decoder:
    return Decoder(DecoderConfig(12, 2, 3, 5, **switches))


def patched(name="blocks.0.attn.hook_z", **options):
    with (model := induction()).hooks(ablation(name, "zero", **options)):
        model(TOKENS)


def resampled(tokens):
    with (model := induction()).hooks(ablation("blocks.0.attn.hook_z", "resample")):
        model(tokens)


test_another_word_is_refused = pytest.mark.types_unchecked(
    refusals(
        (lambda: wire(Part(0, 0), Part(1, 0), "query"), "side = 'query': must be one of queries, keys, values"),
        (lambda: ablation("hook_embed", "noise"), "kind = 'noise': must be one of zero, mean, resample"),
    )
)


def test_every_kind_of_attention_is_cut_into_parts():
    for attention in ("softmax", "relu", "linear", "gated", "delta"):
        torch.manual_seed(0)
        model, x = delta(attention=attention).double().requires_grad_(False), torch.randn(2, 5, 12).double()
        direction = torch.randn(12).double()
        parts = direct_attribution(model, x, direction=direction)
        whole = parts.embedding + parts.heads.sum((1, 2)) + parts.mlps.sum(1)
        torch.testing.assert_close(whole, model(x)[:, -1] @ direction)
        assert math.isclose(parts.rest.abs().max().item(), 0, abs_tol=1e-9)
