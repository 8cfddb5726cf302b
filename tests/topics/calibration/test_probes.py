"""Groups hold every candidate once, tempers sharpen, bins share the mass, and all probabilities have the sum 1."""

import pytest
import torch

from companion.topics.calibration.data import biographies, corpus, zipf_facts
from companion.topics.calibration.model import BiographyModel, BiographyModelConfig
from companion.topics.calibration.probes import ask_what, by_times_seen, equal_mass_bins, log_probabilities, tempered


def test_groups_are_those_of_a_list_of_all_candidates():
    world = zipf_facts(40, 1000)
    drawn = corpus(world, 60, generator=1)
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


def test_a_temperature_acts_on_each_candidate():
    g, size = torch.tensor([0.2, 0.5, 0.3, 0.0]).double(), torch.tensor([10, 5, 1, 4])
    every = (g / size).repeat_interleave(size) ** 2
    expected = torch.stack([part.sum() for part in (every / every.sum()).split(size.tolist())])
    torch.testing.assert_close(tempered(g, size, 0.5), expected)
    torch.testing.assert_close(tempered(g, size, 1.0), g)
    with pytest.raises(ValueError, match="temperature = 0"):
        tempered(g, size, 0)


def test_bins_have_nearly_the_same_mass_and_never_part_equals():
    g = torch.randn(2000, generator=torch.Generator().manual_seed(2)).double().softmax(0)
    bins = equal_mass_bins(g, 10)
    mass = torch.zeros(10).double().index_add(0, bins, g)
    assert bins.min() == 0 and bins.max() == 9
    assert (mass - 0.1).abs().max() < 0.03
    assert (bins[g.argsort()].diff() >= 0).all()
    assert equal_mass_bins(torch.full((7,), 1 / 7).double(), 3).unique().numel() == 1


def test_all_candidates_have_the_sum_1_and_are_what_the_model_says():
    model = BiographyModel(BiographyModelConfig(6, width=8)).eval()
    every = log_probabilities(model)
    assert every.shape == (6, 6, 6) and every.exp().sum().item() == pytest.approx(1, abs=1e-6)
    said = model(torch.tensor([[4, 2]])).double()[0]
    assert every[4, 2, 5].item() == pytest.approx((said[0, 4] + said[1, 2] + said[2, 5]).item(), abs=1e-5)


def test_an_answer_is_the_likeliest_word():
    model = BiographyModel(BiographyModelConfig(6, width=8)).eval()
    facts = biographies(20, 6, generator=3)
    asked = ask_what(model, facts)
    rows = log_probabilities(model)[facts[:, 0], facts[:, 1]].softmax(-1)
    torch.testing.assert_close(asked.stated, rows.max(1).values, atol=1e-6, rtol=1e-5)
    assert torch.equal(asked.right.bool(), rows.argmax(1) == facts[:, 2])
