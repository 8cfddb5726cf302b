"""Strings, sparse functions, noise and corruptions are what they say, and bad arguments are named."""

import pytest
import torch
from refusals import refusals

from companion.topics.sensitivity.data import (
    CORRUPTIONS,
    SILENT,
    Sparse,
    another,
    corrupted,
    cube,
    digits,
    last_write,
    patches,
    pixels,
    strings,
    truth_table,
    turned,
    windows,
    writes,
)


def test_strings_stand_at_their_numbers():
    bits = cube(5)
    assert torch.equal((bits << torch.arange(5)).sum(-1), torch.arange(32))
    assert bits[6].tolist() == [0, 1, 1, 0, 0]


def test_tables_are_the_functions_they_name():
    bits = cube(5)
    for kind, right in (("majority", bits.sum(-1) >= 3), ("parity", bits.sum(-1) % 2 == 1), ("first", bits[:, 0] == 1)):
        assert torch.equal(truth_table(kind, 5), right.long())
    assert truth_table("majority", 4).sum() == 5, "more than half of four are three or four"
    coins = truth_table("random", 12, generator=1)
    assert coins.double().mean().item() == pytest.approx(0.5, abs=0.03)


def test_a_sparse_function_sees_its_places_alone():
    sparse = Sparse(truth_table("random", 3, generator=2), torch.tensor([4, 0, 2]))
    bits = strings(200, 6, generator=3)
    assert torch.equal(sparse(bits), sparse.table[bits[:, 4] + 2 * bits[:, 0] + 4 * bits[:, 2]])
    assert torch.equal(sparse(bits), sparse(bits ^ torch.tensor([0, 1, 0, 1, 0, 1])))


def test_noise_turns_as_many_as_told():
    bits = strings(2000, 10, generator=4)
    assert (turned(bits, 0.2, generator=5) != bits).double().mean().item() == pytest.approx(0.2, abs=0.01)
    assert torch.equal(turned(bits, 1.0, generator=5), 1 - bits)


def test_the_last_write_decides():
    silent = SILENT
    tokens = torch.tensor([[0, 1, silent, silent], [1, silent, 0, silent], [silent] * 4, [silent, silent, silent, 1]])
    assert last_write(tokens).tolist() == [1, 0, 0, 1]
    assert (writes(3000, 8, generator=6) == SILENT).double().mean().item() == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("vocabulary", [2, 5])
def test_each_copy_has_another_token_at_its_own_place(vocabulary):
    tokens = torch.randint(vocabulary, (400, 6), generator=torch.Generator().manual_seed(7))
    copies = another(tokens, vocabulary, generator=8)
    assert torch.equal(copies != tokens[:, None], torch.eye(6, dtype=torch.bool).expand(400, 6, 6))
    there = copies.diagonal(dim1=1, dim2=2)
    assert there.min() == 0 and there.max() == vocabulary - 1


def test_patches_are_pixels_and_back():
    images, labels = digits()
    assert images.shape == (1797, 8, 8) and labels.max() == 9 and images.min() >= 0 and images.max() == 1
    cut = patches(images[:7])
    assert torch.equal(pixels(cut), images[:7])
    assert torch.equal(cut[:, 5], images[:7, 2:4, 2:4].flatten(1)), "row by row, four patches in each"


def test_corruptions_do_what_they_say():
    images = digits()[0][:50] + 0.1
    spoilt = {kind: corrupted(images, kind, generator=1) for kind in CORRUPTIONS}
    assert all(each.shape == images.shape and not torch.equal(each, images) for each in spoilt.values())
    assert (spoilt["noise"] - images).std().item() == pytest.approx(0.3, abs=0.02)
    assert torch.equal(spoilt["shift"][..., 1:], images[..., :-1])
    assert ((spoilt["occlusion"] == 0).flatten(1).sum(1) == 9).all()
    hit = spoilt["salt and pepper"] != images
    assert hit.double().mean().item() == pytest.approx(0.1, abs=0.02)
    torch.testing.assert_close(spoilt["contrast"] * 3, images)
    torch.testing.assert_close(spoilt["blur"][:, 1, 1], images[:, :3, :3].mean((1, 2)))


def test_windows_are_as_many_from_either_manual():
    tokens, labels = windows(24, 400)
    assert tokens.shape == (len(labels), 24) and labels.double().mean() == 0.5 and len(labels) > 300
    assert tokens.min() == 0 and tokens.max() == 399


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: cube(0), "n = 0"),
    (lambda: truth_table("nand", 3), "kind = 'nand': must be one of majority"),
    (lambda: strings(0, 3, generator=0), "batch = 0"),
    (lambda: turned(cube(2), 1.5, generator=0), "p = 1.5: must be 0 to 1"),
    (lambda: writes(2, 0, generator=0), "n = 0"),
    (lambda: another(cube(2), 1, generator=0), "vocabulary = 1"),
    (lambda: corrupted(digits()[0][:1], "rain", generator=0), "kind = 'rain': must be one of noise"),
    (lambda: windows(0), "length = 0"),
)
