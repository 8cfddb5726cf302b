"""Arguments that are out of range are named; a seed stands for a generator."""

import pytest
import torch

from companion.core.arguments import as_generator, at_least, check_range, positive


def test_the_first_value_that_is_too_small_is_named():
    at_least(length=(3, 3), batch=(1, 1))
    with pytest.raises(ValueError, match=r"^batch = 0: must be at least 1$"):
        at_least(length=(3, 3), batch=(0, 1), noise=(-1, 0))


def test_a_seed_is_a_fresh_generator_and_a_generator_is_itself():
    generator = torch.Generator()
    assert as_generator(generator) is generator
    assert torch.equal(
        torch.rand(3, generator=as_generator(5)), torch.rand(3, generator=torch.Generator().manual_seed(5))
    )


@pytest.mark.parametrize("value", [0.0, -1, float("inf"), float("nan")])
def test_what_is_not_positive_and_finite_is_named(value):
    positive(lr=1e-3, beta=2)
    with pytest.raises(ValueError, match=rf"^beta = {value!r}: must be positive and finite$"):
        positive(lr=1e-3, beta=value)


@pytest.mark.parametrize("entry", [-1, 4])
def test_the_first_entry_that_is_out_of_range_is_named(entry):
    check_range(tokens=(torch.tensor([[0, 3]]), 4), nothing=(torch.zeros(0, dtype=torch.long), 1))
    with pytest.raises(ValueError, match=rf"^tokens: {entry} is out of range; must be 0 to 3$"):
        check_range(answers=(torch.tensor([1]), 2), tokens=(torch.tensor([[0, entry], [9, 0]]), 4))


def test_entries_of_another_device_are_not_waited_for():
    check_range(tokens=(torch.tensor([9], device="meta"), 4))
