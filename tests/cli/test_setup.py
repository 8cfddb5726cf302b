"""Set-up makes ``.venv`` once, takes it as it is afterwards, and mends it when the requirements change."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from companion.cli import setup

ROOT = Path(__file__).resolve().parents[2]

# builds an editable wheel with the standard library alone, so that pip needs no index
BACKEND = """
import zipfile
from pathlib import Path

NAME = "tiny-0.1-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 0.1\\nProvides-Extra: test\\nRequires-Dist: pip; extra == 'test'\\n"


def get_requires_for_build_editable(config_settings=None):
    return []


def build_editable(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(Path(folder) / NAME, "w") as wheel:
        wheel.writestr("tiny.pth", str(Path.cwd()))
        wheel.writestr("tiny-0.1.dist-info/METADATA", METADATA)
        wheel.writestr("tiny-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: tiny\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
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
test = ["pip"]
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A checkout with the real door and set-up, no requirements, and commands that say where they run."""
    root = tmp_path_factory.mktemp("a folder with spaces")
    (root / "companion/cli").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py", "cli/__init__.py", "cli/setup.py"):
        (root / "companion" / name).write_bytes((ROOT / "companion" / name).read_bytes())
    for command in ("lab", "test"):
        (root / f"companion/cli/{command}.py").write_text(
            "import sys\n\n\ndef main(arguments):\n    print('in', sys.prefix)\n    return 5\n"
        )
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "constraints.txt").write_text("")
    return root


def run(root: Path, *arguments: str, pip: str = "--no-index") -> subprocess.CompletedProcess:
    """The door of ``root`` on the base interpreter, as on a machine with nothing installed."""
    environment = os.environ | {"COURSE_PIP_ARGS": pip}
    command = [sys._base_executable, "-m", "companion", *arguments]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_it_makes_a_venv_once_and_mends_it_when_something_changed(tiny):
    failed = run(tiny, "lab", pip="--no-such-option")
    assert failed.returncode == 1
    assert "[1/2] Making" in failed.stdout
    assert "no such option: --no-such-option" in failed.stderr, "pip's own message"
    assert "Set-up: this failed with exit status 2" in failed.stderr
    assert "COURSE_PIP_ARGS" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (tiny / ".venv/companion.json").exists(), "what is half made is not taken for complete"

    first = run(tiny, "lab")
    assert f"in {tiny / '.venv'}" in first.stdout, first.stderr
    assert first.returncode == 5, "the command's own exit status"
    assert "[1/2]" not in first.stdout, "the virtual environment of the failed attempt is gone on with"
    assert "[2/2] Installing" in first.stdout

    assert run(tiny, "lab").stdout == f"in {tiny / '.venv'}\n", "taken as it is"

    assert "[2/2]" in run(tiny, "test").stdout, "another extra"
    assert "[2/2]" not in run(tiny, "lab").stdout, "which stays"

    (tiny / "constraints.txt").write_text("# another version\n")
    assert "[2/2]" in run(tiny, "lab").stdout
    assert json.loads((tiny / ".venv/companion.json").read_text())["extras"] == ["test"]

    python = setup.venv_python(tiny / ".venv")
    python.unlink()
    assert "[1/2] Making" in run(tiny, "lab").stdout, "an interpreter that is gone"

    subprocess.run([python, "-m", "pip", "uninstall", "-y", "-q", "tiny"], check=True)
    mended = run(tiny, "lab")
    assert "[2/2]" in mended.stdout, "somebody uninstalled a package"
    assert mended.returncode == 5


def test_an_environment_that_has_everything_is_used_as_it_is(monkeypatch):
    monkeypatch.setattr(setup.os, "execv", lambda *_: pytest.fail("went on elsewhere"))
    monkeypatch.setattr(setup, "install", lambda *_, **__: pytest.fail("installed something"))
    monkeypatch.setenv("PATH", "elsewhere")
    setup.ensure(("test",), ["lab"])
    assert os.environ["PATH"] == os.pathsep.join([str(Path(sys.executable).parent), "elsewhere"]), "nbgrader starts alembic by name"


def test_it_sees_what_is_missing(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        textwrap.dedent("""
        [project]
        name = "tiny"
        dependencies = ["numpy>=1", "numpy>=99", "jupyterlab>=4.4,<5", "jupyterlab>=3,<4", "no-such-package-here"]
        [project.optional-dependencies]
        one = ["papermill >= 99.1"]
        both = ["tiny[one,two]", "torch"]
        two = ["tqdm>=99"]
        """)
    )
    base = ["tiny", "numpy>=99", "jupyterlab>=3,<4", "no-such-package-here"]
    assert setup.missing((), tmp_path) == base
    assert setup.missing(("both",), tmp_path) == [*base, "papermill >= 99.1", "tqdm>=99"]


@pytest.mark.parametrize(("version", "release"), [("2.13.0+cpu", (2, 13)), ("8", (8,)), ("8.0", (8,)), ("0.0", (0,)), ("1.10rc1", (1, 10))])
def test_versions_are_compared_as_numbers(version, release):
    assert setup._release(version) == release


def test_another_checkout_is_not_this_one(tmp_path):
    assert setup._is_installed_from(ROOT, "transformers-as-algorithms")
    assert not setup._is_installed_from(tmp_path, "transformers-as-algorithms")


def test_every_requirement_has_an_exact_version_in_the_constraints():
    pinned = dict(line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#"))
    for requirement in setup._requirements(setup._project(ROOT), ("test",)):
        assert requirement.split(">=")[0] in pinned
    assert pinned["torch"] == "2.13.0", "without the +cpu of one platform"


def test_an_extra_that_is_part_of_an_installed_one_needs_no_install(tmp_path):
    venv = tmp_path / ".venv"
    setup.venv_python(venv).parent.mkdir(parents=True)
    setup.venv_python(venv).touch()
    stamp = {"fingerprint": setup._fingerprint(ROOT), "root": str(ROOT), "extras": ["test"]}
    setup._stamp(venv).write_text(json.dumps(stamp))
    assert not setup.outdated(venv, ("grading",), ROOT)
    setup._stamp(venv).write_text(json.dumps(stamp | {"extras": ["grading"]}))
    assert setup.outdated(venv, ("test",), ROOT)
    assert not setup.outdated(venv, (), ROOT)
