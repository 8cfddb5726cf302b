"""Models and layers of other people: what lies in a folder that was copied, cached, or cloned without its weights."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch
from tiny_llama import save_tiny_llama
from tokenizers import Tokenizer

from companion.core import checkpoints
from companion.core.checkpoints import CheckpointError
from companion.pretrained.folder import PretrainedError
from companion.pretrained.language import LanguageModel
from companion.pretrained.regression import published_regressor
from companion.topics.bigrams.examined import examine
from companion.topics.layers.bench import bench

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{64 * 'a'}\nsize 12345\n"
PULL = "it is a Git LFS pointer; `git lfs pull` in its repository brings the file"


@pytest.fixture
def folder(tmp_path):
    return save_tiny_llama(tmp_path / "models--org--name/snapshots/abc")


def refused(folder: Path, *said: str, read=LanguageModel) -> None:
    with pytest.raises(PretrainedError) as told:
        read(folder)
    assert all(each in str(told.value) for each in said), told.value
    assert "\n" not in str(told.value)


# Tokens without rows


def test_tokens_without_a_row_are_named_and_none_is_drawn(folder, capsys):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    rows = LanguageModel(folder).tokens
    tokenizer.add_tokens([f"<{k}>" for k in range(rows)])
    tokenizer.add_special_tokens(["[PAD]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    model = LanguageModel(folder)
    rows = len(model.unembedding)
    assert model.tokens == rows < tokenizer.get_vocab_size()
    examine(model, name="added")
    assert "Random tokens said twice" in capsys.readouterr().out
    last = tokenizer.token_to_id("[PAD]")
    with pytest.raises(PretrainedError, match=rf"its token '\[PAD\]' is number {last}, .* 0 to {rows - 1} alone"):
        model.encode("one [PAD]")


# What lies in a file's place


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize(
    ("content", "said"),
    [(POINTER, PULL), ("\n<!DOCTYPE html>\n<html>", "it is a web page, not the file"), ("", "it is empty")],
    ids=["pointer", "page", "empty"],
)
def test_what_lies_in_a_files_place_is_named(folder, name, content, said):
    (folder / name).write_text(content)
    refused(folder, name, said)


def test_pointers_in_other_places_are_named(folder, tmp_path):
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(POINTER)
    refused(folder, index.name, PULL)
    index.write_text(json.dumps({"weight_map": {"model.embed_tokens.weight": "a.safetensors"}}))
    (folder / "a.safetensors").write_text(POINTER)
    refused(folder, "a.safetensors", PULL)
    (folder / "config.yaml").write_text(POINTER)
    refused(folder, "config.yaml", PULL, read=published_regressor)
    with pytest.raises(CheckpointError, match="it is a Git LFS pointer"):
        checkpoints.read_header(folder / "a.safetensors")


# What is given in place of a model's folder


@pytest.mark.parametrize("above", ["models--org--name/snapshots", "models--org--name", "."])
def test_the_root_of_a_cache_says_where_the_model_is(folder, tmp_path, above):
    refused(tmp_path / above, "has no tokenizer", f"there is a model in {folder}: give that folder")


def test_other_weights_and_broken_links_are_named(folder):
    weights = folder / "model.safetensors"
    for other in ("model-00001-of-00002.safetensors", "weights.Q8_0.gguf", "adapter_model.safetensors", "x.bin"):
        weights = weights.rename(folder / other)
        refused(folder, "has no weights", f"; there is {other}.")
    if os.name != "nt":
        (folder / "model.safetensors").symlink_to("../../blobs/gone")
        refused(folder, "model.safetensors is a link to ../../blobs/gone, which is not there")


# Layers

LAYER = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        {first}
        return self.map(x).cumsum(1) / 10


class Placed(Layer):
    def __init__(self, width):
        super().__init__(width)
        self.places = nn.Parameter(torch.zeros({places}, width))

    def forward(self, x):
        return super().forward(x + self.places[: x.shape[1]])


class Cropping(Layer):
    def forward(self, x):
        return super().forward(x[:, :{places}])
"""


@pytest.fixture
def benched(tmp_path, monkeypatch):
    """Run the bench on a layer's file, whose first lines and whose forward pass begin with what is given."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)

    def run(head: str = "", first: str = "pass", *, name: str = "Layer", places: int = 16, task: str = "sparse"):
        path = tmp_path / "my_layer.py"
        path.write_text(head + LAYER.format(first=first, places=places))
        return bench(f"{path}:{name}", tasks=[task], seeds=[0], scale="smoke")

    return run


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("import not_here", "ModuleNotFoundError: No module named 'not_here'"),
        ("from . import beside", "ImportError: attempted relative import"),
        ("raise SystemExit('usage')", "SystemExit: usage"),
        ("def (", "SyntaxError: invalid syntax"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_file_that_cannot_be_run_is_said_to_be_one(benched, head, said):
    with pytest.raises(ValueError, match=f"my_layer.py cannot be run: {said}"):
        benched(head + "\n")


@pytest.mark.parametrize("first", ["x += 1", "x.relu_()", "x[:, 0] = 0", "x[0].mul_(2)", "x /= x.norm()"])
def test_a_layer_that_changes_its_input_is_told_so(benched, first):
    with pytest.raises(ValueError, match="Layer: input: the layer changes it in place; must make a new tensor"):
        benched(first=first)


@pytest.mark.parametrize(
    ("name", "why"),
    [("Placed", r"the layer raises RuntimeError: .*size of tensor"), ("Cropping", "{} positions come out")],
)
@pytest.mark.parametrize(
    ("places", "asked"), [(10, "12 positions go in, for these questions"), (16, "17 positions go in, for parity")]
)
def test_a_layer_with_a_longest_input_is_told_before_it_is_trained(benched, name, why, places, asked):
    said = f"{name}: length: where {asked}, {why.format(places)}.*; the longest below that it takes is {places}; "
    with pytest.raises(ValueError, match=f"^{said}must take up to 33, for parity$"):
        benched(name=name, places=places, task="parity")


SETS = "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\n"


@pytest.mark.weekly
@pytest.mark.types_unchecked
@pytest.mark.parametrize(
    ("head", "first"), [("from beside.part import same\n", "x = same(x)"), ("", "from ops import same"), (SETS, "pass")]
)
def test_a_layer_finds_what_lies_beside_it_and_sets_nothing_for_the_course(benched, tmp_path, head, first):
    (tmp_path / "beside").mkdir()
    for path in (tmp_path / "beside/part.py", tmp_path / "ops.py"):
        path.write_text("def same(x):\n    return x\n")
    assert benched(head, first).rows
    assert torch.get_default_dtype() is torch.float32 and torch.is_grad_enabled()
    shutil.rmtree(tmp_path / "build")
