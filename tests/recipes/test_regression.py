"""Shipped checkpoints are what their recipes say, and predict as well as claimed."""

import pytest
import torch

from companion.baselines.regression import least_squares, predict
from companion.checkpoints import read_header
from companion.probes.regression import errors_by_gap
from companion.recipes import recipe, recipes, shipped, weights_path
from companion.recipes.regression import MEMORY_SWEEP
from companion.samplers.regression import prompts

SHIPPED = {"regression-isotropic": 1.0, "regression-ill-conditioned": 100.0}


@pytest.mark.parametrize("name", [name for name in recipes() if name.startswith("regression-")])
def test_the_paper_scale_has_the_published_dimension(name):
    assert recipe(name, "paper").build().config.d == 20


EACH = (
    [(name, 0) for name in SHIPPED]
    + [("regression-lstm-deep", 0)]
    + [(f"regression-lstm-{width}", 0) for width in MEMORY_SWEEP]
)
EACH += [(name, seed) for name in ("regression-lstm", "regression-transformer") for seed in range(5)]
EACH += [(name, seed) for name in ("regression-delta", "regression-delta-small") for seed in range(3)]


@pytest.mark.parametrize(("name", "seed"), EACH)
def test_a_shipped_checkpoint_is_its_recipes(name, seed):
    header, plan = read_header(weights_path(name, seed=seed)), recipe(name)
    assert (header.recipe, header.scale, header.seed, header.steps) == (name, "course", seed, plan.schedule.steps)
    assert header.loss_curve[-1][0] == header.steps


@pytest.mark.parametrize("name, kappa", SHIPPED.items())
def test_a_shipped_model_is_within_five_percent_of_least_squares(name, kappa):
    model, _ = shipped(name)
    xs, ys, _ = prompts(512, model.config.n, model.config.d, kappa=kappa, generator=99)
    with torch.no_grad():
        error = (model(xs, ys) - ys).square().mean()
    assert error < 1.05 * (predict(least_squares(xs, ys), xs) - ys).square().mean()


@torch.no_grad()
@pytest.mark.parametrize("data_seed", range(50, 55))
def test_every_shipped_lstm_forgets_and_no_transformer_does(data_seed):
    xs, ys, _ = prompts(1024, 10, 5, generator=data_seed)
    for seed in range(5):
        lstm = errors_by_gap(shipped("regression-lstm", seed=seed)[0], xs, ys).mean(1)
        transformer = errors_by_gap(shipped("regression-transformer", seed=seed)[0], xs, ys).mean(1)
        assert lstm[-1] > 2 * lstm[0]
        assert transformer[-1] < 2 * transformer[0]


def test_a_shipped_models_first_steps_are_made_again_by_its_recipe():
    """Not all 16,000 steps: the first stretch of the loss curve, of 80 steps."""
    plan = recipe("regression-ill-conditioned")
    losses, stretch = [], read_header(weights_path(plan.name)).loss_curve[0]

    class Enough(Exception):
        pass

    def loss(model, *tensors):
        if len(losses) == stretch[0]:
            raise Enough
        value = plan.loss(model, *tensors)
        losses.append(value.item())
        return value

    from companion.training import train

    with pytest.raises(Enough):
        train(plan.model(0), plan.draw, loss, plan.schedule, device="cpu")
    assert sum(losses) / len(losses) == pytest.approx(stretch[1], rel=1e-3)
