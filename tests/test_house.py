"""The rules of the house that a program can check."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COURSE = [path for folder in ("lessons", "solutions") for path in sorted((ROOT / folder).glob("*/*.ipynb"))]
MACHINE = re.compile(r"(?<![\w.])(/root|/home/\w+|/Users/\w+|/tmp)/[\w.-]+")


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [
        ["-c", "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"],
        ["-m", "ruff", "check"],
        ["-m", "ruff", "format", "--check"],
        ["-m", "codespell_lib", "README.md", "CONTRIBUTING.md", "companion", "solutions", "tests", "binder"],
    ],
    ids=["layers", "ruff-check", "ruff-format", "codespell"],
)
def test_the_checkers_find_nothing(command):
    done = run(sys.executable, *command)
    assert done.returncode == 0, done.stdout + done.stderr


def tracked() -> list[Path]:
    files = run("git", "ls-files", "-z").stdout.split("\0")
    return [ROOT / name for name in files if name and (ROOT / name).is_file()]


def test_no_source_file_is_longer_than_400_lines():
    read = [path for path in tracked() if path.suffix == ".py" and "wrong_answers" not in path.parts]  # tables of cases, not code
    long = [path for path in read if len(path.read_text(encoding="utf-8").splitlines()) >= 400]
    assert not long


def test_no_file_knows_the_machine_it_was_written_on():
    text = [path for path in tracked() if path.suffix in {".py", ".md", ".toml", ".txt", ".ipynb", ".cff"} and path != Path(__file__)]
    assert not [f"{path}: {found[0]}" for path in text if (found := MACHINE.search(path.read_text(encoding="utf-8")))]


def test_weights_are_safetensors_and_nothing_is_pickled():
    assert not [path for path in tracked() if path.suffix in {".pt", ".pth", ".pkl", ".npy", ".npz", ".bin"}]
    loads = re.compile(r"\b(torch|joblib)\.(load|save|dump)\(|\b(import|from) pickle\b|\bjoblib import .*\b(load|dump)\b|\ballow_pickle\b")
    assert not [path for path in (ROOT / "companion").rglob("*.py") if loads.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", COURSE, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_notebook_is_small_enough_to_read(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words = sum(len("".join(cell["source"]).split()) for cell in cells if cell["cell_type"] == "markdown")
    assert 40 <= len(cells) <= 130
    assert words <= 7500
