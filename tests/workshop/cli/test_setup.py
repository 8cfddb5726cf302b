"""Set-up makes ``.venv`` once, takes it as it is afterwards, and mends it when the requirements change."""

import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import packaging
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from companion.workshop.cli import setup

ROOT = Path(__file__).resolve().parents[3]

# builds an editable wheel with the standard library alone, so that pip needs no index
BACKEND = """
import zipfile
from pathlib import Path

NAME = "tiny-0.1-py3-none-any.whl"
METADATA = (
    "Metadata-Version: 2.1\\nName: tiny\\nVersion: 0.1\\n"
    "Provides-Extra: lessons\\nProvides-Extra: test\\nRequires-Dist: pip; extra == 'test'\\n"
)


def get_requires_for_build_editable(config_settings=None):
    return []


def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(Path(folder) / NAME, "w") as wheel:
        wheel.writestr("tiny.pth", str(Path.cwd()))
        wheel.writestr("tiny-0.1.dist-info/METADATA", METADATA)
        wheel.writestr(
            "tiny-0.1.dist-info/WHEEL",
            "Wheel-Version: 1.0\\nGenerator: tiny\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        )
        wheel.writestr("tiny-0.1.dist-info/RECORD", "")
    return NAME
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "0.1"
dependencies = []
[project.optional-dependencies]
lessons = []
test = ["pip"]
"""
INSTALLS = "Set-up: installing"


@pytest.fixture(autouse=True)
def _no_other_path(monkeypatch):
    """Or a folder on it that holds the companion sends this very process into another environment."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A checkout with the real commands and set-up, no requirements, and commands that say where they run."""
    root = tmp_path_factory.mktemp("a folder with spaces")
    (root / "companion/workshop/cli").mkdir(parents=True)
    (root / "companion/core").mkdir()
    for name in (
        "__init__.py",
        "__main__.py",
        "core/__init__.py",
        "core/extras.py",
        "core/files.py",
        "core/registry.py",
        "workshop/__init__.py",
        "workshop/cli/__init__.py",
        "workshop/cli/arguments.py",
        "workshop/cli/setup.py",
    ):
        (root / "companion" / name).write_bytes((ROOT / "companion" / name).read_bytes())
    for command in ("lab", "test"):
        (root / f"companion/workshop/cli/{command}.py").write_text(
            "import sys\n\n\ndef main(arguments):\n    print('in', sys.prefix)\n    return 5\n"
        )
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "constraints.txt").write_text("")
    shutil.copytree(Path(packaging.__file__).parent, root / "packaging")  # pip has no index to take it from
    return root


def run(root: Path, *arguments: str, pip: str = "--no-index --no-build-isolation") -> subprocess.CompletedProcess:
    """The commands of ``root`` on the base interpreter, as on a machine with nothing installed."""
    environment = os.environ | {"COURSE_PIP_ARGS": pip, "PYTHONPATH": ""}
    command = [sys._base_executable, "-m", "companion", *arguments]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_it_makes_a_venv_once_and_mends_it(tiny):
    failed = run(tiny, "lab", pip="--no-such-option")
    assert failed.returncode == 1
    assert f"installing the course from {tiny} and what it needs into {tiny / '.venv'}\n" in failed.stdout, "said first"
    assert "no such option: --no-such-option" in failed.stderr, "pip's own message"
    assert "Set-up: this failed with exit status 2" in failed.stderr
    assert "COURSE_PIP_ARGS" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (tiny / ".venv/companion.json").exists(), "what is half made is not taken for complete"

    made = (tiny / ".venv/pyvenv.cfg").stat().st_mtime_ns
    first = run(tiny, "lab")
    assert f"in {tiny / '.venv'}" in first.stdout, first.stderr
    assert first.returncode == 5, "the command's own exit status"
    assert (tiny / ".venv/pyvenv.cfg").stat().st_mtime_ns == made, "what the failed attempt made is gone on with"
    assert INSTALLS in first.stdout

    assert run(tiny, "lab").stdout == f"in {tiny / '.venv'}\n", "taken as it is"

    setup.venv_python(tiny / ".venv").unlink()
    again = run(tiny, "test")
    assert INSTALLS in again.stdout, "an interpreter that is gone"
    assert again.returncode == 5

    [there] = (tiny / ".venv").rglob("tiny-0.1.dist-info")
    shutil.rmtree(there)
    mended = run(tiny, "lab")
    assert INSTALLS in mended.stdout, "somebody uninstalled a package"
    assert mended.returncode == 5
    assert json.loads((tiny / ".venv/companion.json").read_text())["extras"] == ["lessons", "test"], "from before"


def test_it_installs_again_for_another_extra_and_for_other_constraints(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "constraints.txt").write_text("")
    python = setup.venv_python(tmp_path / ".venv")
    python.parent.mkdir(parents=True)
    python.touch()
    done = []
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PATH", "elsewhere")
    monkeypatch.setattr(setup.subprocess, "check_call", lambda command, **_: done.append(command[-1]))
    monkeypatch.setattr(setup.subprocess, "call", lambda *_, **__: 1)  # uv made it, without pip
    monkeypatch.setattr(setup, "go_on_as", lambda command: done.append(command[0]))
    for change, extras, expected in [
        ("", (), ["ensurepip", ".", str(python)]),
        ("", (), [str(python)]),
        ("", ("test",), ["ensurepip", ".[test]", str(python)]),
        ("", (), [str(python)]),
        ("# another version", (), ["ensurepip", ".[test]", str(python)]),
        ("# another version", (), [str(python)]),
    ]:
        (tmp_path / "constraints.txt").write_text(change)
        setup.ensure(extras, ["lab"], root=tmp_path)
        assert done == expected
        done.clear()
    (tmp_path / "pyproject.toml").write_text(PROJECT.replace("[project]", '[project]\ndescription = "in other words"'))
    setup.ensure((), ["lab"], root=tmp_path)
    assert done == [str(python)], "nothing that pip installs has changed"


def test_an_environment_that_has_everything_is_used_as_it_is(monkeypatch):
    monkeypatch.setattr(setup.os, "execv", lambda *_: pytest.fail("went on elsewhere"))
    monkeypatch.setattr(setup, "install", lambda *_, **__: pytest.fail("installed something"))
    monkeypatch.setattr(setup, "installed_from", lambda name: [ROOT])
    monkeypatch.setenv("PATH", "elsewhere")
    setup.ensure(("test",), ["lab"])
    assert os.environ["PATH"] == os.pathsep.join([str(Path(sys.executable).parent), "elsewhere"]), (
        "nbgrader starts alembic by name"
    )


BATCHES = """
import ctypes, resource
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # no huge pages, of which a fault brings 2 MiB
for _ in range(10):
    tensors = None
    tensors = [b"x" * (8 << 20) for _ in range(10)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems' memory has other rules")
def test_what_a_command_starts_takes_the_memory_of_a_step_from_the_system_once(monkeypatch):
    monkeypatch.setattr(setup, "missing", lambda *_: [])
    monkeypatch.setenv("PATH", os.environ["PATH"])
    faults = []
    for prepared in (False, True):
        for name in setup.MEMORY:
            monkeypatch.delenv(name, raising=False)
        if prepared:
            setup.ensure((), ["lab"])
        done = subprocess.run([sys.executable, "-c", BATCHES], capture_output=True, text=True, check=True)
        faults.append(int(done.stdout))
    page = os.sysconf("SC_PAGE_SIZE")
    assert faults[0] > 9 * (80 << 20) / page
    assert faults[1] < 2 * (80 << 20) / page


SLOW_TO_END = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (time.sleep(0.3), print("ended in order"), sys.exit(7)))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a group of processes gets Ctrl-C in another way there")
def test_on_windows_ctrl_c_waits_for_the_command_and_gives_its_status():
    """Else the prompt would come back while JupyterLab still asks whether to stop its kernels, and end it."""
    code = "import os, sys; from companion.workshop.cli import setup; os.name = 'nt'; setup.go_on_as(sys.argv[1:])"
    command = subprocess.Popen(
        [sys.executable, "-c", code, sys.executable, "-c", SLOW_TO_END],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert command.stdout.readline() == "ready\n"
    os.killpg(command.pid, signal.SIGINT)
    printed, _ = command.communicate(timeout=30)
    assert (printed, command.returncode) == ("ended in order\n", 7)


@pytest.mark.parametrize(
    ("system", "text", "words"),
    [
        ("posix", r"--find-links /my\ wheels -q", ["--find-links", "/my wheels", "-q"]),
        ("nt", r"--find-links C:\wheels -q", ["--find-links", r"C:\wheels", "-q"]),
        ("nt", r'--find-links "C:\my wheels"', ["--find-links", r"C:\my wheels"]),
        ("nt", "", []),
    ],
)
def test_options_for_pip_are_words_as_the_system_has_them(monkeypatch, system, text, words):
    monkeypatch.setattr(setup.os, "name", system)
    assert setup.pip_options(text) == words


def test_what_to_type_is_in_the_shells_own_quotes(monkeypatch):
    monkeypatch.setattr(setup.os, "name", "nt")
    assert setup.in_shell([r"C:\my folder\python.exe", "-m", "venv"]) == r'"C:\my folder\python.exe" -m venv'
    monkeypatch.setattr(setup.os, "name", "posix")
    assert setup.in_shell(["/my folder/python", "-m", "venv"]) == "'/my folder/python' -m venv"


def test_it_sees_what_is_missing(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        textwrap.dedent("""
        [project]
        name = "tiny"
        dependencies = [
            "numpy>=1", "numpy>=99", "jupyterlab>=4.4,<5", "jupyterlab>=3,<4", "no-such-package-here", "torch~=2.0",
            "torch~=1.0", "tqdm!=0.1", "no-such-package-either; sys_platform == 'none'",
        ]
        [project.optional-dependencies]
        one = ["papermill >= 99.1"]
        both = ["tiny[one,two]", "torch"]
        two = ["tqdm>=99"]
        """)
    )
    base = ["tiny", "numpy>=99", "jupyterlab>=3,<4", "no-such-package-here", "torch~=1.0"]
    assert setup.missing((), tmp_path) == base
    assert setup.missing(("both",), tmp_path) == [*base, "papermill >= 99.1", "tqdm>=99"]


def test_another_checkout_is_not_this_one(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "installed_from", lambda name: [ROOT])
    assert "transformers-as-algorithms" not in setup.missing((), ROOT)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert setup.missing((), tmp_path)[0] == "transformers-as-algorithms"


def test_it_says_where_the_other_copy_is_before_anything_is_installed(tmp_path, monkeypatch, capsys):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    calls = []
    monkeypatch.setattr(setup, "installed_from", lambda name: [Path("the other checkout")])
    monkeypatch.setattr(setup, "_fingerprint", lambda root: "")
    monkeypatch.setattr(setup.subprocess, "check_call", lambda *_, **__: calls.append(capsys.readouterr().out))
    (tmp_path / ".venv").mkdir()
    setup.install(tmp_path / ".venv", (), tmp_path)
    assert f"what it needs into {tmp_path / '.venv'}" in calls[0]
    assert "comes from the other checkout)" in calls[0]


@pytest.mark.parametrize("answer, goes_on", [("y", True), ("", False), (None, False)])
def test_a_second_checkout_gets_an_environment_only_if_somebody_says_so(tmp_path, monkeypatch, answer, goes_on):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "constraints.txt", tmp_path)
    calls = []
    monkeypatch.setattr(setup, "PAUSE", 0)
    monkeypatch.setattr(setup, "installed_from", lambda name: [Path("the other checkout")])
    monkeypatch.setattr(setup.sys, "stdin", io.StringIO())
    monkeypatch.setattr(setup.sys.stdin, "isatty", lambda: answer is not None, raising=False)
    monkeypatch.setattr("builtins.input", lambda said: answer)

    def stops(command, **_):
        calls.append(command)
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(setup.subprocess, "check_call", stops)
    with pytest.raises(SystemExit) as said:
        setup.ensure(("grading",), ["grade"], root=tmp_path)
    assert bool(calls) is goes_on and not (tmp_path / ".venv").exists()
    assert goes_on or "nothing was installed" in str(said.value)
    assert answer is not None or f"-m venv {tmp_path / '.venv'}" in str(said.value), "how to say yes"


SYSTEMS = {
    "Linux": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"},
    "macOS": {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix", "platform_machine": "arm64"},
    "Windows": {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"},
}


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def everything() -> list[Requirement]:
    """All that ``pyproject.toml`` asks for, whatever is installed."""
    project = setup._project(ROOT)
    return [Requirement(text) for text in setup._requirements(project, tuple(project["optional-dependencies"]))]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_constraints_have_one_version_of_all_that_is_needed_everywhere(system, python):
    here = SYSTEMS[system] | {"python_version": python, "python_full_version": f"{python}.1", "extra": ""}
    here |= {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
    chosen = [line for line in constraints() if line.marker is None or line.marker.evaluate(here)]
    names = [canonicalize_name(line.name) for line in chosen]
    assert len(set(names)) == len(names), "two versions of one"
    versions = {name: next(iter(line.specifier)) for name, line in zip(names, chosen, strict=True)}
    for needed in everything():
        if needed.marker is None or needed.marker.evaluate(here):
            pinned = versions[canonicalize_name(needed.name)]
            assert pinned.operator == "=="
            assert needed.specifier.contains(pinned.version), f"{needed} against {pinned}: make constraints.txt anew"
    assert str(versions["torch"]) == "==2.13.0", "without the +cpu of one platform"


def test_the_constraints_name_no_index_and_no_address():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if "://" in line or "index-url" in line or line.startswith("-")]
    assert not [line for line in constraints() if line.url]


def test_what_reads_a_notebook_compiles_no_grammar_first():
    assert "lark" not in {line.name for line in constraints()}, "see [tool.uv] in pyproject.toml"


def test_an_extra_that_is_part_of_an_installed_one_needs_no_install(tmp_path):
    venv = tmp_path / ".venv"
    setup.venv_python(venv).parent.mkdir(parents=True)
    setup.venv_python(venv).touch()
    stamp = {"fingerprint": setup._fingerprint(ROOT), "extras": ["test"]}
    setup._stamp_file(venv).write_text(json.dumps(stamp))
    assert not setup.outdated(venv, ("grading",), ROOT)
    setup._stamp_file(venv).write_text(json.dumps(stamp | {"extras": ["grading"]}))
    assert setup.outdated(venv, ("test",), ROOT)
    assert not setup.outdated(venv, (), ROOT)
