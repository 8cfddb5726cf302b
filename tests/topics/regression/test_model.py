"""The in-context regressor: how it lays out a prompt, and what each prediction may and must depend on."""

import math
from dataclasses import replace

import pytest
import torch
from refusals import refusals
from torch.autograd.functional import jacobian

from companion.topics.regression.model import MIXERS, InContextRegressor, RegressorConfig, StateRegressor

CONFIG = RegressorConfig(d=2, n=5, width=12, layers=2, heads=2)
both_formats = pytest.mark.parametrize("tokens", ["triplet", "interleaved"])
every_mixer = pytest.mark.parametrize("mixer", MIXERS)


def regressor(tokens, **changes) -> InContextRegressor:
    return InContextRegressor(replace(CONFIG, tokens=tokens, **changes)).double().eval()


def prompt(batch=1, n=5):
    return torch.randn(batch, n, 2, dtype=torch.float64), torch.randn(batch, n, dtype=torch.float64)


def test_a_triplet_is_the_example_before_and_the_input_now():
    xs, ys = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]), torch.tensor([[10.0, 20.0, 30.0]])
    expected = [[0, 0, 0, 1, 2], [1, 2, 10, 3, 4], [3, 4, 20, 5, 6]]
    assert InContextRegressor(CONFIG).tokens(xs, ys)[0].tolist() == expected


def test_interleaved_tokens_alternate_inputs_and_padded_labels():
    xs, ys = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([[10.0, 20.0]])
    expected = [[1, 2], [10, 0], [3, 4], [20, 0]]
    assert InContextRegressor(replace(CONFIG, tokens="interleaved")).tokens(xs, ys)[0].tolist() == expected


def test_interleaved_tokens_of_one_dimension_need_no_padding():
    xs, ys = torch.tensor([[[1.0], [3.0]]]), torch.tensor([[10.0, 20.0]])
    assert InContextRegressor(replace(CONFIG, d=1, tokens="interleaved")).tokens(xs, ys)[0].tolist() == [
        [1],
        [10],
        [3],
        [20],
    ]


@every_mixer
@both_formats
def test_a_prediction_depends_on_every_earlier_example_and_its_input_and_on_nothing_later(tokens, mixer):
    model, (xs, ys) = regressor(tokens, mixer=mixer), prompt()
    for_x, for_y = jacobian(lambda xs, ys: model(xs, ys)[0], (xs, ys))
    influence_of_x = for_x[:, 0].abs().sum(-1)  # (prediction t, example s)
    influence_of_y = for_y[:, 0].abs()
    assert torch.equal(influence_of_x > 0, torch.ones(5, 5).tril() > 0)
    assert torch.equal(influence_of_y > 0, torch.ones(5, 5).tril(-1) > 0)


@every_mixer
@both_formats
def test_the_last_label_is_never_read(tokens, mixer):
    model, (xs, ys) = regressor(tokens, mixer=mixer), prompt()
    spoiled = ys.clone()
    spoiled[:, -1] = 1e6
    assert torch.equal(model(xs, ys), model(xs, spoiled))


@every_mixer
@both_formats
def test_a_shorter_prompt_gives_the_same_predictions(tokens, mixer):
    model, (xs, ys) = regressor(tokens, mixer=mixer), prompt()
    torch.testing.assert_close(model(xs[:, :3], ys[:, :3]), model(xs, ys)[:, :3], rtol=1e-12, atol=1e-12)


@every_mixer
@both_formats
def test_prompts_of_a_batch_do_not_meet(tokens, mixer):
    model, (xs, ys) = regressor(tokens, mixer=mixer), prompt(batch=3)
    alone = torch.cat([model(xs[i : i + 1], ys[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(model(xs, ys), alone, rtol=1e-12, atol=1e-12)


@every_mixer
@both_formats
def test_scaling_data_and_config_together_scales_predictions(tokens, mixer):
    model, (xs, ys) = regressor(tokens, mixer=mixer), prompt(batch=3)
    larger = regressor(tokens, mixer=mixer, scale=7.0)
    larger.load_state_dict(model.state_dict())
    torch.testing.assert_close(larger(7 * xs, 7 * ys), 7 * model(xs, ys), rtol=1e-12, atol=1e-12)


@both_formats
def test_streams_are_read_where_predictions_are_made(tokens):
    model, (xs, ys) = regressor(tokens, scale=3.0), prompt(batch=3)
    streams = model.streams(xs, ys)
    assert streams.shape == (CONFIG.layers + 1, 3, 5, 12)
    read = model.read_out(model.decoder.norm(streams[-1]))[..., 0] * 3
    torch.testing.assert_close(read, model(xs, ys), rtol=1e-12, atol=1e-12)


@both_formats
def test_the_first_stream_knows_the_input_alone(tokens):
    """In either format the token of x_t is at the place of prediction t; a triplet holds the example before as well."""
    model, (xs, ys) = regressor(tokens), prompt()
    for_y = jacobian(lambda ys: model.streams(xs, ys)[0, 0].sum(-1), ys)[:, 0]  # (prediction, label)
    expected = torch.ones(4).diag(-1) if tokens == "triplet" else torch.zeros(5, 5)
    assert torch.equal(for_y.abs() > 1e-12, expected > 0)


test_a_wrong_config_is_named_with_its_value = refusals(
    ({"d": 0}, "d = 0"),
    ({"n": 1}, "n = 1"),
    ({"scale": 0.0}, "scale = 0.0"),
    ({"scale": -1.0}, "scale = -1.0"),
    ({"scale": math.nan}, "scale = nan"),
    ({"scale": math.inf}, "scale = inf"),
    of=lambda wrong: replace(CONFIG, **wrong),
)


test_a_config_that_no_decoder_fits_is_refused = refusals(
    ({"width": 13}, "heads = 2: must divide width = 13"),
    ({"layers": 0}, "layers = 0"),
    ({"mixer": "lstm", "layers": 0}, "layers = 0"),
    of=lambda wrong: InContextRegressor(replace(CONFIG, **wrong)),
)


@both_formats
@pytest.mark.parametrize("shape", [(1, 6, 2), (1, 5, 3)])
def test_a_prompt_too_long_or_of_another_dimension_is_refused(tokens, shape):
    with pytest.raises(ValueError, match=r"must be \(batch, n, 2\), with n at most 5"):
        regressor(tokens)(torch.zeros(shape, dtype=torch.float64), torch.zeros(shape[:2], dtype=torch.float64))


@both_formats
def test_a_model_that_answers_from_its_state_says_w_times_x_and_sees_no_more_than_it_may(tokens):
    model, (xs, ys) = StateRegressor(replace(CONFIG, tokens=tokens, mixer="lstm")).double().eval(), prompt(batch=3)
    ws, matrices = model.states(xs, ys)
    assert matrices.shape == (3, 5, 2, 2)
    torch.testing.assert_close(model(xs, ys), (ws * xs).sum(-1))
    changed = ys.clone()
    changed[:, 3:] += 1
    after, _ = model.states(xs, changed)
    torch.testing.assert_close(after[:, :4], ws[:, :4])
    assert (after[:, 4] - ws[:, 4]).abs().max() > 1e-6
