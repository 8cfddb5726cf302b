"""``train`` makes a checkpoint out of a recipe, and says what is wrong with what it was given."""

from dataclasses import replace

import pytest
import torch
from commands import called
from processes import needs_torchrun, torchrun
from safetensors import safe_open

from companion.core import checkpoints
from companion.core.checkpoints import weights_path
from companion.core.recipe import recipe
from companion.core.rounding import STORED, STORED_FITTED
from companion.workshop.cli import train

SMOKE = ("--scale", "smoke", "--device", "cpu")


def test_it_trains_saves_and_reports(tmp_path, capsys):
    out = tmp_path / "new folder/live.safetensors"
    assert called("train", "regression-live", *SMOKE, "--seed", 4, "--out", out) == 0
    header = checkpoints.load(out, recipe("regression-live", "smoke").model(), recipe="regression-live")
    assert (header.recipe, header.scale, header.seed, header.device) == ("regression-live", "smoke", 4, "cpu")
    assert f"{out}: {header.steps} steps in" in capsys.readouterr().out
    assert [path.name for path in out.parent.iterdir()] == ["live.safetensors"], "the state to resume from is gone"


@pytest.mark.parametrize(
    ("name", "changes", "stored", "dtypes"),
    [
        ("addition-counting", {"stored": None}, "", {torch.float32}),
        ("addition-counting", {"stored": torch.bfloat16}, "bfloat16", {torch.bfloat16}),
        ("addition-counting", {}, STORED[torch.int8], {torch.int8, torch.bfloat16, torch.float32}),
        ("addition-filters", {}, STORED_FITTED, {torch.int8, torch.bfloat16, torch.float32}),
    ],
    ids=["float32", "bfloat16", "int8", "int8-fitted"],
)
def test_weights_are_kept_as_the_recipe_says(tmp_path, monkeypatch, name, changes, stored, dtypes):
    out = tmp_path / "adder.safetensors"
    monkeypatch.setattr(train, "recipe", lambda name, scale: replace(recipe(name, scale), **changes))
    assert called("train", name, *SMOKE, "--out", out) == 0
    assert checkpoints.load(out, recipe(name, "smoke").model()).stored == stored
    with safe_open(out, "pt") as file:
        assert {file.get_tensor(key).dtype for key in file.keys()} == dtypes


@pytest.mark.parametrize("path", sorted(checkpoints.WEIGHTS.glob("*.safetensors")), ids=lambda path: path.stem)
def test_every_shipped_checkpoint_is_kept_as_its_recipe_says(path):
    header = checkpoints.read_header(path)
    made = recipe(header.recipe, header.scale)
    assert header.stored == (STORED_FITTED if made.calibrate else STORED.get(made.stored, ""))
    assert path == weights_path(header.recipe, header.scale, header.seed)


def test_without_a_recipe_it_lists_them(capsys):
    assert called("train") == 0
    assert any(
        line.startswith("regression-live ") and "lesson 02" in line for line in capsys.readouterr().out.splitlines()
    )


def test_another_runs_state_is_not_gone_on_from(tmp_path, capsys):
    partial = tmp_path / "live.partial.safetensors"
    partial.write_bytes(b"no safetensors file")
    assert called("train", "regression-live", *SMOKE, "--out", tmp_path / "live.safetensors") == 1
    assert f"train: {partial}: not the saved state of a run" in capsys.readouterr().out
    assert partial.read_bytes() == b"no safetensors file", "left for whoever owns it"


@needs_torchrun
def test_under_torchrun_one_process_saves_for_all(tmp_path):
    """``torchrun`` with two gloo processes: one checkpoint, the same loss curve at the same global batch."""
    together, alone = tmp_path / "together.safetensors", tmp_path / "alone.safetensors"
    done = torchrun("-m", "companion", "train", "regression-live", *SMOKE, "--out", together)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("steps in") == 1, "one process alone saves"
    assert called("train", "regression-live", *SMOKE, "--out", alone) == 0
    curves = [[loss for _, loss in checkpoints.read_header(path).loss_curve] for path in (together, alone)]
    assert curves[0] == pytest.approx(curves[1], abs=1e-4)


def test_the_list_of_what_is_shipped_is_what_lies_there():
    listed = [weights_path(*run) for group in train.shipped_runs() for run in group]
    assert sorted(listed) == sorted(checkpoints.WEIGHTS.glob("*.safetensors"))


def test_what_is_missing_is_trained_and_nothing_else(monkeypatch, tmp_path):
    trained = []
    monkeypatch.setattr(train, "weights_path", lambda *run: tmp_path / "-".join(map(str, run)))
    monkeypatch.setattr(train, "_ship", lambda *run: trained.append(run[:3]))
    (first, *_), last = train.shipped_runs()
    (tmp_path / "-".join(map(str, first))).touch()
    assert called("train", "--missing") == 0
    assert first not in trained and trained[-1] == last[0] == ("regression-large", "course", 0)
