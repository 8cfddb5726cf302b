"""Strings, sparse functions, noise and corruptions are what they say, and bad arguments are named."""

import re
from importlib import resources
from itertools import product
from pydoc_data.topics import topics

import pytest
import torch
from hypothesis.strategies import integers, lists
from laws import drawn, holds, laws, quarters
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


def hidden(generator):
    """The first row and column of the black square, at the end of every image."""
    black = corrupted(torch.ones(4000, 8, 8), "occlusion", generator=generator) == 0
    return torch.stack([black.any(2).int().argmax(1), black.any(1).int().argmax(1)], 1)


GREY, SPECKS, WRITES = torch.tensor([0.25, 0.75]).repeat(6000, 8, 4), {0.0: 1, 1.0: 1}, {0: 1, 1: 1, SILENT: 8}
test_draws_follow_their_laws = laws(
    (lambda g: strings(20_000, 3, generator=g), product(range(2), repeat=3)),
    (
        lambda g: turned(torch.tensor([[0, 1]]).expand(20_000, 2), 0.2, generator=g),
        {(a, b): 4.0 ** ((a == 0) + (b == 1)) for a, b in product(range(2), repeat=2)},
    ),
    (lambda g: writes(60_000, 2, generator=g), {(i, j): WRITES[i] * WRITES[j] for i, j in product(WRITES, repeat=2)}),
    (
        lambda g: another(torch.tensor([[1, 3]]).expand(4000, 2), 4, generator=g),
        [(i, 3, 1, j) for i, j in product((0, 2, 3), (0, 1, 2))],
    ),
    (drawn(500, lambda g: tuple(truth_table("random", 2, generator=g).tolist())), product(range(2), repeat=4)),
    (hidden, product(range(6), repeat=2)),
    (
        lambda g: corrupted(GREY, "salt and pepper", generator=g)[:, 4, 2:4],
        {(i, j): SPECKS.get(i, 18) * SPECKS.get(j, 18) for i, j in product((0, 1, 0.25), (0, 1, 0.75))},
    ),
    (
        lambda g: quarters((corrupted(GREY, "noise", generator=g) - GREY)[:, 4, 3:5] / 0.3),
        product(range(4), repeat=2),
    ),
)


@holds(words=lists(integers(0, SILENT), min_size=1, max_size=8))
def test_the_last_write_decides(words):
    assert last_write(torch.tensor([words, [SILENT] * len(words)])).tolist() == [
        [0, *(word for word in words if word != SILENT)][-1],
        0,
    ]


def test_strings_stand_at_their_numbers():
    bits = cube(5)
    assert torch.equal((bits << torch.arange(5)).sum(-1), torch.arange(32))
    assert bits[6].tolist() == [0, 1, 1, 0, 0]


def test_tables_are_the_functions_they_name():
    bits = cube(5)
    for kind, right in (("majority", bits.sum(-1) >= 3), ("parity", bits.sum(-1) % 2 == 1), ("first", bits[:, 0] == 1)):
        assert torch.equal(truth_table(kind, 5), right.long())
    assert truth_table("majority", 4).sum() == 5, "more than half of four are three or four"


def test_a_sparse_function_sees_its_places_alone():
    sparse = Sparse(truth_table("random", 3, generator=2), torch.tensor([4, 0, 2]))
    bits = strings(200, 6, generator=3)
    assert torch.equal(sparse(bits), sparse.table[bits[:, 4] + 2 * bits[:, 0] + 4 * bits[:, 2]])
    assert torch.equal(sparse(bits), sparse(bits ^ torch.tensor([0, 1, 0, 1, 0, 1])))


@pytest.mark.parametrize("vocabulary", [2, 5])
def test_each_copy_has_another_token_at_its_own_place(vocabulary):
    tokens = torch.randint(vocabulary, (400, 6), generator=torch.Generator().manual_seed(7))
    copies = another(tokens, vocabulary, generator=8)
    assert torch.equal(copies != tokens[:, None], torch.eye(6, dtype=torch.bool).expand(400, 6, 6))


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
    assert torch.equal(spoilt["shift"][..., 1:], images[..., :-1])
    assert ((spoilt["occlusion"] == 0).flatten(1).sum(1) == 9).all()
    torch.testing.assert_close(spoilt["contrast"] * 3, images)
    torch.testing.assert_close(spoilt["blur"][:, 1, 1], images[:, :3, :3].mean((1, 2)))


def test_windows_are_as_many_from_either_manual():
    tokens, labels = windows(24, 400)
    assert tokens.shape == (len(labels), 24) and labels.double().mean() == 0.5 and len(labels) > 300
    assert tokens.min() == 0 and tokens.max() == 399
    described = sorted(resources.files("sklearn.datasets.descr").glob("*.rst"))
    manuals = [topics[name] for name in sorted(topics)], [file.read_text("utf-8") for file in described]
    words, numbers = [re.findall("[a-z]+", "\n".join(texts).lower()) for texts in manuals], {}
    for side in (0, 1):  # a word has one number wherever it stands, and an own one if it is no rare word
        for word, number in zip(words[side], tokens[labels == side].flatten().tolist(), strict=False):
            assert numbers.setdefault(word, number) == number
    assert sorted(filter(None, numbers.values())) == list(range(1, 400))


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
