"""Notebooks as they come from people's machines, whatever editors, git and disks have made of them. Nothing of what
they say is believed. Standard library only, but for `node`.
"""

import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from companion.core.files import FileError, conflict, foreign, patiently, place

if TYPE_CHECKING:
    from nbformat import NotebookNode

CELL = '"cell_type"'
BESIDE = ("further", "circuit")  # lie beside a lesson as NN-topic-further.ipynb and so on, read in this order, ungraded


def as_notebook(data: bytes) -> dict[str, Any]:
    """Return the notebook that a file's ``data`` are, of format 4.5: where an editor has lost metadata, outputs or
    ids, there are empty ones, and ids that are nobody else's. Raises FileError, which says what has become of it, and
    in which cell.
    """
    if why := foreign(data) or ("" if data.strip() else "it is empty"):
        raise FileError(why)
    try:
        text = data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as error:
        begun = data[: error.start].count(CELL.encode())
        raise FileError(f"it is not UTF-8 from cell {begun} on" if begun else "it is not UTF-8") from None
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        ends = text.lstrip().startswith("{") and not text.rstrip().endswith("}")
        at, what = (len(text.rstrip("\0\n")), "it breaks off") if ends else (error.pos, f"it is no JSON: {error.msg}")
        raise FileError(conflict(text, CELL) or f"{what} ({place(text, at, CELL)})") from None
    except (RecursionError, MemoryError):
        raise FileError("it is nested too deeply, or too large") from None
    if not isinstance(notebook, dict) or not {"cells", "worksheets"} & notebook.keys():
        raise FileError("it is JSON, but not a notebook")
    if "cells" not in notebook or notebook.get("nbformat", 4) != 4:
        raise FileError(f"it is of format {notebook.get('nbformat')!r}; JupyterLab can save it as one of format 4")
    cells, metadata, minor = (notebook.get(key) for key in ("cells", "metadata", "nbformat_minor"))
    if not isinstance(cells, list):
        raise FileError("its cells are not a list")
    taken: set[str] = set()
    for number, cell in enumerate(cells, 1):
        _complete(cell, number, taken)
    metadata = metadata if isinstance(metadata, dict) else {}
    minor = max(minor, 5) if isinstance(minor, int) else 5
    return notebook | {"metadata": metadata, "nbformat": 4, "nbformat_minor": minor}


def _complete(cell: Any, number: int, taken: set[str]) -> None:
    """Give a cell what it lacks, and an id that is not ``taken``. Raises FileError where it has no text."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        raise FileError(f"its cell {number} is neither code nor markdown nor raw text")
    source = cell.get("source")
    if not isinstance(source, str) and not (isinstance(source, list) and all(isinstance(line, str) for line in source)):
        raise FileError(f"its cell {number} has no source")
    if not isinstance(cell.get("metadata"), dict):
        cell["metadata"] = {}
    if cell["cell_type"] == "code":
        cell["outputs"] = [each for each in _list(cell.get("outputs")) if isinstance(each, dict)]
        cell.setdefault("execution_count", None)
    if not isinstance(id := cell.get("id"), str) or not id or id in taken:
        cell["id"] = next(free for n in count(number) if (free := f"cell-{n}") not in taken)
    taken.add(cell["id"])


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def read_notebook(path: Path) -> dict[str, Any]:
    """Read a notebook as JSON (`as_notebook`). Raises FileError, which names it, too."""
    name = "/".join(path.parts[-3:])
    try:
        return as_notebook(patiently(path.read_bytes, path))
    except OSError as error:
        raise FileError(f"{name} cannot be read ({error.strerror})") from None
    except FileError as error:
        raise FileError(f"{name} cannot be read as a notebook: {error}") from None


def node(path: Path) -> "NotebookNode":
    """Read a notebook (`read_notebook`) as what Jupyter's own packages work with."""
    import nbformat  # noqa: PLC0415 (`progress` has the standard library alone)

    return nbformat.reads(json.dumps(read_notebook(path)), as_version=4)
