"""Packages that the base of pyproject.toml leaves out, and an extra brings: where one is missing, that is named."""

import sys
from types import TracebackType


class MissingExtra(ImportError):
    """Something is asked for whose extra is not installed; the message says which, and how it is installed."""


class Extra:
    """Stands around the imports of what an extra brings. Raises MissingExtra for one that is not installed.

    >>> with Extra("lessons"):
    ...     from matplotlib.figure import Figure
    """

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        package = str(error.name).partition(".")[0] if isinstance(error, ModuleNotFoundError) else "companion"
        if package != "companion":
            raise MissingExtra(
                f"{package} is not installed; it comes with the extra {self.name!r}: "
                f'{sys.executable} -m pip install "transformers-as-algorithms[{self.name}]"'
            ) from None
