"""Set-up, with the standard library alone: the environment at hand if the course is installed in it, else ``.venv``."""

import hashlib
import importlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlparse
from urllib.request import url2pathname

from companion.core.files import FileError, read_text, read_toml

ROOT = Path(__file__).resolve().parents[3]
# what sends packages elsewhere than into .venv, or has pip take others
ASTRAY = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_DRY_RUN", "PIP_NO_DEPS", "PIP_NO_BUILD_ISOLATION", "PIP_PYTHON")
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
PAUSE = 5  # seconds to press Ctrl-C before something is installed, where somebody is watching
# the tensors of a step have the sizes of the last one's: glibc keeps their memory for them, up to 128 MiB, in place of
# giving it back and taking it anew, a page fault for every 4 KiB; a fifth of the time of a small model's training
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(128 << 20)}


def ensure(extras: tuple[str, ...], argv: list[str], *, cpu: bool = False, root: Path = ROOT) -> None:
    """Return if this interpreter has the course of ``root`` with all that it and ``extras`` need; else make or mend
    ``root/.venv`` if need be and go on in it with the same ``argv``, without returning.

    ``extras``: of the course, in pyproject.toml.
    ``argv``: the command's arguments.
    ``cpu``: whether PyTorch is to be its CPU-only build.
    ``root``: the checkout.
    """
    _leave_out_of_path(extras, argv, root)
    venv = root / ".venv"
    inside = venv.exists() and Path(sys.prefix).resolve() == venv.resolve()
    python, lacking, old = venv_python(venv), missing(extras, root), outdated(venv, extras, root)
    try:
        if (lacking and (inside or old)) or (inside and old and stamp(venv)):
            install(venv, extras, root, cpu=cpu)
            lacking = missing(extras, root)
            if inside and lacking:
                sys.exit(f"Set-up: pip finished, but {venv} still lacks {', '.join(lacking)}; remove it and try again.")
    except subprocess.CalledProcessError as error:
        command = f"Set-up: this failed with exit status {error.returncode}:\n  {in_shell(error.cmd)}\n"
        sys.exit(
            f"{command}Its own message is above. The same command goes on from here; COURSE_PIP_ARGS can hold\n"
            "options for pip, and `pip config list` shows your own. PyTorch is there for Linux (glibc), Windows (x64)\n"
            "and macOS 14 on Apple silicon. If `venv` is missing, on Debian and Ubuntu: `apt install python3-venv`."
        )
    except KeyboardInterrupt:
        sys.exit("Set-up: interrupted. The same command goes on from here.")
    folder = python.parent if lacking else Path(sys.executable).parent
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", "")])  # nbgrader starts others by name
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, whatever lies elsewhere
    os.environ.pop("PYTHONWARNINGS", None)  # where they are errors, those of other packages would stop a lesson
    for name, value in MEMORY.items():
        os.environ.setdefault(name, value)
    if lacking:
        go_on_as([str(python), "-m", "companion", *argv])


def go_on_as(command: list[str]) -> NoReturn:
    """Let ``command`` take this process's place: signals reach it, and its exit status is ours."""
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    # there execv returns to the shell at once and leaves the new process in the background
    process = subprocess.Popen(command)
    while True:
        try:
            sys.exit(process.wait())
        except KeyboardInterrupt:  # the command got it too, and ends when it is ready: JupyterLab stops its kernels
            continue


def _leave_out_of_path(extras: tuple[str, ...], argv: list[str], root: Path) -> None:
    """Begin anew without those folders of PYTHONPATH that hold packages which the course needs, such as a module of a
    cluster: they would stand before the environment's own.
    """
    folders = [Path(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    needed = {re.match(r"[\w.-]+", text)[0].replace("-", "_") for text in _requirements(_project(root), extras)}
    others = {
        folder: name
        for folder in folders
        for name in sorted({*needed, "companion", "sklearn", "yaml"})
        if folder.resolve() != root.resolve() and ((folder / name).is_dir() or (folder / f"{name}.py").is_file())
    }
    if others:
        for folder, name in others.items():
            print(f"Set-up: left out of PYTHONPATH: {folder}, whose {name} would stand before the environment's own.")
        os.environ["PYTHONPATH"] = os.pathsep.join(str(folder) for folder in folders if folder not in others)
        go_on_as([sys.executable, "-m", "companion", *argv])


def missing(extras: tuple[str, ...], root: Path = ROOT) -> list[str]:
    """Return what this interpreter's environment lacks: the course itself, if it was not installed from ``root``, and
    requirements of ``pyproject.toml`` that are not met.
    """
    importlib.invalidate_caches()  # pip may just have installed into this very environment
    project = _project(root)
    course = [] if root.resolve() in installed_from(project["name"]) else [project["name"]]
    try:
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 (an environment with the course has it)
    except ImportError:
        return course or ["packaging"]
    unmet = []
    for text in _requirements(project, extras):
        try:
            requirement = Requirement(text)
            is_met = requirement.specifier.contains(metadata.version(requirement.name), prereleases=True)
        except metadata.PackageNotFoundError:
            is_met = False
        except InvalidRequirement as error:
            raise FileError(f"pyproject.toml: {' '.join(str(error).split())}") from None
        if not is_met and (requirement.marker is None or requirement.marker.evaluate()):
            unmet.append(text)
    return course + unmet


def installed_from(name: str) -> list[Path]:
    """Return the folders that ``name`` was installed from (``pip install -e``): kernels start elsewhere and must find
    it.
    """
    origins = [distribution.read_text("direct_url.json") for distribution in metadata.distributions(name=name)]
    return [Path(url2pathname(urlparse(json.loads(origin)["url"]).path)).resolve() for origin in origins if origin]


def outdated(venv: Path, extras: tuple[str, ...], root: Path = ROOT) -> bool:
    """True unless today's requirements, with these extras, were completely installed into ``venv``."""
    done = stamp(venv)
    if not venv_python(venv).exists() or done.get("fingerprint") != _fingerprint(root):
        return True
    project = _project(root)
    return not set(_requirements(project, extras)) <= set(_requirements(project, tuple(done["extras"])))


def install(venv: Path, extras: tuple[str, ...], root: Path = ROOT, *, cpu: bool = False) -> None:
    """Install the course with ``extras`` into ``venv``, having said so; the stamp that calls it complete comes last.

    ``venv``: an environment that is there.
    ``extras``: of the course, in pyproject.toml.
    ``root``: the checkout.
    ``cpu``: whether PyTorch is to be its CPU-only build.
    """
    if no_torch := _no_torch():
        sys.exit(f"Set-up: {no_torch}.")
    extras = tuple(sorted({*extras, *stamp(venv).get("extras", ())}))
    fingerprint = _fingerprint(root)  # before all else: what is damaged is said here, and not by pip
    name, python = _project(root)["name"], str(venv_python(venv))
    others = [str(other) for other in installed_from(name) if other != root.resolve()]
    print(f"Set-up: installing the course from {root} and what it needs into {venv}", flush=True)
    print(f"        (what {sys.prefix} has comes from {', '.join(others)})\n" * bool(others), end="")
    print("        takes a few minutes and 2 GB of disk the first time. Ctrl-C stops it.", flush=True)
    if others and not venv.exists():
        _agreed(venv)
    time.sleep(PAUSE * sys.stdin.isatty())
    _stamp_file(venv).unlink(missing_ok=True)
    # what is there may have been made without pip (uv), or its interpreter be gone
    if not Path(python).exists():
        subprocess.check_call([sys.executable, "-m", "venv", "--clear", str(venv)], stdout=subprocess.DEVNULL)
    elif subprocess.call([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        subprocess.check_call([python, "-m", "ensurepip"], stdout=subprocess.DEVNULL)
    target = f".[{','.join(extras)}]" if extras else "."
    options = pip_options(os.environ.get("COURSE_PIP_ARGS", "")) + ["--extra-index-url", CPU_WHEELS] * cpu
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "-c", "constraints.txt", "-e", target]
    environment = {name: value for name, value in os.environ.items() if name not in (*ASTRAY, "PYTHONPATH")}
    environment |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_CONSTRAINT": "constraints.txt"}
    subprocess.check_call(pip + options, cwd=root, env=environment)
    _stamp_file(venv).write_text(json.dumps({"fingerprint": fingerprint, "extras": extras}), encoding="utf-8")


def _no_torch() -> str:
    """Why there can be no PyTorch on this Mac, if so."""
    way_out = "take one for arm64, or on an Intel Mac Binder or Codespaces"
    if sys.platform == "darwin" and platform.machine() != "arm64":
        return f"this Python is for Intel Macs, for which PyTorch is not made any more; {way_out}"
    if sys.platform == "darwin" and 11 <= int(platform.mac_ver()[0].partition(".")[0] or 0) < 14:
        return f"this is macOS {platform.mac_ver()[0]}, and PyTorch needs macOS 14"
    return ""


def pip_options(text: str) -> list[str]:
    """Return the words of ``text``, COURSE_PIP_ARGS, as a shell has them; on Windows a backslash is part of a path.
    Exits where a quotation is left open.
    """
    words = shlex.shlex(text, posix=True)
    words.whitespace_split, words.commenters = True, ""
    words.escape = "" if os.name == "nt" else words.escape
    try:
        return list(words)
    except ValueError as error:
        sys.exit(f"COURSE_PIP_ARGS = {text!r}: {error}")


def in_shell(command: list[str]) -> str:
    """``command`` as one would type it."""
    return subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)


def _agreed(venv: Path) -> None:
    """Ask whether a second checkout should have an environment of its own; exit without a yes, or if there is nobody to
    ask.
    """
    if not sys.stdin.isatty():
        by_hand = in_shell([sys.executable, "-m", "venv", str(venv)])
        sys.exit(f"Set-up: nothing was installed, as nobody is there to answer. To install, run first: {by_hand}")
    if input("        Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        sys.exit("Set-up: nothing was installed.")


def venv_python(venv: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def stamp(venv: Path) -> dict:
    """Read what was completely installed into ``venv``: nothing that we know of, if it was filled by hand."""
    try:
        return json.loads(_stamp_file(venv).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _stamp_file(venv: Path) -> Path:
    return venv / "companion.json"


def _project(root: Path) -> dict:
    """The course in pyproject.toml. Raises FileError, which says in which line it is damaged, or ends too early."""
    path = root / "pyproject.toml"
    project = read_toml(path).get("project", {})
    if lost := [key for key in ("name", "dependencies", "optional-dependencies") if key not in project]:
        ends = len(read_text(path).splitlines())
        raise FileError(f"{path.name}: ends in line {ends}, without {lost[0]}; `git restore {path.name}` mends it")
    return project


def _fingerprint(root: Path) -> str:
    """A hash of what pip installs: what only describes the course does not send a learner to pip again."""
    project = _project(root)
    needs = [project.get(key) for key in ("name", "version", "dependencies", "optional-dependencies", "scripts")]
    return hashlib.sha256(json.dumps(needs).encode() + read_text(root / "constraints.txt").encode()).hexdigest()


def _requirements(project: dict, extras: tuple[str, ...]) -> list[str]:
    """Base requirements and those of the extras, with the project's own extras among them (``name[a,b]``) unfolded."""
    found = list(project["dependencies"])
    for extra in extras:
        if extra not in project["optional-dependencies"]:
            raise FileError(
                f"pyproject.toml: must have the extra {extra!r}; `git restore pyproject.toml` brings it back"
            )
        for requirement in project["optional-dependencies"][extra]:
            own = re.fullmatch(re.escape(project["name"]) + r"\[([\w,]+)\]", requirement)
            found += _requirements(project | {"dependencies": []}, tuple(own[1].split(","))) if own else [requirement]
    return list(dict.fromkeys(found))
