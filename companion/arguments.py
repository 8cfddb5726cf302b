"""What functions on every floor do with their arguments: refuse sizes that are too small, and take a seed for a generator."""

import torch


def at_least(**values: tuple[int, int]) -> None:
    """Raises ValueError, naming the argument, its value and what is allowed, for a value below its least.

    >>> at_least(length=(length, 3), batch=(batch, 1))
    """
    for name, (value, least) in values.items():
        if value < least:
            raise ValueError(f"{name} = {value!r}: must be at least {least}")


def as_generator(generator: torch.Generator | int) -> torch.Generator:
    """The generator itself, or a fresh one on the CPU with this seed."""
    return torch.Generator().manual_seed(generator) if isinstance(generator, int) else generator
