"""Tokens in, logits out; what is generated is read again."""

import pytest
import torch
from refusals import refusals

from companion.topics.limits.model import StepModel, StepModelConfig

TOKENS = torch.tensor([[0, 1, 2], [0, 1, 2]])


def small(**switches):
    return StepModel(StepModelConfig(3, 6, 8, **switches)).eval()


@pytest.mark.parametrize("recurrent", [False, True])
def test_logits_see_the_past_alone(recurrent):
    model = small(recurrent=recurrent)
    tokens = torch.tensor([[0, 1, 2, 0, 1, 2]])
    other = tokens.clone()
    other[0, -1] = 0
    assert model(tokens).shape == (1, 6, 3)
    torch.testing.assert_close(model(tokens)[:, :-1], model(other)[:, :-1])
    assert not torch.allclose(model(tokens)[:, -1], model(other)[:, -1])


def test_only_a_model_with_own_places_minds_where_a_sequence_begins():
    model, tokens = small(own_places=True), TOKENS
    torch.testing.assert_close(model(tokens), model(tokens, torch.tensor([0, 0])))
    first, second = model(tokens, torch.tensor([0, 3]))
    torch.testing.assert_close(first, model(tokens)[0])
    assert not torch.allclose(first, second)
    with torch.no_grad():
        model.places[3:6] = model.places[:3]
    torch.testing.assert_close(*model(tokens, torch.tensor([0, 3])))


def test_what_is_generated_is_read_again():
    model = StepModel(StepModelConfig(4, 8, 8)).eval()
    tokens = torch.tensor([[0, 1, 2], [3, 0, 1]])
    written = model.generate(tokens, 4)
    assert written.shape == (2, 4)
    for i in range(4):
        seen = torch.cat([tokens, written[:, :i]], 1)
        assert torch.equal(model(seen)[:, -1].argmax(-1), written[:, i])


test_bad_arguments_are_named = refusals(
    (lambda: small()(torch.tensor([[3]])), "tokens: 3 is out of range"),
    (lambda: small().generate(torch.tensor([[0]]), 0), "steps = 0"),
    (lambda: small()(TOKENS, torch.tensor([0, 0])), "start: must be None for a model whose own_places is False"),
    (lambda: small(own_places=True)(TOKENS, torch.tensor([0, 4])), "places: 6 is out of range"),
    (lambda: StepModelConfig(1, 6), "vocabulary = 1"),
    (lambda: small(recurrent=True, own_places=True), "own_places = True: an LSTM has no positions"),
)
