"""Weights in fewer bits: how far they may move, and that fitted ones change a layer's outputs least."""

import pytest
import torch
from torch import nn

from companion.core import checkpoints
from companion.core.rounding import GROUP, compact, expand, fit_rows, fitted
from companion.core.training import History
from companion.topics.regression.model import InContextRegressor, RegressorConfig

CONFIG = RegressorConfig(d=2, n=4, width=40, layers=2, heads=2)


@pytest.fixture
def trained():
    torch.manual_seed(0)
    xs = torch.randn(200, 4, 2)
    model = InContextRegressor(CONFIG).eval()
    return model, (xs, xs.sum(-1))


def correlated(inputs: int, generator: torch.Generator, rows: int = 400) -> torch.Tensor:
    """As a layer's inputs are: most of what they do, they do in few directions."""
    mixed = torch.randn(inputs, inputs, generator=generator) * torch.logspace(0, -2, inputs)[:, None]
    return torch.randn(rows, inputs, generator=generator) @ mixed


def test_a_matrix_of_any_width_is_kept_and_zeros_stay_zeros():
    rows = torch.randn(3, 71, generator=torch.Generator().manual_seed(0))
    rows[1] = 0
    back = expand(compact({"matrix": rows, "matrix.scale": torch.ones(2)}, torch.bfloat16))
    assert back.keys() == {"matrix", "matrix.scale"}, "a tensor of this name is no scale unless the matrix is int8"
    back = expand(compact({"matrix": rows}, torch.int8))["matrix"]
    assert (back[1] == 0).all()
    torch.testing.assert_close(back, rows, rtol=0, atol=float(rows.abs().max()) / 250)


@pytest.mark.parametrize("inputs", [7, 32, 71])
@pytest.mark.parametrize("seed", range(3))
def test_fitted_rows_change_the_outputs_less_than_the_nearest_whole_numbers(inputs, seed):
    generator = torch.Generator().manual_seed(seed)
    weights, x = torch.randn(20, inputs, generator=generator), correlated(inputs, generator)
    whole, scales = fit_rows(weights, x.mT @ x)
    assert (whole.shape, whole.dtype, scales.shape) == (weights.shape, torch.int8, (20, -(-inputs // GROUP)))
    plain = expand(compact({"w": weights}, torch.int8))["w"]
    fit = expand({"w": whole, "w.scale": scales})["w"]
    change = [((rounded - weights) @ x.mT).square().mean() for rounded in (plain, fit)]
    assert change[1] < 0.7 * change[0]
    assert (fit - weights).abs().max() < 10 * (plain - weights).abs().max(), "weights move, but not far"


def test_inputs_without_correlation_leave_the_nearest_whole_numbers():
    weights = torch.randn(4, 40, generator=torch.Generator().manual_seed(0))
    whole, scales = fit_rows(weights, torch.eye(40))
    plain = compact({"w": weights}, torch.int8)
    assert torch.equal(whole, plain["w"])
    assert torch.equal(scales, plain["w.scale"])


def test_each_column_makes_up_best_for_the_columns_before_it():
    """Column by column against least squares: with the rounded columns fixed, the rest is the best that there is."""
    generator = torch.Generator().manual_seed(0)
    weights, x = torch.randn(3, 6, generator=generator).double(), correlated(6, generator).double()
    gram = x.mT @ x
    damped = gram + 0.003 * gram.diagonal().mean() * torch.eye(6)
    whole, scales = fit_rows(weights, gram)
    scale, moved = scales[:, 0].double(), weights
    for j in range(6):
        assert torch.equal(whole[:, j].double(), (moved[:, j] / scale).round().clamp(-127, 127))
        error = weights[:, : j + 1] - scale[:, None] * whole[:, : j + 1]
        rest = error @ damped[: j + 1, j + 1 :] @ torch.linalg.inv(damped[j + 1 :, j + 1 :])
        moved = torch.cat([moved[:, : j + 1], weights[:, j + 1 :] + rest], 1)


def test_a_fitted_model_answers_more_nearly_as_before_and_comes_back(trained, tmp_path):
    model, inputs = trained
    path, other = tmp_path / "fitted.safetensors", InContextRegressor(CONFIG)
    how = {"recipe": "a-recipe", "scale": "course", "seed": 7, "history": History([1.0])}
    header = checkpoints.save(path, model, **how, calibrate=lambda model: model(*inputs))
    assert checkpoints.load(path, other, recipe="a-recipe") == header
    assert header.stored.startswith("int8 matrices, a bfloat16 scale for every 32 of a row, rounded so that outputs")
    plain = InContextRegressor(CONFIG).eval()
    plain.load_state_dict(expand(compact(model.state_dict(), torch.int8)))
    with torch.no_grad():
        before, nearest, best = (m(*inputs) for m in (model, plain, other))
    assert 0 < (best - before).square().mean() < 0.7 * (nearest - before).square().mean()
    assert (best - before).abs().max() < 0.05 * before.std()


def test_what_is_no_linear_layer_keeps_more_digits():
    class Looked(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out, self.norm = nn.Embedding(5, 8), nn.Linear(8, 3), nn.LayerNorm(3)

        def forward(self, tokens):
            return self.norm(self.out(self.table(tokens)))

    kept = fitted(Looked(), lambda model: model(torch.arange(5)))
    assert {name: tensor.dtype for name, tensor in kept.items()} == {
        "table.weight": torch.bfloat16,
        "out.weight": torch.int8,
        "out.weight.scale": torch.bfloat16,
        "out.bias": torch.float32,
        "norm.weight": torch.float32,
        "norm.bias": torch.float32,
    }


def test_a_layer_that_was_not_run_is_named(trained):
    with pytest.raises(ValueError, match=r"calibrate: has not run the layer read_in"):
        fitted(trained[0], lambda model: None)
