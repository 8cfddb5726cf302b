"""Tokens in, logits out; what is generated is read again."""

import pytest
import torch

from companion.topics.limits.model import StepModel, StepModelConfig


@pytest.mark.parametrize("recurrent", [False, True])
def test_logits_see_the_past_alone(recurrent):
    model = StepModel(StepModelConfig(3, 6, 8, recurrent=recurrent)).eval()
    tokens = torch.tensor([[0, 1, 2, 0, 1, 2]])
    other = tokens.clone()
    other[0, -1] = 0
    assert model(tokens).shape == (1, 6, 3)
    torch.testing.assert_close(model(tokens)[:, :-1], model(other)[:, :-1])
    assert not torch.allclose(model(tokens)[:, -1], model(other)[:, -1])


def test_only_a_model_with_own_places_minds_where_a_sequence_begins():
    model = StepModel(StepModelConfig(3, 6, 8, own_places=True)).eval()
    tokens = torch.tensor([[0, 1, 2], [0, 1, 2]])
    torch.testing.assert_close(model(tokens), model(tokens, torch.tensor([0, 0])))
    first, second = model(tokens, torch.tensor([0, 3]))
    torch.testing.assert_close(first, model(tokens)[0])
    assert not torch.allclose(first, second)
    with torch.no_grad():
        model.places[3:6] = model.places[:3]
    torch.testing.assert_close(*model(tokens, torch.tensor([0, 3])))
    with pytest.raises(ValueError, match="places: 6 is out of range"):
        model(tokens, torch.tensor([0, 4]))
    with pytest.raises(ValueError, match="start: must not be given"):
        StepModel(StepModelConfig(3, 6, 8))(tokens, torch.tensor([0, 0]))


def test_what_is_generated_is_read_again():
    model = StepModel(StepModelConfig(4, 8, 8)).eval()
    tokens = torch.tensor([[0, 1, 2], [3, 0, 1]])
    written = model.generate(tokens, 4)
    assert written.shape == (2, 4)
    for i in range(4):
        seen = torch.cat([tokens, written[:, :i]], 1)
        assert torch.equal(model(seen)[:, -1].argmax(-1), written[:, i])


def test_bad_arguments_are_named():
    model = StepModel(StepModelConfig(3, 6, 8))
    with pytest.raises(ValueError, match="tokens: 3 is out of range"):
        model(torch.tensor([[3]]))
    with pytest.raises(ValueError, match="steps = 0"):
        model.generate(torch.tensor([[0]]), 0)
    with pytest.raises(ValueError, match="vocabulary = 1"):
        StepModelConfig(1, 6)
    with pytest.raises(ValueError, match="own_places = True: an LSTM has no positions"):
        StepModelConfig(3, 6, recurrent=True, own_places=True)
