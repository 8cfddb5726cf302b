"""The file that ``--out FIGURE.png`` names, for the commands that draw."""

from pathlib import Path

from companion.files import atomic_write


def figure_file(out: str | None) -> Path | None:
    """Where the figure goes; None where none is wanted. Raises ValueError for what is no PNG file's name."""
    if out is None:
        return None
    path = Path(out)
    if path.suffix != ".png" or path.is_dir():
        raise ValueError(f"out = {out!r}: must be a file that ends in .png")
    return path


def keep(command: str, what: str, path: Path, content: bytes) -> int:
    """Write a figure and say so; the command's exit status, 1 if it cannot be written.

    ``command``: who speaks where it fails.
    ``what``: what is drawn, as the subject of a sentence, with its verb.
    ``path``, ``content``: the file, and the PNG for it.
    """
    try:
        atomic_write(path, content)
    except OSError as error:
        print(f"{command}: out = {str(path)!r}: cannot be written ({error.strerror})")
        return 1
    print(f"{what} drawn in {path}")
    return 0
