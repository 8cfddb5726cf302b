"""Every shipped checkpoint is what its recipe makes: the first stretch of its loss curve comes out again."""

from dataclasses import replace

import pytest
from stopping import train_until

from companion.core.checkpoints import WEIGHTS, read_header
from companion.core.recipe import recipe

HEADERS = {path.stem: read_header(path) for path in sorted(WEIGHTS.glob("*.safetensors"))}
# Of at most three steps: they are made again each time, of five topics, in five seconds
SHORT = {name for name, header in HEADERS.items() if header.loss_curve[0][0] <= 3}
EACH = [pytest.param(name, marks=() if name in SHORT else pytest.mark.weekly) for name in HEADERS]


def tolerance(name: str, steps: int) -> float:
    """Another rounding moves the mean by less than a thousandth; by up to 6 % where a stretch is so long that a learned
    structure begins to work in it.
    """
    return 0.08 if name.startswith("structures-") and steps >= 80 else 1e-3


@pytest.mark.types_unchecked
@pytest.mark.parametrize("name", EACH)
def test_a_checkpoints_first_steps_are_made_again_by_its_recipe(name):
    header, losses = HEADERS[name], []
    plan = recipe(header.recipe, header.scale)
    steps, mean = header.loss_curve[0]

    def loss(model, *tensors):
        value = plan.loss(model, *tensors)
        losses.append(value.item())
        return value

    train_until(lambda _: True, replace(plan, loss=loss), seed=header.seed, device="cpu", every=[steps])
    assert len(losses) == steps and sum(losses) / steps == pytest.approx(mean, rel=tolerance(name, steps))


def test_some_of_them_are_tried_each_time():
    assert len({name.partition("-")[0] for name in SHORT}) >= 5
