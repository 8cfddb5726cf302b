"""Muon for the matrices inside blocks, and a sampler that is told how much of the run is over."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from core.test_training import SCHEDULE, draw, line, loss
from stopping import stops_after
from torch import nn

from companion.core import training
from companion.core.recipe import recipe
from companion.core.training import make_optimizers, train


def test_muon_takes_the_matrices_inside_blocks_and_adam_the_others():
    model = recipe("regression-large", "smoke").model()
    adam, muon = make_optimizers(model, replace(SCHEDULE, muon=True))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    taken, others = (
        {names[id(parameter)] for group in each.param_groups for parameter in group["params"]} for each in (muon, adam)
    )
    assert taken | others == set(names.values()) and not taken & others
    assert taken == {
        name for name in names.values() if "blocks." in name and "norm" not in name and ".mlp.0." not in name
    }
    assert len(make_optimizers(model, SCHEDULE)) == 1


def test_a_model_without_blocks_is_refused_by_muon():
    with pytest.raises(
        ValueError, match="muon = True: must be False for Linear, which has no matrices inside `blocks`"
    ):
        make_optimizers(nn.Linear(2, 1), replace(SCHEDULE, muon=True))


def test_a_step_of_muon_is_orthogonal_and_of_the_size_of_adams():
    """All singular values about alike; 0.2 sqrt(longer side) of them is Adam's root mean square of about 0.2."""
    model = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(8, 24)])})
    weight = model["blocks"][0].weight
    before = weight.detach().clone()
    (_, muon) = make_optimizers(model, replace(SCHEDULE, muon=True, lr=0.1))
    weight.grad = torch.randn(24, 8, generator=torch.Generator().manual_seed(0))
    muon.step()
    sizes = torch.linalg.svdvals(before - weight.detach()) / (0.1 * 0.2 * 24**0.5)
    assert sizes.min() > 0.6 and sizes.max() < 1.4


def test_a_curriculum_is_told_how_much_of_the_run_is_over():
    told = []

    def growing(batch, generator, done):
        told.append(done)
        return draw(batch, generator)

    train(line(), growing, loss, replace(SCHEDULE, curriculum=True))
    np.testing.assert_allclose(told, np.arange(30) / 30)


def test_a_run_with_muon_and_a_curriculum_is_resumed_as_if_nothing_had_happened(tmp_path, monkeypatch):
    chosen, state = recipe("regression-large", "smoke"), tmp_path / "state.safetensors"
    monkeypatch.setattr(training, "SAVE_EVERY_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(chosen.model(0), stops_after(2, chosen.draw), chosen.loss, chosen.schedule, resume=state)
    resumed, whole = chosen.model(7), chosen.model(0)
    history = train(resumed, chosen.draw, chosen.loss, chosen.schedule, resume=state)
    expected = train(whole, chosen.draw, chosen.loss, chosen.schedule)
    np.testing.assert_allclose(history.losses, expected.losses, rtol=1e-5)
    for ours, other in zip(resumed.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-6)
