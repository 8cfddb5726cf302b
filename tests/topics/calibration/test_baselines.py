"""Who counts gives the shares that were counted."""

import pytest
import torch

from companion.topics.calibration.baselines import good_turing_model, memoriser, mixture

SEEN = torch.tensor([0, 1, 2, 3, 7])
SIZE = torch.tensor([10**6, 300, 80, 5, 1])  # n = 300 + 160 + 15 + 7
N = 482


def test_a_memoriser_repeats_its_corpus():
    torch.testing.assert_close(memoriser(SEEN, SIZE) * N, torch.tensor([0, 300, 160, 15, 7]).double())


def test_good_turing_moves_every_group_down_by_one_while_it_trusts_the_next():
    g = good_turing_model(SEEN, SIZE)
    assert (g[:2] * N).tolist() == pytest.approx([300, 160])  # N_1 / n for the unseen; the threes are too few
    assert g.sum().item() == pytest.approx(1)
    rest = memoriser(SEEN, SIZE)[2:]
    torch.testing.assert_close(g[2:] / g[2:].sum(), rest / rest.sum())


def test_a_mixture_lies_between():
    assert torch.equal(mixture(SEEN, SIZE, 0.0), memoriser(SEEN, SIZE))
    assert mixture(SEEN, SIZE, 1.0).tolist() == [1, 0, 0, 0, 0]
    half = mixture(SEEN, SIZE, 0.5)
    assert half[0] == 0.5 and half.sum().item() == pytest.approx(1)
    with pytest.raises(ValueError, match=r"unseen = 1\.5: must be 0 to 1"):
        mixture(SEEN, SIZE, 1.5)
