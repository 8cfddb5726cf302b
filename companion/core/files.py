"""Files that are never half written, and those that people write."""

import codecs
import errno
import json
import os
import re
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from companion.core.extras import MissingExtra

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds, until a file is given up that another program holds
# what a scanner, OneDrive or a network drive says of a file for a moment
HELD = {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EAGAIN, errno.EIO, errno.ESTALE}
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
CONFLICT = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)
FOREIGN = {  # what lies in a file's place, by how it begins, in small letters, and what to do
    b"version https://git-lfs": "it is a Git LFS pointer; `git lfs pull` in its repository brings the file",
    b"pk\x03\x04": "it is a zip archive",
    b"\x1f\x8b": "it is packed (gzip)",
    b"%pdf": "it is a PDF",
    b"\x89png": "it is a picture",
    b"<!doctype": "it is a web page, not the file; download it anew",
    b"<html": "it is a web page, not the file; download it anew",
}


class FileError(ValueError):
    """A file that is not what it should be; the message names it, or says what has become of it."""


def told(error: Exception, command: str) -> str:
    """Return what a person needs to know who called a ``command`` that ended with this ``error`` of a file, of a disk
    or of an extra; empty for one that only a traceback explains.
    """
    if isinstance(error, FileError | MissingExtra):
        return f"{command}: {error}"
    if not isinstance(error, OSError) or error.errno not in REFUSED or not error.filename:
        return ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{command}: {error.filename}: {error.strerror}. Make room, then start it again."
    return (
        f"{command}: {error.filename}: {error.strerror}. If that is in the course's folder, copy the course to one of "
        "your own and start it there. Some commands write their results where --out says."
    )


def patiently(action: Callable[[], T], place: Path) -> T:
    """Call what another program may block for a moment, again and again for a second and a half. Raises OSError after
    that; and at once where nobody is in the way, or ``place``, which is read or written in, is not ours to use.
    """
    for pause in PAUSES:
        try:
            return action()
        except OSError as error:
            ours = os.R_OK if place.is_file() else os.W_OK
            if error.errno not in HELD or not os.access(place, ours):
                raise
            time.sleep(pause)
    return action()


def encoding(data: bytes) -> str:
    """Name the encoding in which a person's program wrote a text: UTF-8, UTF-16 or UTF-32, with a mark or without, else
    Windows-1252. Raises UnicodeDecodeError for UTF-8 that breaks off within a letter.
    """
    found = json.detect_encoding(data)
    try:
        data.decode(found)
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and not data[: error.start].isascii():
            raise
        return "cp1252"
    return found


def foreign(data: bytes) -> str:
    """Return what a file is in place of a text; empty if it may be one."""
    if data and not data.strip(b"\0"):
        return "it holds nothing but zeros"
    begins = data[:100].removeprefix(codecs.BOM_UTF8).lstrip().lower()
    return next((what for sign, what in FOREIGN.items() if begins.startswith(sign)), "")


def conflict(text: str, cell: str = "") -> str:
    """Return where git has left the marks of a merge conflict; empty where it has not. Each line in which ``cell``
    stands begins a cell.
    """
    found = CONFLICT.search(text)
    return f"git has left a merge conflict in it ({place(text, found.start(), cell)})" if found else ""


def place(text: str, at: int, cell: str = "") -> str:
    """Return the line in which the character number ``at`` stands, and, if ``cell`` begins each cell, the cell."""
    number = text.count(cell, 0, at) if cell else 0
    return f"line {text.count(chr(10), 0, at) + 1}" + f", cell {number}" * bool(number)


def read_text(path: Path) -> str:
    """Read a text that a person wrote, in whatever program (see `encoding`). Raises FileError, which names the file and
    says what has become of it.
    """
    text = ""
    try:
        data = patiently(path.read_bytes, path)
        why = foreign(data)
        if not why:
            text = data.decode(encoding(data))
    except OSError as error:
        raise FileError(f"{path.name}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        why = "is neither UTF-8 nor UTF-16 nor Windows-1252, or breaks off; save it as UTF-8"
    if why := why or conflict(text):
        raise FileError(f"{path.name}: {why}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path) -> dict[str, Any]:
    """Read settings. Raises FileError as `read_text`, and where they are no TOML."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error).replace("at end of document", f"at its end, line {len(text.splitlines())}")
        raise FileError(f"{path.name}: {reason}") from None


def read_kept(path: Path, what: str, fits: Callable[[Any], bool]) -> Any:
    """Read what the course keeps in a file of JSON; None where there is none. One that is damaged, or that does not
    fit, is renamed, and the new name printed: ``what`` it should be, in words. Raises OSError where it cannot be read
    at the moment, or not be renamed: then nothing may be written over it.
    """
    try:
        content = json.loads(patiently(path.read_bytes, path))
        if fits(content):
            return content
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, IsADirectoryError):
        pass
    names = (path.with_name(f"{path.stem} (set aside {number}){path.suffix}") for number in count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    patiently(lambda: os.replace(path, aside), path.parent)
    print(f"{path.name} is not {what}; it is now {aside.name}")
    return None


def make_room(folder: Path) -> None:
    """Make a ``folder`` if need be. Raises OSError where nothing could be written in it, before hours are lost."""
    if folder.is_symlink() and not folder.exists():
        raise FileNotFoundError(errno.ENOENT, "it is a link that leads nowhere", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "it cannot be written", str(folder))


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write beside, then rename: whoever reads ``path`` sees the old content or the new. Its folder is made if need be,
    and nothing stays beside it when writing fails. Raises OSError, which names ``path``.
    """
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    _beside(path, lambda beside: beside.write_bytes(data))


def write_safetensors(path: Path, tensors: "dict[str, Tensor]", header: dict[str, str]) -> None:
    """Write tensors as `atomic_write` writes text: ``path`` is never half a file."""
    from safetensors import SafetensorError  # noqa: PLC0415 (it imports torch, which the bare commands lack)
    from safetensors.torch import save_file  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    whole, seen = {}, set()
    for name, tensor in tensors.items():
        whole[name] = tensor.detach().cpu().contiguous()
        storage = whole[name].untyped_storage().data_ptr()
        if storage in seen:  # tied weights, or a view: each name has a copy of its own in the file
            whole[name] = whole[name].clone()
        seen.add(storage)

    def write(beside: Path) -> None:
        try:
            save_file(whole, beside, header)
        except SafetensorError as error:  # its writer has the system's error as a text alone
            number = re.search(r"os error (\d+)", str(error))
            if not number:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from None

    _beside(path, write)


def _beside(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside ``path``, and rename it."""
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        write(beside)
        rename_over(beside, path)
    except OSError as error:
        if error.errno:  # the system's, and not of a sentence alone
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def in_its_place(path: Path) -> str:
    """Return what a file that cannot be read is, if that is known, as the end of a sentence on it."""
    try:
        with path.open("rb") as file:
            begins = file.read(100)
    except OSError:
        return ""
    why = foreign(begins) or ("" if begins.strip() else "it is empty")
    return why and f"; {why}"


def rename_over(beside: Path, path: Path) -> None:
    """Rename ``beside`` to ``path``, over what is there. It is tried again (`patiently`) while another program, a
    browser or a scanner, has ``path`` open. Raises OSError after that.
    """
    patiently(lambda: os.replace(beside, path), path.parent)
