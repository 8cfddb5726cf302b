import pytest
import torch

from companion.core.llama import Llama, LlamaConfig
from companion.topics.language.exercises import rotary
from companion.topics.language.probes import (
    answer_places,
    head_maps,
    median_place,
    streams_and_writers,
    streams_at,
    toward_followers,
    toward_receivers,
    turned_by,
)


@pytest.fixture
def llama():
    torch.manual_seed(0)
    return Llama(LlamaConfig(7, 24, 3, 6, 2, 8, 9, base=50.0)).double()


@pytest.fixture
def tokens():
    return torch.randint(7, (2, 9), generator=torch.Generator().manual_seed(0))


def test_a_right_rotation_leaves_the_model_as_it_is_and_none_does_not(llama, tokens):
    logits = llama(tokens)
    with llama.hooks(turned_by(lambda x: rotary.answer(x, 50.0), 3)):
        torch.testing.assert_close(llama(tokens), logits)
    with llama.hooks(turned_by(lambda x: x, 3)):
        assert (llama(tokens) - logits).abs().max() > 0.01


def test_a_heads_maps_give_what_it_writes(llama, tokens):
    stream, _ = streams_and_writers(llama, tokens, 1)
    _, cache = llama.run_with_cache(tokens, names=["blocks.1.attn.hook_result", "blocks.1.attn.hook_pattern"])
    maps = head_maps(llama, 1)
    assert maps.shape == (6, 4, 4, 24)
    normed = llama.blocks[1].norm1(stream)
    for head, (WQ, WK, WV, WO) in enumerate(maps):
        pattern = cache["blocks.1.attn.hook_pattern"][:, head]
        torch.testing.assert_close(pattern @ normed @ WV.mT @ WO, cache["blocks.1.attn.hook_result"][:, head])
        scores = rotary.answer(normed @ WQ.mT, 50.0) @ rotary.answer(normed @ WK.mT, 50.0).mT / 2
        future = torch.ones(9, 9, dtype=torch.bool).triu(1)
        torch.testing.assert_close(scores.masked_fill(future, -torch.inf).softmax(-1), pattern)


def test_writers_come_layer_by_layer_and_are_what_the_stream_grows_by(llama, tokens):
    _, wrote = streams_and_writers(llama, tokens, 2)
    names = ["blocks.0.hook_attn_out", "blocks.1.hook_attn_out", "blocks.1.attn.hook_result"]
    _, cache = llama.run_with_cache(tokens, names=names)
    assert wrote.shape == (12, 2, 9, 24)
    for layer in range(2):
        added = wrote[6 * layer : 6 * layer + 6].sum(0)
        torch.testing.assert_close(added, cache[f"blocks.{layer}.hook_attn_out"])
    torch.testing.assert_close(wrote[8], cache["blocks.1.attn.hook_result"][:, 2])


def test_what_followed_an_earlier_occurrence_is_weighed_and_nothing_else():
    weights = toward_followers(torch.tensor([[5, 6, 5, 5], [1, 2, 3, 1]]))
    due = torch.zeros(2, 4, 4)
    due[0, 2, 1] = due[0, 3, 1] = due[0, 3, 3] = due[1, 3, 1] = 1 / 3
    torch.testing.assert_close(weights, due)


def test_the_receiver_is_weighed_against_the_giver_where_each_first_stands():
    weights = toward_receivers(torch.tensor([[5, 6, 5, 8], [1, 2, 3, 1]]), [6, 1], [5, 3])
    due = torch.zeros(2, 4, 4)
    due[0, 3, 1] = due[1, 3, 0] = 1 / 2
    due[0, 3, 0] = due[1, 3, 2] = -1 / 2
    torch.testing.assert_close(weights, due)


def test_streams_at_a_place_are_what_layers_read_there(llama, tokens):
    found = streams_at(llama, tokens, 3, -2)
    for layer, stream in enumerate(found):
        torch.testing.assert_close(stream, streams_and_writers(llama, tokens, layer)[0][:, -2] if layer else stream)
    assert found.shape == (3, 2, 24) and (found[1] != found[0]).all()


def test_the_token_that_gains_most_has_the_first_place():
    gains = torch.tensor([[3.0, 1, 2, 0], [0, 1, 2, 3], [0, 1, 2, 3]])
    assert answer_places(gains, torch.tensor([2, 0, 1])).tolist() == [2, 4, 3]
    assert median_place(gains, torch.tensor([0, 3, 3])) == 1
    assert median_place(gains, torch.tensor([3, 3, 2])) == 2
