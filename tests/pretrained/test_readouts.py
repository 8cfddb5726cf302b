"""A map that is fitted finds what is linear."""

import torch

from companion.pretrained.readouts import RIDGE, ridge


def test_a_ridge_finds_the_map_and_the_offset_of_a_linear_relation():
    generator = torch.Generator().manual_seed(0)
    x, A = torch.randn(4000, 6, generator=generator) + 3, torch.randn(6, 6, generator=generator)
    found, offset = ridge(x, x @ A + 2)
    torch.testing.assert_close(found, A / (1 + RIDGE), atol=0.01, rtol=0)
    torch.testing.assert_close(x.mean(0) @ found + offset, x.mean(0) @ A + 2, atol=1e-3, rtol=0)
