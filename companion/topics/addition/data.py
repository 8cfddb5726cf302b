"""Sums of two numbers, a text that counts, and the vectors that others trained for the words 0, 1, 2, ..: what a model
of addition is trained on, and what its number embeddings come from.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from safetensors import safe_open
from torch import Tensor

from companion.core.arguments import as_generator, at_least, check_range


class Sums(NamedTuple):
    """Problems a + b, and their answers."""

    operands: Int[Tensor, "problems two"]
    answers: Int[Tensor, "problems"]


def sums(numbers: int, *, share: float = 0.8, generator: torch.Generator | int = 0) -> tuple[Sums, Sums]:
    """Return all a + b with a, b in 0 .. numbers - 1, for training and for testing: a ``share`` of the unordered pairs,
    and the rest.

    a + b and b + a are on the same side, so that no answer can be had by swapping (as Zhou et al. 2024,
    arXiv:2406.03445, split them). Raises ValueError for numbers < 2, or a share that leaves one side empty.
    """
    at_least(numbers=(numbers, 2))
    generator = as_generator(generator)
    first, second = torch.triu_indices(numbers, numbers).to(generator.device)
    training = round(share * len(first))
    if not 0 < training < len(first):
        raise ValueError(
            f"share = {share!r}: of {len(first)} pairs, must leave at least one in and one out of training"
        )
    order = torch.randperm(len(first), generator=generator, device=generator.device)
    return tuple(_both_ways(first[part], second[part]) for part in (order[:training], order[training:]))


def batch_of(problems: Sums, batch: int, generator: torch.Generator) -> Sums:
    """Problems at random, with replacement, on the generator's device."""
    chosen = torch.randint(len(problems.answers), (batch,), generator=generator, device=generator.device)
    return Sums(problems.operands.to(generator.device)[chosen], problems.answers.to(generator.device)[chosen])


STEPS = {1: 0.4, 2: 0.2, 5: 0.2, 10: 0.2}


def counting(
    sequences: int,
    numbers: int,
    *,
    steps: dict[int, float] = STEPS,
    terms: int = 12,
    generator: torch.Generator | int = 0,
) -> Int[Tensor, "sequences terms"]:
    """Lines that count upwards by 1, 2, 5 or 10 from a random start: our stand-in for what a language model reads of
    numbers.

    ``steps`` maps each step to how often it is used. Lines that would pass ``numbers`` - 1 start lower. There is no
    addition in it. Raises ValueError for sequences < 1, terms < 2, or steps that are not there, below 1, or too long
    for the numbers.

    ``sequences``, ``terms``: lines, and numbers in a line.
    ``numbers``: they are 0 .. numbers - 1.
    ``steps``: how often a line counts by each step.
    ``generator``: a seed, or a generator, on whose device the draw is made.
    """
    at_least(sequences=(sequences, 1), terms=(terms, 2))
    if not steps or min(steps) < 1:
        raise ValueError(f"steps = {steps!r}: must be at least one step, none below 1")
    if (terms - 1) * max(steps) >= numbers:
        raise ValueError(
            f"numbers = {numbers!r}: must be above (terms - 1) * {max(steps)} = {(terms - 1) * max(steps)}"
        )
    generator = as_generator(generator)
    weights = torch.tensor(list(steps.values()), dtype=torch.float64, device=generator.device)
    sizes = torch.tensor(list(steps), device=generator.device)
    step = sizes[torch.multinomial(weights, sequences, replacement=True, generator=generator)]
    room = numbers - (terms - 1) * step
    start = (torch.rand(sequences, generator=generator, device=generator.device, dtype=torch.float64) * room).long()
    return start[:, None] + step[:, None] * torch.arange(terms, device=generator.device)


def cooccurrences(lines: Int[Tensor, "sequences terms"], numbers: int) -> Float[Tensor, "numbers numbers"]:
    """Return how often two numbers stand in one line, near pairs counting more: 1 - apart / terms for each order, so 2
    for a number by itself.

    The weight falls evenly, as in word2vec, because a window with an edge leaves waves of its own width in the
    embeddings. Raises ValueError for a number that is not 0 .. numbers - 1.
    """
    terms = lines.shape[1]
    check_range(lines=(lines, numbers))
    found = torch.zeros(numbers * numbers, dtype=torch.float64, device=lines.device)
    for apart in range(terms):
        pairs = lines[:, : terms - apart] * numbers + lines[:, apart:]
        found += (1 - apart / terms) * torch.bincount(pairs.flatten(), minlength=numbers * numbers)
    found = found.view(numbers, numbers)
    return found + found.mT


EMBEDDED = Path(__file__).with_name("numbers.safetensors")  # `companion.pretrained.embedded` makes it


def embedded_numbers(name: str) -> Float[Tensor, "numbers width"]:
    """Read the vectors that others trained, on text and not on sums, for the words 0, 1, 2, .., rounded to 16 bits.

    "glove": 0 .. 999 in 50 channels, of GloVe 6B (Pennington, Socher, Manning 2014), fitted to how often 400,000 words
    stand near each other in Wikipedia and Gigaword; in the public domain (PDDL 1.0).
    "minilm": 0 .. 341 in 384 channels, the input embeddings of all-MiniLM-L6-v2, a small BERT that was trained to
    compare sentences; Apache License 2.0, as its model card says.

    Raises ValueError for another name.
    """
    return _embedded(name, name).float()


def embedded_rows(name: str) -> Int[Tensor, "numbers"]:
    """Return at which row of the whole table each of the `embedded_numbers` stands. GloVe's rows begin with the most
    frequent word, so that a number's row, counted from 0, is how many words are more frequent than it.

    Raises ValueError for another name.
    """
    return _embedded(name, f"{name}.rows").long()


def _embedded(name: str, tensor: str) -> Tensor:
    with safe_open(EMBEDDED, "pt") as file:
        names = sorted(file.metadata())
        if name not in names:
            raise ValueError(f"name = {name!r}: must be one of {', '.join(names)}")
        return file.get_tensor(tensor)


def _both_ways(first: Tensor, second: Tensor) -> Sums:
    swapped = first != second
    operands = torch.cat([torch.stack([first, second], 1), torch.stack([second, first], 1)[swapped]])
    return Sums(operands, operands.sum(1))
