"""The linear maps of a language model: the half of an MLP's rank that is left, and what a ridge regression finds."""

import torch

from companion.pretrained import linear
from companion.pretrained.language import LanguageModel


def test_half_of_the_rank_of_an_mlp_is_left(llama_folder):
    model = LanguageModel(llama_folder)
    linear.halve_rank(model, 1)
    for layer, rank in ((0, 24), (1, 12)):
        mlp = model.body.blocks[layer].mlp
        for matrix in (*mlp.gate_and_up.weight.chunk(2), mlp.down.weight):
            assert torch.linalg.matrix_rank(matrix) == rank


def test_a_ridge_finds_the_map_and_the_offset_of_a_linear_relation():
    generator = torch.Generator().manual_seed(0)
    x, A = torch.randn(4000, 6, generator=generator) + 3, torch.randn(6, 6, generator=generator)
    found, offset = linear.ridge(x, x @ A + 2)
    torch.testing.assert_close(found, A / (1 + linear.RIDGE), atol=0.01, rtol=0)
    torch.testing.assert_close(x.mean(0) @ found + offset, x.mean(0) @ A + 2, atol=1e-3, rtol=0)
