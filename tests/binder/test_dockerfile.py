"""Binder's image, as far as it can be seen without building it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from companion.workshop.cli.setup import MEMORY

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def recipe() -> str:
    """The Dockerfile that repo2docker writes, and what it says about it."""
    if sys.platform == "win32":
        pytest.skip("repo2docker does not run on Windows")
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_it_is_python_3_12_with_the_course_installed(recipe):
    assert "Building conda environment for python=3.12" in recipe
    assert re.search(r'^RUN .*pip install --no-cache-dir -r "binder/requirements.txt"$', recipe, re.M)
    copied, installed = recipe.index("COPY --chown=0:0 src/ ${REPO_DIR}/"), recipe.index('-r "binder/requirements.txt"')
    assert copied < installed, "`-e .` needs the repository"
    assert "binder/postBuild" in recipe


def test_torch_is_the_build_for_cpus():
    lines = (ROOT / "binder/requirements.txt").read_text().splitlines()
    assert "--extra-index-url https://download.pytorch.org/whl/cpu" in lines
    assert "-c ../constraints.txt" in lines
    assert "-e .[lessons]" in lines
    assert "jupyterlab>=4.4,<5" in lines


def test_pip_finds_every_file_that_the_requirements_name():
    """As Binder calls it, from the root: pip parses the requirements and their constraints, and resolves nothing."""
    names = re.findall(r"^-[cr] (\S+)", (ROOT / "binder/requirements.txt").read_text(), re.M)
    assert names
    assert all((ROOT / "binder" / name).is_file() for name in names)


@pytest.mark.skipif(sys.platform == "win32", reason="a script for a shell")
def test_what_starts_there_keeps_memory_as_the_commands_do(recipe):
    assert "binder/start" in recipe
    script = [ROOT / "binder/start", sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    bare = {name: value for name, value in os.environ.items() if name not in MEMORY}
    done = subprocess.run(script, env=bare, capture_output=True, text=True, check=True)
    assert MEMORY.items() <= json.loads(done.stdout).items()


def test_post_build_can_be_run_and_finds_its_settings():
    script = ROOT / "binder/postBuild"
    assert script.stat().st_mode & 0o111 or sys.platform == "win32"
    assert "companion/workshop/cli/jupyter/labconfig/*.json" in script.read_text()
    assert list(ROOT.glob("companion/workshop/cli/jupyter/labconfig/*.json"))


@pytest.mark.skipif(sys.platform == "win32", reason="a script for a shell")
@pytest.mark.parametrize(("status", "said"), [(0, ""), (1, "The image has no language model.\n")])
def test_the_image_is_made_with_the_model_and_without_it_where_it_cannot_be_had(tmp_path, status, said):
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$@"\nexit {status}\n')
    python.chmod(0o755)
    environment = os.environ | {"NB_PYTHON_PREFIX": str(tmp_path)}
    done = subprocess.run(
        [ROOT / "binder/postBuild"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"-m companion fetch smollm2\n{said}"), done.stderr
