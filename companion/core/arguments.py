"""What functions on every floor do with their arguments: refuse what is out of range, take a seed for a generator."""

import math

import torch
from torch import Tensor


def at_least(**values: tuple[float, float]) -> None:
    """Check that values are not below their least. Raises ValueError, naming the argument, its value and the least.

    >>> at_least(length=(length, 3), batch=(batch, 1))
    """
    for name, (value, least) in values.items():
        if value < least:
            raise ValueError(f"{name} = {value!r}: must be at least {least}")


def positive(**values: float) -> None:
    """Check that values are above 0 and finite. Raises ValueError, naming the argument and its value.

    >>> positive(lr=lr, beta=beta)
    """
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} = {value!r}: must be positive and finite")


def check_range(**values: tuple[Tensor, int]) -> None:
    """Check that entries are 0 to n - 1, on the CPU alone. Raises ValueError, naming the argument and the first that is
    not.

    >>> check_range(tokens=(tokens, vocabulary))
    """
    for name, (entries, n) in values.items():
        if (
            entries.device.type != "cpu"
        ):  # every forward pass would wait for the GPU, which refuses a wrong index itself
            continue
        wrong = entries[(entries < 0) | (entries >= n)]
        if len(wrong):
            raise ValueError(f"{name}: {int(wrong[0])} is out of range; must be 0 to {n - 1}")


def as_generator(generator: torch.Generator | int) -> torch.Generator:
    """Return the generator itself, or a fresh one on the CPU with this seed."""
    return torch.Generator().manual_seed(generator) if isinstance(generator, int) else generator
