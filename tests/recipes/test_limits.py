"""What is drawn is what is asked for; the shipped models know their task, and worked steps are what trains."""

import pytest
import torch

from companion.baselines.limits import follow
from companion.recipes import recipe, shipped
from companion.samplers.limits import coins, pointers


def test_prefixes_ask_for_their_parity():
    bits, targets = recipe("limits-prefix").draw(5, torch.Generator().manual_seed(1))
    for t in range(bits.shape[1]):
        assert torch.equal(targets[:, t], bits[:, : t + 1].sum(1) % 2)


@pytest.mark.parametrize(("name", "steps"), [("limits-steps", 8), ("limits-no-steps", 1)])
def test_steps_are_running_parities_and_the_last_is_the_answer(name, steps):
    tokens, targets = recipe(name).draw(6, torch.Generator().manual_seed(2))
    assert tokens.shape == targets.shape == (6, 15 + steps)
    assert (targets[:, :15] == -1).all()
    assert torch.equal(targets[:, 15:-1], tokens[:, 16:])
    for step in range(steps):
        asked = 8 // steps * (step + 1)
        assert torch.equal(targets[:, 15 + step], tokens[:, :asked].sum(1) % 2)


@pytest.mark.parametrize(("name", "seed"), [("limits-prefix", 0), ("limits-prefix", 1), ("limits-prefix-lstm", 0)])
def test_the_shipped_models_know_prefix_parities_in_distribution(name, seed):
    model, _ = shipped(name, seed=seed)
    bits = coins(1000, 12, generator=3)
    with torch.no_grad():
        assert (model(bits).argmax(-1) == bits.cumsum(1) % 2).double().mean() > 0.95


def test_two_layers_hop_four_times_and_one_does_not():
    maps = pointers(500, 8, generator=4)
    with torch.no_grad():
        right = [
            (shipped(f"limits-hops-{layers}")[0](maps).argmax(-1) == follow(maps, 4)).double().mean().item()
            for layers in (1, 2)
        ]
    assert right[0] < 0.7 and right[1] > 0.9
