"""Binder's image without Docker: its steps that are the course's own, in a fresh environment, and a lesson in it.

They install gigabytes, so they run where ``COURSE_IMAGE_PYTHON`` names a Python of the version that the image has:
``COURSE_IMAGE_PYTHON=python3.12 python3 -m companion test tests/binder/test_image.py -s``.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("COURSE_IMAGE_PYTHON")
VERSION = (ROOT / "binder/runtime.txt").read_text().strip().removeprefix("python-")
CONDA_S = {"jupyterhub-singleuser": "jupyterhub"}  # what PyPI calls a package of conda-forge
NOT_PYTHON_S = {"python", "nodejs", "pip"}

pytestmark = pytest.mark.skipif(not PYTHON, reason="COURSE_IMAGE_PYTHON names no Python to make the image's steps with")


def base() -> list[str]:
    """What is in the image before the course: repo2docker's own environment, as pip asks for it."""
    there = Path(importlib.util.find_spec("repo2docker").origin).parent  # not imported: it warns
    file = there / f"buildpacks/conda/environment.py-{VERSION}.yml"
    asked = [re.split(r"(?=[=<>])", line, maxsplit=1) for line in yaml.safe_load(file.read_text())["dependencies"]]
    return [CONDA_S.get(name, name) + "".join(pin) for name, *pin in asked if name not in NOT_PYTHON_S]


def own_steps(dockerfile: str) -> list[str]:
    """The commands that follow once the repository has been copied in."""
    return re.findall(r"^RUN (.+)$", dockerfile.partition("COPY --chown=0:0 src/ ${REPO_DIR}/")[2], re.M)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The repository as the image has it, and the environment in which its steps ran."""
    folder = tmp_path_factory.mktemp("image")
    home, prefix = folder / "home", folder / "notebook"
    subprocess.run(["git", "clone", "-q", ROOT, home], check=True)
    asked = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."]
    dockerfile = subprocess.run(asked, cwd=home, capture_output=True, text=True, check=True)
    own = {"PYTHONPATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in own} | {
        "NB_PYTHON_PREFIX": str(prefix),
        "KERNEL_PYTHON_PREFIX": str(prefix),
        "COURSE_MODELS": str(folder / "models"),
        "PATH": f"{prefix}/bin{os.pathsep}{os.environ['PATH']}",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    subprocess.run([PYTHON, "-m", "venv", prefix], check=True)
    subprocess.run([prefix / "bin/pip", "install", "-q", "--no-cache-dir", *base()], env=environment, check=True)
    steps = own_steps(dockerfile.stdout + dockerfile.stderr)
    assert [step.split()[-1] for step in steps] == [
        '"binder/requirements.txt"',
        "binder/postBuild",
        "./binder/postBuild",
    ]
    for step in steps:
        subprocess.run(["bash", "-c", step], cwd=home, env=environment, check=True)
    yield home, prefix, environment
    shutil.rmtree(folder)


def said(image, *command: str) -> str:
    """What a command says in the image; fails if it does."""
    home, prefix, environment = image
    done = subprocess.run(
        [prefix / "bin" / command[0], *command[1:]],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_the_version_that_is_asked_for_and_everything_fits(image):
    assert said(image, "python", "--version").startswith(f"Python {VERSION}.")
    assert said(image, "pip", "check") == "No broken requirements found.\n"
    assert said(image, "jupyter", "lab", "--version").startswith("4.")


def test_the_start_page_opens_rendered(image):
    _, prefix, _ = image
    theirs = {path.name for path in (prefix / "etc/jupyter/labconfig").iterdir()}
    assert theirs == {path.name for path in (ROOT / "companion/workshop/cli/jupyter/labconfig").glob("*.json")}


def test_the_language_model_is_there(image):
    assert "smollm2  273 MB in " in said(image, "python", "-m", "companion", "fetch", "--list")


def test_a_lesson_runs(image):
    assert "01-attention-basics" in said(image, "python", "-m", "companion", "run", "01", "--scale", "smoke")
