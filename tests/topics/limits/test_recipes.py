"""What is drawn is what is asked for; the shipped models know their task, and worked steps are what trains."""

from itertools import permutations

import numpy as np
import pytest
import torch

from companion.core.checkpoints import shipped
from companion.core.measuring import measured_table
from companion.core.recipe import recipe
from companion.topics.limits.baselines import running_products
from companion.topics.limits.data import coins, crowded_pointers, found_hops, letters_and_states, rings
from companion.topics.limits.measured import found_errors, hop_errors
from companion.topics.limits.recipes import DEPTHS, DIAL


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


@pytest.mark.parametrize(("name", "last"), [("limits-offsets", 16), ("limits-no-offsets", 0)])
def test_short_prefixes_begin_anywhere_or_at_the_first_place(name, last):
    tokens, start, targets = recipe(name).draw(500, torch.Generator().manual_seed(1))
    assert tokens.shape == targets.shape == (500, 9)
    assert (tokens[:, 0] == 2).all() and (targets[:, 0] == -1).all()
    assert torch.equal(targets[:, 1:], tokens[:, 1:].cumsum(1) % 2)
    assert torch.equal(start.unique(), torch.arange(last + 1))


@pytest.mark.parametrize("steps", DIAL)
def test_a_written_state_is_the_state_so_far(steps):
    tokens, targets = recipe(f"limits-dial-1-{steps}").draw(5, torch.Generator().manual_seed(steps))
    every = torch.tensor(list(permutations(range(5))))
    states = running_products(torch.tensor([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]])[tokens[:, :32]])
    written = targets[:, 31:]
    assert written.shape == (5, steps) and (targets[:, :31] == -1).all()
    assert torch.equal(tokens[:, 32:], written[:, :-1])
    for step in range(steps):
        assert torch.equal(every[written[:, step] - 2], states[:, (step + 1) * 32 // steps - 1])


@pytest.mark.parametrize(("name", "seed"), [("limits-prefix", 0), ("limits-prefix", 1), ("limits-prefix-lstm", 0)])
def test_the_shipped_models_know_prefix_parities_in_distribution(name, seed):
    model, _ = shipped(name, seed=seed)
    bits = coins(1000, 12, generator=3)
    with torch.no_grad():
        assert (model(bits).argmax(-1) == bits.cumsum(1) % 2).double().mean() > 0.95


def test_hops_are_asked_for_and_counted_one_by_one():
    tokens, targets = recipe("limits-hops-1").draw(300, torch.Generator().manual_seed(3))
    asked, maps = tokens[:, 0] - 15, tokens[:, 1:]
    assert torch.equal(asked.unique(), torch.arange(1, 9)) and (targets[:, 0] == -1).all()
    for k, ring, led in zip(asked.tolist(), maps, targets[:, 1:], strict=True):
        place = torch.arange(16)
        for _ in range(k):
            place = ring[place]
        assert torch.equal(led, place)


@pytest.mark.parametrize(
    ("name", "along", "reach"),
    [*((str(layers), rings, 2**layers) for layers in DEPTHS), ("2-crowded", crowded_pointers, 4)],
)
def test_the_shipped_networks_hop_as_far_as_the_table_says(name, along, reach):
    measured = hop_errors(shipped(f"limits-hops-{name}")[0], along=along)
    table = measured_table("limits-hop-errors").where(network=name, seed=0)
    assert table.values("hops") == [*range(1, 9)]
    np.testing.assert_allclose(measured, table.grid("hops", of="error"), atol=2e-3)
    assert max(measured[:reach]) < 0.05


def test_an_untrained_network_is_lost_after_any_hop():
    assert min(hop_errors(recipe("limits-hops-2").model(seed=0), batch=100)) > 0.8
    with pytest.raises(ValueError, match="batch"):
        hop_errors(recipe("limits-hops-2").model(seed=0), batch=0)


def test_hops_to_find_are_zero_to_eight_of_four_letters():
    tokens, ends = recipe("limits-found-2").draw(300, torch.Generator().manual_seed(3))
    hops = tokens[:, 0] - 5
    assert torch.equal(hops.unique(), torch.arange(9)) and tokens.shape == (300, 49)
    assert all(torch.equal(*pair) for pair in zip(found_hops(tokens[:, 1:], hops, 4), (tokens, ends), strict=True))
    assert min(found_errors(recipe("limits-found-2").model(seed=0), 4, batch=100)) > 0.6


def test_offsets_teach_short_words_wherever_they_begin_and_no_long_ones():
    model, _ = shipped("limits-offsets")
    bits = coins(500, 24, generator=5)
    tokens = torch.cat([torch.full_like(bits[:, :1], 2), bits], 1)
    with torch.no_grad():
        for start in (0, 7, 16):
            said = model(tokens[:, :9], torch.full((500,), start))[:, 1:].argmax(-1)
            assert (said == bits[:, :8].cumsum(1) % 2).double().mean() > 0.9
        assert (model(tokens)[:, -1].argmax(-1) == bits.sum(1) % 2).double().mean() < 0.7


@pytest.mark.parametrize(("steps", "least", "most"), [(32, 0.9, 1), (1, 0, 0.1)])
def test_one_layer_follows_s5_if_it_writes_every_state(steps, least, most):
    letters, states = letters_and_states(100, 32, 5, generator=6)
    said = shipped(f"limits-dial-1-{steps}")[0].generate(letters, steps)[:, -1] - 2
    assert least <= (said == states[:, -1]).double().mean() <= most
