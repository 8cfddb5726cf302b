"""Who counts gives the shares that were counted."""

import pytest
import torch
from hypothesis.strategies import floats, integers, lists
from laws import holds
from refusals import refusals

from companion.topics.calibration.baselines import good_turing_model, memoriser, mixture


@holds(often=lists(integers(1, 90), min_size=1, max_size=6), unseen=floats(0, 1))
def test_masses_are_those_of_plain_loops(often, unseen):
    """``often[k]`` candidates are seen k + 1 times each, none more often; a thousand are not."""
    n = sum((k + 1) * size for k, size in enumerate(often))
    mass = [0, *((k + 1) * size / n for k, size in enumerate(often))]
    trusted = next((k for k, size in enumerate(often) if size < 30), len(often))  # groups that take the next one's mass
    left, beyond = 1 - sum(mass[1 : trusted + 1]), sum(mass[trusted:])
    good = mass[1 : trusted + 1] + [m * left / beyond for m in mass[trusted:]] if beyond else [*mass[1:], left]
    groups = torch.arange(len(often) + 1), torch.tensor([1000, *often])
    assert memoriser(*groups).tolist() == pytest.approx(mass)
    assert good_turing_model(*groups).tolist() == pytest.approx(good)
    assert mixture(*groups, unseen).tolist() == pytest.approx([unseen, *((1 - unseen) * m for m in mass[1:])])


test_more_than_all_mass_is_refused = refusals(
    (lambda: mixture(torch.arange(2), torch.arange(2), 1.5), r"unseen = 1\.5: must be 0 to 1")
)
