"""Addition as a task: two numbers digit by digit, the last digit first, and their sum: what is carried is the carry."""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task, task

TRAINED = 6  # digits in training; others are tested too
DIGITS, PLACES = (3, 6, 12), 16


@task
def addition_task(scale: str) -> Task:  # noqa: ARG001 - the same sizes at every scale
    """Make the task; a sum begins at any of the 16 places, so that no place is new where sums are longer."""
    return Task(
        f"add two numbers, digit by digit from the right; trained on {TRAINED} digits",
        "digits",
        DIGITS,
        vocabulary=1 + 20 + PLACES,
        features=3,
        outputs=10,
        draw=_draw,
        best=_added,
        blind=lambda inputs: (inputs[..., 1:].sum(-1) - 12) % 10,  # no carry is a little likelier than one
    )


def _draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
    """Positions (place, digit, digit); the digit of the sum counts at all of them, or at the last."""
    where, length = {"generator": generator, "device": generator.device}, size or TRAINED
    digits = torch.randint(10, (batch, length, 2), **where)
    places = torch.randint(PLACES - length + 1, (batch, 1), **where) + torch.arange(length, device=generator.device)
    powers = 10 ** torch.arange(length, device=generator.device)
    both = (digits * powers[:, None]).sum(1).sum(-1)  # at most 2 * 10^12: exact
    targets = both[:, None] // powers % 10
    counts = torch.ones_like(targets, dtype=torch.bool)
    if size is not None:
        counts[:, :-1] = False
    return Problems(torch.cat([21 + places[..., None], digits + torch.tensor([1, 11]).to(digits)], -1), targets, counts)


def _added(inputs: Int[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    carry, digits = torch.zeros_like(inputs[:, 0, 0]), []
    for both in (inputs[..., 1:].sum(-1) - 12).T:
        digits.append((both + carry) % 10)
        carry = (both + carry) // 10
    return torch.stack(digits, 1)
