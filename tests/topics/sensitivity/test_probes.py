"""Spectra agree with flips, noise lies where it should, and curvature and rise are those of a loss that is known."""

from itertools import product

import pytest
import torch
from laws import laws, quarters
from refusals import refusals
from torch import nn

from companion.topics.sensitivity import exercises
from companion.topics.sensitivity.data import cube, truth_table
from companion.topics.sensitivity.model import Classifier, ClassifierConfig
from companion.topics.sensitivity.probes import answers, changes, largest_curvature, noisy_parts, rise_under_noise

influences, weight_by_degree = exercises.influences.answer, exercises.weight_by_degree.answer


@pytest.mark.parametrize("n", [1, 4, 7])
def test_flips_and_spectrum_agree(n):
    values = 1 - 2 * truth_table("random", n, generator=n).double()
    weights = weight_by_degree(values)
    assert weights.sum().item() == pytest.approx(1, abs=1e-12)
    assert (torch.arange(n + 1) * weights).sum().item() / n == pytest.approx(
        influences(values).mean().item(), abs=1e-12
    )


def test_a_character_has_all_its_weight_at_its_degree():
    bits = cube(6)
    values = 1 - 2 * ((bits[:, 1] + bits[:, 3] + bits[:, 4]) % 2).double()
    assert weight_by_degree(values).tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert influences(values).tolist() == [0, 1, 0, 1, 1, 0]


class First(nn.Module):
    """Says whether the first number of the first vector is above 0."""

    def forward(self, x):
        return torch.stack([-x[:, 0, 0], x[:, 0, 0]], -1)


def test_changes_compare_each_copy_with_its_input():
    x = torch.tensor([1.0, -1.0]).view(2, 1, 1).expand(2, 3, 1)
    copies = torch.stack([x, -x], 1)
    assert answers(First(), x).tolist() == [1, 0]
    assert changes(First(), x, copies).tolist() == [[False, True], [False, True]]


def test_noise_lies_on_one_part_of_each_copy():
    x = torch.randn(300, 5, 2, generator=torch.Generator().manual_seed(0))
    moved = noisy_parts(x, 0.5, generator=1) - x[:, None]
    assert torch.equal(moved.any(-1), torch.eye(5, dtype=torch.bool).expand(300, 5, 5))


PARTS = torch.arange(4.0).view(1, 2, 2).expand(9000, 2, 2)
test_noise_is_normal = laws(
    (
        lambda g: quarters((noisy_parts(PARTS, 0.5, generator=g)[:, [0, 1], [0, 1]] - PARTS) / 0.5),
        product(range(4), repeat=4),
    )
)


class Bowl(nn.Module):
    """sum_i c_i w_i^2 / 2 at some weights: its Hessian has the eigenvalues c."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([0.3, -0.2, 0.1]))
        self.curvatures = torch.tensor([0.5, -4.0, 2.0])

    def loss(self):
        return (self.curvatures * self.weights.square()).sum() / 2


def test_the_largest_curvature_keeps_its_sign():
    bowl = Bowl()
    assert largest_curvature(bowl.loss, bowl, 40, generator=0) == pytest.approx(-4, abs=1e-3)


def test_the_rise_is_that_of_a_bowl_and_the_weights_come_back():
    bowl = Bowl()
    before = bowl.weights.clone()
    risen = rise_under_noise(bowl.loss, bowl, 0.1, 4000, generator=0)
    assert risen == pytest.approx(0.01 * (-1.5) / 2, abs=0.002)
    assert torch.equal(bowl.weights, before)


def test_a_transformer_has_a_second_derivative():
    model = Classifier(ClassifierConfig("transformer", 4, 2, width=8, layers=1))
    x = torch.randn(6, 4, 2, generator=torch.Generator().manual_seed(1))
    loss = lambda: nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 0, 1, 1, 0]))  # noqa: E731
    assert abs(largest_curvature(loss, model, 5, generator=2)) > 1e-6


test_bad_arguments_are_named = refusals(
    (lambda bowl: largest_curvature(bowl.loss, bowl, 0, generator=0), "steps = 0"),
    (lambda bowl: rise_under_noise(bowl.loss, bowl, 0.1, 0, generator=0), "repeats = 0"),
    of=lambda call: call(Bowl()),
)
