"""Every place offers its own words, and the past alone decides."""

import torch
from refusals import refusals

from companion.topics.calibration.model import BiographyModel, BiographyModelConfig


def test_each_place_has_a_distribution_of_its_own():
    model = BiographyModel(BiographyModelConfig(5, width=8)).eval()
    known = torch.cartesian_prod(torch.arange(5), torch.arange(5))
    said = model(known)
    assert said.shape == (25, 3, 5)
    torch.testing.assert_close(said.exp().sum(-1), torch.ones(25, 3))
    assert torch.allclose(said[:, 0], said[:1, 0].expand(25, 5), atol=1e-6)  # the first place knows nothing
    torch.testing.assert_close(said[0, 1], said[4, 1])  # same who, other where
    assert not torch.allclose(said[0, 2], said[4, 2])
    assert model(known[:, :0]).shape == (25, 1, 5)


def test_the_same_number_is_another_word_at_another_place():
    model = BiographyModel(BiographyModelConfig(5, width=8)).eval()
    swapped = model(torch.tensor([[1, 2], [2, 1]]))[:, 2]
    assert not torch.allclose(swapped[0], swapped[1])


test_bad_arguments_are_named = refusals(
    (lambda: BiographyModel(BiographyModelConfig(5, width=8))(torch.tensor([[0, 5]])), "known: 5 is out of range"),
    (lambda: BiographyModelConfig(1), "words = 1"),
)
