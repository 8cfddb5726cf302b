"""Groups and bins hold every candidate once."""

import pytest
import torch
from hypothesis.strategies import integers
from laws import holds

from companion.topics.calibration.data import biographies, corpus, zipf_facts
from companion.topics.calibration.model import BiographyModel, BiographyModelConfig
from companion.topics.calibration.probes import by_probability, by_times_seen


@holds(seed=integers(0, 99), n=integers(1, 200))
def test_groups_are_those_of_a_list_of_all_candidates(seed, n):
    world = zipf_facts(40, 1000)
    drawn = corpus(world, n, generator=seed)
    counts = torch.bincount(drawn, minlength=1000)  # every candidate, the false ones at the end
    p = torch.cat([world.p, torch.zeros(960)])
    groups = by_times_seen(drawn, world.p, world.candidates)
    assert groups.size.sum() == 1000 and groups.true.sum() == 40
    for seen, size, true, mass in zip(*groups, strict=True):
        here = counts == seen
        assert (size, true) == (here.sum(), here[:40].sum())
        assert mass.item() == pytest.approx(p[here].sum().item())


def test_the_unseen_come_first_even_if_every_fact_was_seen():
    groups = by_times_seen(torch.tensor([0, 1, 1]), torch.tensor([0.5, 0.5]).double(), 10)
    assert [each.tolist() for each in groups] == [[0, 1, 2], [8, 1, 1], [0, 1, 1], [0, 0.5, 0.5]]
    with pytest.raises(ValueError, match="drawn: 2 is out of range"):
        by_times_seen(torch.tensor([2]), torch.tensor([0.5, 0.5]).double(), 10)


def test_bins_hold_every_candidate_once_and_the_facts_beside_their_own_mass():
    model, facts, p = (
        BiographyModel(BiographyModelConfig(6, width=8)).eval(),
        biographies(20, 6, generator=3),
        shares(20),
    )
    every = torch.cartesian_prod(*3 * [torch.arange(6)])
    said = model(every[:, :2]).gather(-1, every[..., None]).sum((1, 2)).detach().double()
    number = facts @ torch.tensor([36, 6, 1])
    bins = by_probability(model, facts, p, width=0.3)
    torch.testing.assert_close(bins.log_g, said[number], atol=1e-5, rtol=1e-5)
    assert bins.g.sum().item() == pytest.approx(1, abs=1e-6) and bins.p.sum().item() == pytest.approx(1)
    place = (-said / 0.3).long()
    torch.testing.assert_close(bins.g, torch.zeros(2000).double().index_add(0, place, said.exp()), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(bins.p, torch.zeros(2000).double().index_add(0, place[number], p))
    one = by_probability(model, facts, p, width=100)  # so wide that all fall into the first
    assert one.g[0].item() == pytest.approx(1, abs=1e-6) and one.p[0].item() == pytest.approx(1)
    with pytest.raises(ValueError, match="width = 0"):
        by_probability(model, facts, p, width=0)


def shares(n: int) -> torch.Tensor:
    return torch.rand(n, generator=torch.Generator().manual_seed(4)).double().softmax(0)
