"""What commands are given, checked before anything is done: numbers, places to write to, names. Standard library."""

import argparse
import math
import os
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from companion.core.registry import like, nearest_first


class Parser(argparse.ArgumentParser):
    """A parser, and those of its commands, that proposes the name which is most like an unknown one."""

    def parse_known_args(self, args=None, namespace=None):
        """Refuse, under the command's own usage, what it does not know; ``test`` hands that on to pytest, but for what
        is all but an option of ours.
        """
        known, rest = super().parse_known_args(args, namespace)
        near = {word: like(word, self._option_string_actions) if word.startswith("--") else [] for word in rest}
        if rest and ("pytest_args" not in known or any(near.values())):
            said = [f"{word} (nearest: {near[word][0]})" if near[word] else word for word in rest]
            self.error(f"unrecognized arguments: {' '.join(said)}")
        return known, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            there = ", ".join(nearest_first(value, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}: must be one of {there}")


def in_range(kind: type[int] | type[float], low: float, high: float = math.inf) -> Callable[[str], float]:
    """Return the type of an argument that is a finite number of a ``kind``, from ``low`` to ``high``."""
    allowed = f"{'a whole' if kind is int else 'a'} number from {low} {'on' if high == math.inf else f'to {high}'}"

    def checked(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not (low <= value <= high and value < math.inf):
            raise ArgumentTypeError(f"{text!r}: must be {allowed}")
        return value

    return checked


JOBS = in_range(int, 1, 1024)  # as many processes are started
PORT = in_range(int, 1, 65535)
SEED = in_range(int, 0, 2**31 - 1)  # what torch, NumPy and scikit-learn all take, with room for what is added to it


def to_read(text: str, *, folder: bool = False) -> Path:
    """Return the path of an argument that is a file to read, or a ``folder``."""
    if not (os.path.isdir if folder else os.path.isfile)(text):
        raise ArgumentTypeError(f"{text!r}: must be a {'folder' if folder else 'file'} that exists")
    return Path(text)


def to_write(suffix: str = "") -> Callable[[str], Path]:
    """Return the type of an argument that says where to write: a file that ends in ``suffix``, or a folder if that is
    empty. What it must lie in is tried out: nobody trains for hours and then cannot save.
    """
    allowed = f"a file that ends in {suffix}" if suffix else "a folder"

    def checked(text: str) -> Path:
        path = Path(text)
        there = os.path.lexists(path)
        if not text or path.is_dir() != (there and not suffix) or (suffix and path.suffix != suffix):
            raise ArgumentTypeError(f"{text!r}: must be {allowed}")
        places = path.parents if suffix else (path, *path.parents)
        try:
            with tempfile.TemporaryFile(dir=next(filter(os.path.lexists, places))):
                return path
        except OSError as error:
            raise ArgumentTypeError(f"{text!r}: cannot be written ({error.strerror})") from None

    return checked
