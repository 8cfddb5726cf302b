"""Boolean functions of a few bits among many, with noise on labels or on bits; words in which the last one that writes
decides; handwritten digits as patches, corrupted; windows of text.

A string of n bits is a row of 0 and 1, and has a number: bit i counts 2^i. A truth table lists a function's values by
that number.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib import resources

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least
from companion.core.extras import Extra

SILENT = 2  # the token that writes nothing
UNKNOWN = 0  # the token of every rare word
SIDE, PATCH = 8, 2  # pixels of a digit and of a patch, along either axis
CORRUPTIONS = ("noise", "salt and pepper", "blur", "shift", "occlusion", "contrast")


def cube(n: int) -> Int[Tensor, "inputs n"]:
    """Return all 2^n strings of n bits, in the order of their numbers. Raises ValueError for an n below 1."""
    at_least(n=(n, 1))
    return torch.arange(2**n)[:, None] >> torch.arange(n) & 1


@dataclass(frozen=True)
class Sparse:
    """A function that looks at a few places of a string: ``table[number of the bits at those places]``."""

    table: Int[Tensor, "values"]
    places: Int[Tensor, "k"]

    def __call__(self, bits: Int[Tensor, "*batch n"]) -> Int[Tensor, "*batch"]:
        """The values, 0 or 1, at these strings."""
        return self.table[(bits[..., self.places] << torch.arange(len(self.places), device=bits.device)).sum(-1)]


def truth_table(kind: str, k: int, *, generator: torch.Generator | int = 0) -> Int[Tensor, "values"]:
    """Return all values of a function of k bits, by number: the "majority" (of an even k: more than half), the
    "parity", the "first" bit, or "random", fair coins. Raises ValueError for another kind, or a k below 1.
    """
    ones = cube(k).sum(-1)
    if kind == "random":
        generator = as_generator(generator)
        return torch.randint(2, (2**k,), generator=generator, device=generator.device)
    tables = {"majority": (2 * ones > k).long(), "parity": ones % 2, "first": cube(k)[:, 0]}
    if kind not in tables:
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join([*tables, 'random'])}")
    return tables[kind]


def strings(batch: int, n: int, *, generator: torch.Generator | int) -> Int[Tensor, "batch n"]:
    """Fair coins. Raises ValueError for a number below 1."""
    at_least(batch=(batch, 1), n=(n, 1))
    generator = as_generator(generator)
    return torch.randint(2, (batch, n), generator=generator, device=generator.device)


def turned(bits: Int[Tensor, "*shape"], p: float, *, generator: torch.Generator | int) -> Int[Tensor, "*shape"]:
    """Zeros and ones, each turned round with probability p. Raises ValueError for a p that is not in [0, 1]."""
    if not 0 <= p <= 1:
        raise ValueError(f"p = {p!r}: must be 0 to 1")
    generator = as_generator(generator)
    return bits ^ (torch.rand(bits.shape, generator=generator, device=generator.device) < p).long().to(bits.device)


def writes(batch: int, length: int, *, generator: torch.Generator | int) -> Int[Tensor, "batch length"]:
    """Draw tokens 0 and 1, which write, among four times as many that do not, `SILENT`.

    `last_write` of them is a flip-flop, as Liu et al. (2023, arXiv:2306.00946) ask language models for; here for one
    answer a string. Raises ValueError for a number below 1.
    """
    generator = as_generator(generator)
    tokens = strings(batch, length, generator=generator)
    return tokens.masked_fill(torch.rand(tokens.shape, generator=generator, device=generator.device) < 0.8, SILENT)


def last_write(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch"]:
    """Return the last token that is not `SILENT`, 0 if there is none."""
    place = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    last = torch.where(tokens == SILENT, 0, place).argmax(-1, keepdim=True)
    return tokens.gather(-1, last)[:, 0] % SILENT


def another(
    tokens: Int[Tensor, "batch length"], vocabulary: int, *, generator: torch.Generator | int
) -> Int[Tensor, "batch length length"]:
    """Draw as many copies of every sequence as it has places: copy i has another token at place i, any with equal odds.

    For bits that is a flip. The sources draw the new token from all, so that it may be the old one. Raises ValueError
    for a vocabulary below 2.
    """
    at_least(vocabulary=(vocabulary, 2))
    generator = as_generator(generator)
    step = torch.randint(1, vocabulary, tokens.shape, generator=generator, device=generator.device)
    copies = tokens[:, None].repeat(1, tokens.shape[1], 1)
    copies.diagonal(dim1=1, dim2=2).copy_((tokens + step.to(tokens.device)) % vocabulary)
    return copies


# -- images


def patches(pixels: Float[Tensor, "batch 8 8"]) -> Float[Tensor, "batch patch 4"]:
    """Return an image as 16 patches of 2 x 2 pixels, row by row."""
    return F.unfold(pixels[:, None], PATCH, stride=PATCH).mT


def pixels(patches: Float[Tensor, "batch patch 4"]) -> Float[Tensor, "batch 8 8"]:
    """Return the image of its patches."""
    return F.fold(patches.mT, (SIDE, SIDE), PATCH, stride=PATCH)[:, 0]


@cache
def digits() -> tuple[Float[Tensor, "images 8 8"], Int[Tensor, "images"]]:
    """Load the 1,797 handwritten digits that come with scikit-learn, in [0, 1], shuffled once, and what they say."""
    with Extra("lessons"):
        from sklearn.datasets import load_digits  # noqa: PLC0415 (SciPy's address space, for this alone)

    bundle = load_digits()
    order = torch.randperm(len(bundle.target), generator=torch.Generator().manual_seed(0))
    return torch.tensor(bundle.images / 16, dtype=torch.float32)[order], torch.tensor(bundle.target)[order]


def corrupted(
    pixels: Float[Tensor, "batch 8 8"], kind: str, *, generator: torch.Generator | int
) -> Float[Tensor, "batch 8 8"]:
    """Images with one of the `CORRUPTIONS`: N(0, 0.3^2) on every pixel; a tenth of the pixels black or white; the mean
    of 3 x 3 pixels; all one pixel to the right; a square of 3 x 3 pixels black; a third of the contrast.

    Raises ValueError for another kind.
    """
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    if kind == "noise":
        return pixels + 0.3 * torch.randn(pixels.shape, **where).to(pixels.device)
    if kind == "salt and pepper":
        hit = torch.rand(pixels.shape, **where) < 0.1
        return torch.where(hit.to(pixels.device), torch.randint(2, pixels.shape, **where).to(pixels), pixels)
    if kind == "blur":
        return F.avg_pool2d(pixels[:, None], 3, stride=1, padding=1)[:, 0]
    if kind == "shift":
        return F.pad(pixels, (1, 0))[..., :-1]
    if kind == "occlusion":
        corner = torch.randint(SIDE - 2, (len(pixels), 2, 1), **where).to(pixels.device)
        near = (torch.arange(SIDE, device=pixels.device) - corner - 1).abs() <= 1  # (image, axis, pixel)
        return pixels.masked_fill(near[:, 0, :, None] & near[:, 1, None], 0)
    if kind == "contrast":
        return pixels / 3
    raise ValueError(f"kind = {kind!r}: must be one of {', '.join(CORRUPTIONS)}")


# -- text


@cache
def windows(length: int = 24, vocabulary: int = 400) -> tuple[Int[Tensor, "windows length"], Int[Tensor, "windows"]]:
    """Windows of words from two manuals that every machine with the course has: the help topics of Python (label 0) and
    scikit-learn's descriptions of its data sets (1), as many of either, in the order of the texts.

    Words are numbered by how often they come, from 1 on; rare ones are `UNKNOWN`. The texts are those of the installed
    versions: figures may move a little with them. Raises ValueError for a length below 1 or a vocabulary below 2.
    """
    at_least(length=(length, 1), vocabulary=(vocabulary, 2))
    from pydoc_data.topics import topics  # noqa: PLC0415 (half a megabyte of text, for this alone)

    described = resources.files("sklearn.datasets.descr")
    described = sorted((file for file in described.iterdir() if file.name.endswith(".rst")), key=lambda file: file.name)
    manuals = [
        "\n".join(topics[name] for name in sorted(topics)),
        "\n".join(file.read_text("utf-8") for file in described),
    ]
    words = [re.findall(r"[a-z]+", manual.lower()) for manual in manuals]
    shorter = min(map(len, words)) // length * length
    words = [each[:shorter] for each in words]
    common = [word for word, _ in Counter(words[0] + words[1]).most_common(vocabulary - 1)]
    number = {word: i + 1 for i, word in enumerate(common)}
    tokens = torch.tensor([[number.get(word, UNKNOWN) for word in each] for each in words]).view(2, -1, length)
    labels = torch.arange(2)[:, None].expand(2, tokens.shape[1])
    return tokens.transpose(0, 1).flatten(0, 1), labels.mT.flatten()
