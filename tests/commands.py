"""Commands, called in this process by the words that a person types."""

from importlib import import_module
from pathlib import Path

from companion.__main__ import parser


def called(command: str, *words: object, root: Path | None = None) -> int:
    """Return the exit status of a command, of the checkout at ``root`` unless it is the course's own."""
    arguments = parser().parse_args([command, *map(str, words)])
    given = () if root is None else (root,)
    return import_module(f"companion.workshop.cli.{command}").main(arguments, *given)
