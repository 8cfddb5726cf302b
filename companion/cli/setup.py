"""Set-up, with the standard library alone: use the environment at hand if it has everything, else make or mend ``.venv``."""

import hashlib
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import tomllib
from importlib import metadata
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlparse
from urllib.request import url2pathname

ROOT = Path(__file__).resolve().parents[2]
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


class SetupError(RuntimeError):
    """Set-up did not succeed; the message says what to do."""


def ensure(extras: tuple[str, ...], argv: list[str], *, cpu: bool = False, root: Path = ROOT) -> None:
    """Return if this interpreter has all that the course and ``extras`` need; else go on in ``root/.venv`` with the same ``argv``.

    The second case does not return: ``.venv`` is made, mended or taken as it is, and ``python -m companion *argv`` runs in it.
    Exits with a message where set-up fails.
    """
    try:
        venv = root / ".venv"
        inside = venv.exists() and Path(sys.prefix).resolve() == venv.resolve()
        if not missing(extras, root) and not (inside and outdated(venv, extras, root)):
            _bin_first(Path(sys.executable).parent)
            return
        python = venv_python(venv)
        if outdated(venv, extras, root) or inside:
            install(venv, extras, root, cpu=cpu)
        if inside and missing(extras, root):
            raise SetupError(f"pip finished, but {venv} still lacks {', '.join(missing(extras, root))}; remove {venv} and try again.")
    except SetupError as error:
        sys.exit(f"Set-up: {error}")
    except KeyboardInterrupt:
        sys.exit("Set-up: interrupted. The same command goes on from here.")
    _bin_first(python.parent)
    go_on_as([str(python), "-m", "companion", *argv])


def go_on_as(command: list[str]) -> NoReturn:
    """Let ``command`` take this process's place: signals reach it, and its exit status is ours."""
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    try:  # there execv returns to the shell at once and leaves the new process in the background
        sys.exit(subprocess.call(command))
    except KeyboardInterrupt:  # the command got it too
        sys.exit(1)


def missing(extras: tuple[str, ...], root: Path = ROOT) -> list[str]:
    """The requirements of ``pyproject.toml`` that this interpreter's environment does not meet, and the companion itself if another
    copy of it is installed, or none."""
    importlib.invalidate_caches()  # pip may just have installed into this very environment
    project = _project(root)
    unmet = [requirement for requirement in _requirements(project, extras) if not _met(requirement)]
    return unmet if _is_installed_from(root, project["name"]) else [project["name"], *unmet]


def _requirements(project: dict, extras: tuple[str, ...]) -> list[str]:
    """Base requirements and those of the extras, with the project's own extras among them (``name[a,b]``) unfolded."""
    found = list(project["dependencies"])
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            own = re.fullmatch(re.escape(project["name"]) + r"\[([\w,]+)\]", requirement)
            found += _requirements(project | {"dependencies": []}, tuple(own[1].split(","))) if own else [requirement]
    return found


def _met(requirement: str) -> bool:
    """True if the distribution is there and its version is within the bounds (``>=`` and ``<`` are all that this project uses)."""
    name, bounds = re.fullmatch(r"([\w.-]+)([<>=].*)?", requirement.replace(" ", "")).groups()
    try:
        version = _release(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False
    for bound in (bounds or "").split(","):
        at_least = bound.startswith(">=")
        if bound and (version >= _release(bound.lstrip("<>="))) != at_least:
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    """``"2.13.0+cpu"`` -> (2, 13), trailing zeros dropped so that 8 and 8.0 are the same."""
    numbers = [int(part) for part in re.match(r"\d+(\.\d+)*", version)[0].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _is_installed_from(root: Path, name: str) -> bool:
    """True if this very folder is installed (``pip install -e``): the notebooks' kernels start elsewhere and must find it."""
    for distribution in metadata.distributions(name=name):
        origin = distribution.read_text("direct_url.json")
        if origin and Path(url2pathname(urlparse(json.loads(origin)["url"]).path)).resolve() == root.resolve():
            return True
    return False


def venv_python(venv: Path) -> Path:
    """The interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _stamp(venv: Path) -> Path:
    return venv / "companion.json"


def _project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _fingerprint(root: Path) -> str:
    """Of what decides the install: the project's table and the constraints."""
    return hashlib.sha256(json.dumps(_project(root)).encode() + (root / "constraints.txt").read_bytes()).hexdigest()


def outdated(venv: Path, extras: tuple[str, ...], root: Path = ROOT) -> bool:
    """True unless the stamp says that an install of today's requirements, with these extras, was completed in this very place."""
    try:
        stamp = json.loads(_stamp(venv).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # a .venv that somebody made and filled by hand has no stamp: it is judged by what is missing
        return not (venv.exists() and Path(sys.prefix).resolve() == venv.resolve())
    if stamp["fingerprint"] != _fingerprint(root) or stamp["root"] != str(root) or not venv_python(venv).exists():
        return True
    installed = _requirements(_project(root), tuple(stamp["extras"]))
    return not set(_requirements(_project(root), extras)) <= set(installed)


def install(venv: Path, extras: tuple[str, ...], root: Path = ROOT, *, cpu: bool = False) -> None:
    """Make ``venv`` if need be and install the course with ``extras`` into it; the stamp that calls it complete is written last."""
    extras = tuple(sorted({*extras, *_stamped_extras(venv)}))
    _stamp(venv).unlink(missing_ok=True)
    python = venv_python(venv)
    if not _succeeds([str(python), "--version"]):
        print(f"[1/2] Making the virtual environment {venv}", flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(venv)], "On Debian and Ubuntu: `apt install python3-venv`.")
    elif not _succeeds([str(python), "-m", "pip", "--version"]):
        _run([str(python), "-m", "ensurepip"], f"Remove {venv} and try again.")
    print("[2/2] Installing the course and what it needs: a few minutes and 2 GB of disk the first time", flush=True)
    target = f".[{','.join(extras)}]" if extras else "."
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-c", "constraints.txt", "-e", target]
    command += shlex.split(os.environ.get("COURSE_PIP_ARGS", "")) + ["--extra-index-url", CPU_WHEELS] * cpu
    started = time.monotonic()
    with _Heartbeat(venv, started):
        _run(command, "Its own message is above. Try again to go on from here; COURSE_PIP_ARGS can hold options for pip.", cwd=root)
    beside = _stamp(venv).with_suffix(".new")
    beside.write_text(json.dumps({"fingerprint": _fingerprint(root), "root": str(root), "extras": extras}), encoding="utf-8")
    os.replace(beside, _stamp(venv))
    print(f"Set-up took {time.monotonic() - started:.0f} s; the next command starts at once.", flush=True)


def _stamped_extras(venv: Path) -> list[str]:
    try:
        return json.loads(_stamp(venv).read_text(encoding="utf-8"))["extras"]
    except (OSError, ValueError):
        return []


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def _run(command: list[str], advice: str, cwd: Path | None = None) -> None:
    if status := subprocess.call(command, cwd=cwd):
        raise SetupError(f"this failed with exit status {status}:\n  {shlex.join(command)}\n{advice}")


class _Heartbeat(threading.Thread):
    """Says how far pip is while it unpacks: it shows its downloads itself, but then falls silent for a minute or more."""

    def __init__(self, venv: Path, started: float):
        super().__init__(daemon=True)
        self.venv, self.started, self.done = venv, started, threading.Event()

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.done.set()
        self.join()

    def run(self):
        before = self.installed()
        while not self.done.wait(5):
            if (now := self.installed()) != before:
                print(f"      {now} packages unpacked after {time.monotonic() - self.started:.0f} s", flush=True)
                before = now

    def installed(self) -> int:
        return sum(len(list(self.venv.glob(f"{lib}/site-packages/*.dist-info"))) for lib in ("lib/python*", "Lib"))


def _bin_first(folder: Path) -> None:
    """Put the environment's programs first on PATH: nbgrader and Jupyter start others by name."""
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", "")])
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, whatever the user has installed elsewhere
