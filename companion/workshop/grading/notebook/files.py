"""The bytes of a file that was handed in, whole or not at all, and what is said where there is no notebook. Nothing is
parsed here.
"""

import json
import keyword
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from companion.workshop.notebooks import BESIDE

HELPERS, HELP = 8, 256 << 10  # files of Python beside a notebook, and their bytes together
PACKED = (".zip", ".gz", ".tgz", ".tar", ".7z", ".rar", ".bz2", ".xz")
NAMED = 5  # files that a sentence names; of more it says how many there are


class Unreadable(ValueError):
    """A file that holds no notebook of this lesson; the message says why."""


def is_notebook(name: str) -> bool:
    """Return whether a file is called as a notebook is. Names that begin with ``._`` are macOS's own."""
    return name.lower().endswith(".ipynb") and not name.startswith("._")


def read_file(path: Path, largest: int) -> tuple[bytes, float]:
    """Read the file's bytes, and when it was last changed. Raises Unreadable, for more than ``largest`` bytes, too.
    Follows no links.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise Unreadable("it is not a file; it must be a notebook")
            if about.st_size > largest:
                raise Unreadable(too_large(about.st_size, largest))
            return file.read(largest), about.st_mtime
    except OSError as error:
        raise Unreadable(f"it cannot be opened ({error.strerror})") from None


def too_large(size: int, largest: int) -> str:
    """Say that a notebook of ``size`` bytes is not read."""
    return f"the notebook has {size >> 20} MiB; at most {largest >> 20} are read: hand it in without its outputs"


def no_notebook(names: list[str], lesson: str) -> str:
    """Say that of files with these ``names`` none is a notebook, and what to do."""
    if not names:
        return "there is no notebook"
    hidden = [name for name in names if ".ipynb." in name.lower()]
    packed = [name for name in names if name.lower().endswith(PACKED)]
    advice = f"hand in {lesson}.ipynb itself"
    if hidden:
        advice = f"if {hidden[0]} is the notebook, rename it to {lesson}.ipynb"
    elif packed:
        advice = f"nothing is unpacked, {advice}"
    return f"there is {enumerated(names)}, no notebook (.ipynb): {advice}"


def enumerated(names: Iterable[str]) -> str:
    """Return the first of these names, and how many there are besides."""
    names = sorted(names)
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    *most, last = names[:NAMED] + more
    return f"{', '.join(most)} and {last}" if most else last


def refused(data: bytes, lesson: str) -> str:
    """Return why a hand-in is none of ``lesson``, and what to do, where it says so itself: one beside it. Empty
    otherwise. Looks for what `release` writes into a notebook's metadata; nothing is parsed.
    """
    text = data.decode(json.detect_encoding(data), "replace")
    if found := re.search(rf'"notebook":\s*"({re.escape(lesson)}-(?:{"|".join(BESIDE)}))"', text):
        return f"it is {found[1]}.ipynb, in which nothing earns points: hand in {lesson}.ipynb"
    return ""


def helpers(names: Iterable[str], read: Callable[[str], bytes | None]) -> tuple[dict[str, bytes], list[str]]:
    """Return those of the files of Python with these ``names`` beside a notebook that belong to it, because it can
    import them, and the names of the others: too many, too large, not in UTF-8, called as nothing that can be imported.
    ``read`` gives one's bytes, or None.
    """
    kept: dict[str, bytes] = {}
    left = []
    for name in sorted(names):
        stem = name.removesuffix(".py")
        is_module = stem.isidentifier() and not keyword.iskeyword(stem) and len(kept) < HELPERS
        data = read(name) if is_module else None
        if data is not None and _is_text(data) and sum(map(len, kept.values())) + len(data) <= HELP:
            kept[name] = data
        else:
            left.append(name)
    return kept, left


def _is_text(data: bytes) -> bool:
    try:
        return bool(data.decode()) or not data
    except UnicodeDecodeError:
        return False
