"""One layer fails where two succeed; a head needs fewer examples than an MLP, and no more of them as bits are added."""

import pytest
import torch
from refusals import refusals
from stopping import train_until

from companion.core.recipe import recipe
from companion.topics.attention.measured import settled_accuracy
from companion.topics.attention.recipes import runs_that_learn


@pytest.mark.weekly  # lesson 01 trains both each time that it is tested, with another seed
@pytest.mark.types_unchecked
def test_two_layers_continue_a_phrase_and_one_does_not():
    fresh = recipe("attention-two-layers").draw(256, torch.Generator().manual_seed(123))

    def learned(model):
        return settled_accuracy(model, fresh) > 0.99

    assert learned(train_until(learned, recipe("attention-two-layers"), seed=5, device="cpu", every=50))
    one, _ = recipe("attention-one-layer").train(seed=5, device="cpu")
    assert settled_accuracy(one, fresh) < 0.8


@pytest.mark.parametrize("start", [40, 80])
def test_the_head_learns_from_a_hundred_examples_where_the_mlp_does_not(start):
    head, mlp = (runs_that_learn(kind, 64, [100], range(start, start + 5)).sum().item() for kind in ("head", "mlp"))
    assert head >= 4
    assert mlp <= 1
    assert runs_that_learn("mlp", 64, [800], range(start, start + 5)).sum() >= 4


def test_an_l1_penalty_needs_as_few_examples_as_the_head():
    assert runs_that_learn("l1", 64, [100], range(5)).sum() >= 4
    assert runs_that_learn("l1", 64, [12], range(5)).sum() <= 1


def test_runs_do_not_depend_on_the_global_random_state():
    first = runs_that_learn("head", 16, [25, 50], range(3))
    torch.rand(7)
    assert torch.equal(first, runs_that_learn("head", 16, [25, 50], range(3)))


test_bad_arguments_are_named = refusals(
    (("head", 8, [], range(2)), "samples = "),
    (("mlp", 8, [0], range(2)), "samples = "),
    (("mlp", 8, [9], range(0)), "seeds = range"),
    of=lambda arguments: runs_that_learn(*arguments),
)
