"""What a Llama promises beside its forward pass, which `test_hooks` compares with one in NumPy."""

import copy

import pytest
import torch
from core.by_hand import LLAMA, inputs, llama
from refusals import refusals

from companion.core.llama import LlamaConfig, rotated, rotation


def test_scores_see_how_far_apart_two_tokens_are_and_not_where():
    q, k = torch.randn(2, 4, dtype=torch.float64)
    by_place = [rotated(x.expand(1, 1, 9, 4), rotation(9, 4, 50.0, like=x)) for x in (q, k)]
    scores = (by_place[0] @ by_place[1].mT)[0, 0]  # (query's place, key's place)
    for distance in range(-8, 9):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along))
    assert scores[0].unique().numel() == 9


def test_the_last_places_logits_alone_are_the_last_of_all():
    model = llama()
    tokens = inputs(model, length=7)
    torch.testing.assert_close(model(tokens, only_last=True), model(tokens)[:, -1:])
    logits, cache = model.run_with_cache(tokens, names="ln_final.hook_normalized", only_last=True)
    assert logits.shape == (2, 1, 19)
    assert cache["ln_final.hook_normalized"].shape == (2, 7, 24)


@pytest.mark.parametrize("names", [[], ["blocks.0.attn.hook_pattern", "blocks.1.hook_k_input"]], ids=["plain", "asked"])
def test_half_the_precision_is_near_the_whole(names):
    model = llama()
    tokens = inputs(model)
    half = copy.deepcopy(model).bfloat16()
    logits, cache = half.run_with_cache(tokens, names=names)
    assert {logits.dtype, *(value.dtype for value in cache.values())} == {torch.bfloat16}
    torch.testing.assert_close(logits.double(), model(tokens), rtol=0, atol=0.1 * model(tokens).abs().max().item())


test_what_does_not_fit_is_refused = refusals(
    (
        lambda: LlamaConfig(**LLAMA | {"heads": 5}),
        "heads = 5: width / heads must be a whole and even number; width = 24",
    ),
    (
        lambda: LlamaConfig(**LLAMA | {"heads": 8}),
        "heads = 8: width / heads must be a whole and even number; width = 24",
    ),
    (lambda: LlamaConfig(**LLAMA | {"key_heads": 4}), "key_heads = 4: must divide heads = 6"),
    (lambda: LlamaConfig(**LLAMA | {"layers": 0}), "layers = 0: must be at least 1"),
    (lambda: llama()(inputs(llama(), length=10)), r"tokens of shape \(2, 10\): length must be 1 to 9"),
    (lambda: llama()(inputs(llama())[:, :0]), r"tokens of shape \(2, 0\): length must be 1 to 9"),
    (lambda: llama()(inputs(llama()) + 19), r"tokens: \d+ is out of range; must be 0 to 18"),
)
