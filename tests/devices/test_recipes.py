"""Every recipe trains on another device than the CPU: model, batch, loss, and two steps of its optimizers."""

import copy

import pytest
import torch
from torch import nn

from companion.core.recipe import Recipe, recipes
from companion.core.training import batch_generator, make_optimizers

STEPS, BATCH = 2, 4
RECIPES = {name: scales["smoke"] for name, scales in recipes().items()}

# their noise is drawn in the memory layout of the images, which is another there
NOISY = {"sensitivity-digits-augmented", "sensitivity-digits-steadied"}


def first_losses(recipe: Recipe, model: nn.Module, steps: int, device: torch.device) -> list[float]:
    """The losses of the first steps, each on a batch that is drawn on the device."""
    optimizers, losses = make_optimizers(model.to(device).train(), recipe.schedule), []
    for step in range(steps):
        done = (step / STEPS,) if recipe.schedule.curriculum else ()
        tensors = recipe.draw(BATCH, batch_generator(0, step, device), *done)
        assert {tensor.device.type for tensor in tensors} == {device.type}
        loss = recipe.loss(model, *tensors)
        losses.append(loss.item())
        if step == steps - 1 and device.type == "cpu":
            break
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    return losses


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_trains_there(name, device):
    recipe = RECIPES[name]
    model = recipe.model()
    start = copy.deepcopy(model)
    losses = first_losses(recipe, model, STEPS, device)
    assert {parameter.device.type for parameter in model.parameters()} == {device.type}
    if (
        device.type == "meta" and name not in NOISY
    ):  # on CUDA other numbers are drawn; here only the kernels that sum may be others
        assert losses[:1] == pytest.approx(first_losses(recipe, start, 1, torch.device("cpu")), rel=1e-4)
