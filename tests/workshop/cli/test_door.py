"""The command line opens on a bare Python, and says what it wants."""

import ast
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from companion.__main__ import main
from companion.workshop.cli import setup

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = [
    "lab",
    "progress",
    "review",
    "test",
    "run",
    "release",
    "fetch",
    "train",
    "circuit",
    "examine",
    "grade",
    "site",
]


def companion(
    *arguments: str, python: tuple[str, ...] = (sys.executable,), env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    command, environment = [*python, "-m", "companion", *arguments], os.environ | (env or {})
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [[], ["--help"], *([command, "--help"] for command in COMMANDS)], ids=" ".join)
def test_help_needs_nothing_but_python(words):
    answer = companion(*words, python=(sys._base_executable, "-S", "-E", "-W", "error"))
    assert answer.returncode == 0, answer.stderr
    assert all(name in answer.stdout for name in (words[:1] if words[1:] else COMMANDS))


def test_an_older_python_is_told_what_is_needed():
    code = "import runpy, sys; sys.version_info = (3, 9, 7); runpy.run_module('companion', run_name='__main__')"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith("This course needs Python 3.11 or newer; this is Python 3.9 (")
    for name in ("__init__.py", "__main__.py"):
        ast.parse((ROOT / "companion" / name).read_text(encoding="utf-8"), feature_version=(3, 7))


def test_a_reader_that_has_enough_ends_the_command():
    command = f"{shlex.quote(sys.executable)} -u -m companion progress | true"
    answer = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.stderr == ""


@pytest.mark.parametrize(("lacks", "needs"), [([], ()), (["torch>=2.9"], ("lessons",))])
def test_where_the_base_is_installed_research_goes_on_in_it(monkeypatch, lacks, needs):
    asked = []
    monkeypatch.setattr(setup, "missing", lambda extras: lacks)
    monkeypatch.setattr(setup, "ensure", lambda extras, argv, cpu: asked.append(extras))
    assert main(["fetch", "--list"]) == 0
    assert asked == [needs]


def test_what_a_console_cannot_show_is_written_by_its_number():
    """A Windows console in a code page of old, or a file that its shell writes."""
    answer = companion("progress", "Δ", python=(sys.executable, "-X", "utf8=0"), env={"PYTHONIOENCODING": "cp1252"})
    assert "LESSON = '\\u0394': there is no such lesson" in answer.stdout
    assert "Traceback" not in answer.stderr


def test_test_hands_its_arguments_to_pytest():
    light = ("test", "--noconftest", "-n0")  # the course's own settings would load torch
    answer = companion(*light, "--collect-only", "-q", "tests/workshop/cli/test_door.py", "-k", "hands_its_arguments")
    assert "test_test_hands_its_arguments_to_pytest" in answer.stdout
    assert companion(*light, "tests/no_such_file.py").returncode == 4, "pytest's own exit status"


def test_importing_the_companion_loads_nothing_heavy():
    code = "import companion, sys; print([name for name in ('torch', 'numpy', 'matplotlib') if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_the_program_is_the_command_line(monkeypatch):
    from companion import __main__ as module

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts == {"companion": "companion.__main__:command"}
    monkeypatch.setattr(sys, "argv", ["companion", "lab"])
    monkeypatch.setattr(module, "main", lambda argv: 5 if argv == ["lab"] else 0)
    assert module.command() == 5
