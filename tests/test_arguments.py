"""Sizes that are too small are named; a seed stands for a generator."""

import pytest
import torch

from companion.arguments import as_generator, at_least


def test_the_first_value_that_is_too_small_is_named():
    at_least(length=(3, 3), batch=(1, 1))
    with pytest.raises(ValueError, match=r"^batch = 0: must be at least 1$"):
        at_least(length=(3, 3), batch=(0, 1), noise=(-1, 0))


def test_a_seed_is_a_fresh_generator_and_a_generator_is_itself():
    generator = torch.Generator()
    assert as_generator(generator) is generator
    assert torch.equal(torch.rand(3, generator=as_generator(5)), torch.rand(3, generator=torch.Generator().manual_seed(5)))
