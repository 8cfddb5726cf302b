"""Who counts gives the shares that were counted."""

import pytest
import torch
from hypothesis.strategies import floats, integers, lists
from laws import holds

from companion.topics.calibration.baselines import good_turing_model, memoriser, mixture

SEEN = torch.tensor([0, 1, 2, 3, 7])
SIZE = torch.tensor([10**6, 300, 80, 5, 1])  # n = 300 + 160 + 15 + 7
N = 482


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


def test_a_mixture_lies_between():
    assert torch.equal(mixture(SEEN, SIZE, 0.0), memoriser(SEEN, SIZE))
    assert mixture(SEEN, SIZE, 1.0).tolist() == [1, 0, 0, 0, 0]
    half = mixture(SEEN, SIZE, 0.5)
    assert half[0] == 0.5 and half.sum().item() == pytest.approx(1)
    with pytest.raises(ValueError, match=r"unseen = 1\.5: must be 0 to 1"):
        mixture(SEEN, SIZE, 1.5)
