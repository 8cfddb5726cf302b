"""Checkpoints: what goes in comes out, with its history; whatever else is offered is refused by name."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import companion
from companion.core import checkpoints
from companion.core.checkpoints import CheckpointError, Header
from companion.core.training import History
from companion.topics.regression.model import InContextRegressor, RegressorConfig

CONFIG = RegressorConfig(d=2, n=4, width=8, layers=1, heads=2)
HOW = {"recipe": "a-recipe", "scale": "course", "seed": 7}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    model = InContextRegressor(CONFIG)
    history = History(losses=[1 / (step + 1) for step in range(1000)], seconds=12.34, device="cpu")
    checkpoints.save(path, model, **HOW, history=history)
    return path, model


def test_weights_and_history_come_back(saved):
    path, model = saved
    other = InContextRegressor(CONFIG)
    header = checkpoints.load(path, other, recipe="a-recipe")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    expected = HOW | {"steps": 1000, "device": "cpu", "seconds": 12.3}
    assert {name: getattr(header, name) for name in expected} == expected
    assert header.config["width"] == 8
    assert header.machine.endswith(", 1 thread")
    assert header.versions.keys() == {"companion", "torch", "python"}
    assert not other.training


def test_weights_kept_in_bfloat16_come_back_in_the_models_own_dtype_rounded(saved, tmp_path):
    whole, model = saved
    path, other = tmp_path / "half.safetensors", InContextRegressor(CONFIG)
    checkpoints.save(path, model, **HOW, history=History([1.0]), dtype=torch.bfloat16)
    checkpoints.load(path, other, recipe="a-recipe")
    for kept, given in zip(other.parameters(), model.parameters(), strict=True):
        assert kept.dtype == given.dtype == torch.float32
        assert torch.equal(kept, given.bfloat16().float())
        torch.testing.assert_close(kept, given, rtol=2**-8, atol=0)  # 8 bits, rounded to the nearest
    assert not all(torch.equal(kept, given) for kept, given in zip(other.parameters(), model.parameters(), strict=True))
    with safe_open(path, "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.bfloat16}
    assert path.stat().st_size < whole.stat().st_size


def test_weights_kept_in_int8_come_back_to_within_half_a_scale(saved, tmp_path):
    whole, model = saved
    path, other = tmp_path / "quarter.safetensors", InContextRegressor(CONFIG)
    header = checkpoints.save(path, model, **HOW, history=History([1.0]), dtype=torch.int8)
    assert checkpoints.load(path, other, recipe="a-recipe") == header
    assert header.stored == "int8 matrices, a bfloat16 scale for every 32 of a row"
    for kept, weights in zip(other.parameters(), model.parameters(), strict=True):
        assert kept.dtype == torch.float32
        if weights.ndim != 2:
            assert torch.equal(kept, weights)
            continue
        for part, own in zip(kept.split(32, 1), weights.split(32, 1), strict=True):
            largest = own.abs().amax(1, keepdim=True)
            assert ((part - own).abs() <= 1.02 / 254 * largest).all()  # the scale is rounded up to 8 bits
    with safe_open(path, "pt") as file:
        kinds = {name: file.get_tensor(name).dtype for name in file.keys()}
    assert all(kinds[f"{name}.scale"] == torch.bfloat16 for name, kind in kinds.items() if kind == torch.int8)
    assert torch.int8 in kinds.values()


@pytest.mark.parametrize("steps", [1, 199, 200, 201, 16_000])
def test_the_loss_curve_has_at_most_200_points_and_keeps_the_mean(steps):
    losses = torch.rand(steps, dtype=torch.float64).tolist()
    curve = checkpoints.loss_curve(losses)
    ends = [0, *(step for step, _ in curve)]
    assert len(curve) <= 200
    assert ends[-1] == steps
    total = sum((end - start) * loss for start, end, (_, loss) in zip(ends, ends[1:], curve, strict=False))
    assert total == pytest.approx(sum(losses), abs=1e-6 * steps)


FOREIGN = {"pickle": b"\x80\x04\x95pickled", "zip": b"PK\x03\x04zipped", "noise": bytes(range(256)) * 9, "json": b"{}"}


@pytest.mark.parametrize("damage", [0, 0.001, 0.01, 0.2, 0.5, 0.9, 0.999, *FOREIGN])
def test_a_truncated_or_foreign_file_is_refused(saved, damage):
    """What is left is a share of the whole, or something else."""
    path, model = saved
    whole = path.read_bytes()
    path.write_bytes(FOREIGN[damage] if damage in FOREIGN else whole[: int(damage * len(whole))])
    with pytest.raises(CheckpointError, match="not a safetensors file, or a truncated one"):
        checkpoints.load(path, model)


@pytest.mark.parametrize("metadata", [None, {"recipe": '"x"'}, dict.fromkeys(Header.__dataclass_fields__, "not json")])
def test_safetensors_of_another_origin_are_refused(tmp_path, metadata):
    path = tmp_path / "other.safetensors"
    save_file({"weight": torch.zeros(2)}, path, metadata)
    with pytest.raises(CheckpointError, match="not a checkpoint of this course"):
        checkpoints.read_header(path)


def test_another_recipe_is_refused_and_a_missing_file_says_how_to_make_it(saved):
    path, model = saved
    with pytest.raises(CheckpointError, match="made by the recipe 'a-recipe'; must be made by 'another'"):
        checkpoints.load(path, model, recipe="another")
    path.unlink()
    with pytest.raises(CheckpointError, match="no such checkpoint; make it with `python -m companion train`"):
        checkpoints.load(path, model)


def test_each_wrong_tensor_and_setting_is_named(saved):
    path, _ = saved
    with pytest.raises(CheckpointError) as caught:
        checkpoints.load(path, InContextRegressor(RegressorConfig(d=2, n=4, width=12, layers=2, heads=2)))
    message = str(caught.value)
    assert "config.width is 8, but 12 in the model" in message
    assert "read_in.weight has shape (8, 5), but (12, 5) in the model" in message
    assert "the tensor decoder.blocks.1.norm1.weight is missing" in message


def test_a_setting_younger_than_the_file_counts_as_its_default(saved, monkeypatch):
    path, model = saved
    header = checkpoints.read_header(path)
    without = {name: value for name, value in header.config.items() if name != "mixer"}
    monkeypatch.setattr(checkpoints, "read_header", lambda _: replace(header, config=without))
    checkpoints.load(path, model)
    with pytest.raises(CheckpointError, match=r"config.mixer is 'softmax', but 'delta' in the model"):
        checkpoints.load(path, InContextRegressor(replace(CONFIG, mixer="delta")))


def test_a_write_that_fails_leaves_the_old_file(saved, monkeypatch):
    path, model = saved
    before = path.read_bytes()

    def full(tensors, beside, header):
        Path(beside).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError, match="disk full"):
        checkpoints.save(path, model, **HOW, history=History([1.0]))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_nothing_in_the_companion_unpickles():
    unpickles = r"import pickle\b|\bpickle\.|torch\.load\((?!.*\bweights_only=True\))|torch\.save\("
    for file in Path(companion.__file__).parent.rglob("*.py"):
        assert not re.search(unpickles, file.read_text(encoding="utf-8")), file


def test_header_values_are_plain_json(saved):
    header = checkpoints.read_header(saved[0])
    json.dumps(header.config), json.dumps(header.loss_curve)
    assert "loss_curve" not in repr(header)
