"""Files that are never half written, and where those lie that other packages bring."""

import os
import time
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# what lies in a file's place, by how it begins, and what to do
IN_ITS_PLACE = {
    b"version https://git-lfs": "a Git LFS pointer; `git lfs pull` in its repository brings the file",
    b"<!doctype html": "a web page, not the file; download it anew",
    b"<html": "a web page, not the file; download it anew",
}
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds, until Windows gives up a file that somebody reads


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write beside, then rename: whoever reads ``path`` sees the old content or the new. Its folder is made if need be,
    and nothing stays beside it when writing fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        rename_over(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_safetensors(path: Path, tensors: "dict[str, Tensor]", header: dict[str, str]) -> None:
    """Write tensors as `atomic_write` writes text: ``path`` is never half a file."""
    from safetensors.torch import save_file  # noqa: PLC0415 (it imports torch, which the bare commands lack)

    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        whole, seen = {}, set()
        for name, tensor in tensors.items():
            whole[name] = tensor.detach().cpu().contiguous()
            place = whole[name].untyped_storage().data_ptr()
            if place in seen:  # tied weights, or a view: each name has a copy of its own in the file
                whole[name] = whole[name].clone()
            seen.add(place)
        save_file(whole, beside, header)
        rename_over(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def in_its_place(path: Path) -> str:
    """Return, to go on with a sentence on a file that cannot be read, what it is that lies there, if that is known."""
    try:
        with path.open("rb") as file:
            begin = file.read(100).lstrip().lower()
    except OSError:
        return ""
    found = [said for known, said in IN_ITS_PLACE.items() if begin.startswith(known)]
    return f"; it is {found[0] if found else 'empty'}" if found or not begin else ""


def rename_over(beside: Path, path: Path) -> None:
    """Rename ``beside`` to ``path``, over what is there. Windows refuses while another program (a browser, a scanner)
    has ``path`` open: there it is tried again for a second and a half. Raises PermissionError after that.
    """
    for pause in PAUSES if os.name == "nt" else ():
        try:
            os.replace(beside, path)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(beside, path)


def mathjax() -> Path:
    """The folder with MathJax 3 (``tex-chtml.js``, its parts and fonts), which the package ``mathjax`` brings."""
    package: ModuleType = __import__("mathjax")
    return Path(str(files(package))) / "static/mathjax/es5"
