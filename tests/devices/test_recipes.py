"""Every recipe trains on another device than the CPU: model, batch, loss, and two steps of its optimizers."""

import pytest
import torch

from companion.recipes import recipes
from companion.training import batch_generator, make_optimizers

STEPS = 2


def first_losses(name: str, device: torch.device) -> list[float]:
    """The losses of the first steps, each on a batch that is drawn on the device."""
    chosen = recipes()[name]["smoke"]
    model, losses = chosen.model().to(device).train(), []
    optimizers = make_optimizers(model, chosen.schedule)
    for step in range(STEPS):
        done = (step / STEPS,) if chosen.schedule.curriculum else ()
        tensors = chosen.draw(min(chosen.schedule.batch, 8), batch_generator(0, step, device), *done)
        assert {tensor.device.type for tensor in tensors} == {device.type}
        loss = chosen.loss(model, *tensors)
        assert loss.device.type == device.type
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", sorted(recipes()))
def test_a_recipe_trains_there(name, device):
    losses = first_losses(name, device)
    assert all(parameter.device.type == "cpu" for parameter in recipes()[name]["smoke"].model().parameters())
    if device.type == "meta":  # on CUDA other numbers are drawn
        assert losses == first_losses(name, torch.device("cpu"))
