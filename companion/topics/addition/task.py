"""Addition as a task: two numbers digit by digit, the last digit first, and their sum: what is carried is the carry."""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task

TRAINED = 6  # digits in training; others are tested too
DIGITS, PLACES = (3, 6, 12), 16  # a sum begins at any place, so that none is new to longer ones


def addition_task(scale: str) -> Task:  # noqa: ARG001 - the same sizes at every scale
    """Add two numbers, digit by digit from the right; 6 digits in training."""
    return Task("digits", DIGITS, _draw, _added, _units, outputs=10, vocabulary=1 + 20 + PLACES)


def _draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
    """Positions (place, digit, digit), from any place on; each digit of the sum counts, or the last one alone."""
    where, length = {"generator": generator, "device": generator.device}, size or TRAINED
    digits = torch.randint(10, (batch, length, 2), **where)
    first, steps = torch.randint(PLACES - length + 1, (batch, 1), **where), torch.arange(length, device=digits.device)
    powers = 10**steps
    sums = (digits.sum(-1) * powers).sum(1, keepdim=True)  # at most 2 * 10^12: exact
    tokens = torch.cat([21 + (first + steps)[..., None], digits + torch.tensor([1, 11]).to(digits)], -1)
    counts = (steps >= (length - 1 if size else 0)).expand(batch, -1)
    return Problems(tokens, sums // powers % 10, counts)


def _added(inputs: Int[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    carry, digits = torch.zeros_like(inputs[:, 0, 0]), []
    for both in (inputs[..., 1:].sum(-1) - 12).T:
        digits.append((both + carry) % 10)
        carry = (both + carry) // 10
    return torch.stack(digits, 1)


def _units(inputs: Int[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    return (inputs[..., 1:].sum(-1) - 12) % 10  # no carry is a little likelier than one
