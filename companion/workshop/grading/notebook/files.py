"""Files that were handed in: which one is the notebook, and its bytes. Nothing is parsed."""

import os
import re
import stat
from pathlib import Path


class Unreadable(ValueError):
    """A file that holds no notebook of this lesson; the message says why."""


def read_notebook(folder: Path, name: str, largest: int) -> tuple[bytes, float]:
    """Read the notebook's bytes, and when it was last changed: the file ``name``.ipynb, or the only notebook in
    ``folder`` beside the lesson's further one, or that one alone. Raises Unreadable. Follows no links.
    """
    if folder.is_symlink() or folder.parent.is_symlink():
        raise Unreadable("the folder is a link")
    # names that begin with ._ are macOS's own
    paths = [path for path in sorted(folder.iterdir()) if path.suffix == ".ipynb" and not path.name.startswith("._")]
    path = folder / f"{name}.ipynb"
    if path not in paths:
        paths = [path for path in paths if path.name != f"{name}-further.ipynb"] or paths
        if len(paths) != 1:
            raise Unreadable(
                "there is no notebook" if not paths else f"there are {len(paths)} notebooks, none named {name}.ipynb"
            )
        path = paths[0]
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise Unreadable("it is no file")
            if about.st_size > largest:
                raise Unreadable(f"the notebook has {about.st_size >> 20} MiB; at most {largest >> 20} are read")
            return file.read(largest), about.st_mtime
    except OSError as error:
        raise Unreadable(f"it cannot be opened ({error.strerror})") from None


def refused(data: bytes, lesson: str) -> str:
    """Return why a hand-in is none of ``lesson``, and what to do, where it says so itself: its further notebook. Empty
    otherwise. Looks for what `release` writes into a notebook's metadata; nothing is parsed.
    """
    if re.search(rb'"notebook":\s*"' + re.escape(f"{lesson}-further".encode()) + rb'"', data):
        return f"it is {lesson}-further.ipynb, in which nothing earns points: hand in {lesson}.ipynb"
    return ""
