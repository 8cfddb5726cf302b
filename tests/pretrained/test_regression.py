"""A regressor of Garg et al.'s form comes out of its folder as it went in; what cannot be read is refused by name."""

import pickle
import re
import shutil

import pytest
import torch
import yaml
from tiny_regressor import POINTS, SIZES, Theirs, configuration, save_tiny_run

from companion.pretrained.language import PretrainedError
from companion.pretrained.regression import published_regressor
from companion.topics.regression.data import prompts


@pytest.fixture(scope="module")
def theirs():
    """With weights that leave nothing at its start: biases of 0 would hide that they are forgotten."""
    model = Theirs()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture(scope="module")
def saved(theirs, tmp_path_factory):
    return save_tiny_run(tmp_path_factory.mktemp("saved") / "pretrained", theirs)


@pytest.fixture
def folder(saved, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(saved, tmp_path / "pretrained")


@pytest.mark.parametrize("points", [2, POINTS])
def test_it_predicts_what_theirs_predicts(saved, theirs, points):
    sample = prompts(5, points, SIZES["n_dims"])
    model = published_regressor(str(saved))
    with torch.no_grad():
        expected = theirs(sample.xs, sample.ys)
        assert torch.allclose(model(sample.xs, sample.ys), expected, atol=1e-5)
    assert expected.std() > 0.1
    assert model.config.n == POINTS
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_every_stream_is_theirs(saved, theirs):
    sample = prompts(3, POINTS, SIZES["n_dims"])
    tokens = torch.zeros(3, 2 * POINTS, SIZES["n_dims"])
    tokens[:, 0::2], tokens[:, 1::2, 0] = sample.xs, sample.ys
    with torch.no_grad():
        streams = published_regressor(saved).streams(sample.xs, sample.ys)
        expected = theirs._backbone(inputs_embeds=theirs._read_in(tokens), output_hidden_states=True).hidden_states
    # theirs hands out the last stream after its norm
    for ours, hidden in zip(streams[:-1], expected[:-1], strict=True):
        assert torch.allclose(ours, hidden[:, 0::2], atol=1e-5)


def test_without_state_the_model_of_the_largest_step_is_read(folder, theirs):
    (folder / "state.pt").unlink()
    torch.save(Theirs(seed=1).state_dict(), folder / "model_90000.pt")
    torch.save(theirs.state_dict(), folder / "model_500000.pt")
    sample = prompts(2, POINTS, SIZES["n_dims"])
    with torch.no_grad():
        assert torch.allclose(
            published_regressor(folder)(sample.xs, sample.ys), theirs(sample.xs, sample.ys), atol=1e-5
        )


def refused(folder, message: str) -> str:
    with pytest.raises(PretrainedError, match=re.escape(message)) as caught:
        published_regressor(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Shot:
    """Unpickled by a careless reader, it leaves a file behind."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


@pytest.mark.parametrize("name", ["state.pt", "model_500000.pt"])
@pytest.mark.parametrize("protocol", ["torch", "pickle"])
def test_no_code_of_a_pickle_is_run(folder, tmp_path, name, protocol):
    (folder / "state.pt").unlink()
    hit = tmp_path / "hit"
    hostile = {"model_state_dict": {"_read_in.weight": Shot(hit)}}
    if protocol == "torch":
        torch.save(hostile, folder / name)
    else:
        (folder / name).write_bytes(pickle.dumps(hostile))
    refused(folder, f"{folder / name}: is damaged, or holds more than weights; no code in it was run (")
    assert not hit.exists()


def change_weights(folder, change) -> None:
    state = torch.load(folder / "state.pt", weights_only=True)
    change(state["model_state_dict"])
    torch.save(state, folder / "state.pt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("_read_out.bias"), "state.pt: by config.yaml must have the tensor '_read_out.bias' (1 of"),
        (lambda w: w.update(more=torch.zeros(1)), "state.pt: by config.yaml must not have the tensor 'more' (1 of"),
        (lambda w: w.update({3: torch.zeros(1)}), "state.pt: by config.yaml must not have the tensor '3' (1 of"),
        (
            lambda w: w.update({"_read_in.weight": torch.zeros(32, 3)}),
            "state.pt: _read_in.weight has shape (32, 3); must be (32, 2) by config.yaml",
        ),
        (
            lambda w: w.update({"_backbone.wpe.weight": torch.zeros(15, 32)}),
            "_backbone.wpe.weight has shape (15, 32); must be (16, 32) or have more rows by config.yaml",
        ),
        (
            lambda w: w.update({"_backbone.wpe.weight": torch.zeros(1, 1).expand(10**12, 32)}),
            "state.pt: _backbone.wpe.weight must be a dense tensor, stored without gaps",
        ),
        (lambda w: w.update({"_read_in.bias": "thirty-two"}), "state.pt: _read_in.bias must be a dense tensor"),
        (
            lambda w: w["_read_in.bias"].fill_(torch.nan),
            "state.pt: _read_in.bias has other entries; must have finite floating-point",
        ),
        (
            lambda w: w.update({"_read_in.bias": torch.ones(32).int()}),
            "_read_in.bias has other entries; must have finite floating-point",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(folder, change, message):
    change_weights(folder, change)
    refused(folder, message)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (b"", "state.pt: is damaged, or holds more than weights; no code in it was run ("),
        (b"PK\x03\x04 and no more", "state.pt: is damaged, or holds more than weights; no code in it was run ("),
        (b"version https://git-lfs.github.com/spec/v1\n", "state.pt: is damaged, or holds more than weights"),
    ],
)
def test_a_damaged_file_is_named(folder, state, message):
    (folder / "state.pt").write_bytes(state)
    refused(folder, message)


def test_a_truncated_file_is_named(folder):
    whole = (folder / "state.pt").read_bytes()
    (folder / "state.pt").write_bytes(whole[: len(whole) // 2])
    refused(folder, "state.pt: is damaged, or holds more than weights; no code in it was run (")


@pytest.mark.parametrize("held", [[1, 2], {"train_step": 3}, torch.zeros(3), {"model_state_dict": torch.zeros(2)}])
def test_what_holds_no_weights_is_named(folder, held):
    torch.save(held, folder / "state.pt")
    refused(folder, "state.pt: must hold model_state_dict, a dictionary of tensors")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (configuration(family="lstm"), "config.yaml: model.family = 'lstm'; must be 'gpt2'"),
        (configuration(n_head=3), "config.yaml: n_head = 3; must divide n_embd = 32"),
        (configuration(n_layer=10**9), "config.yaml: n_layer = 1000000000; must be a whole number from 1 to 10000"),
        (configuration(n_layer=True), "config.yaml: n_layer = True; must be a whole number from 1 to"),
        (configuration(n_layer="12"), "config.yaml: n_layer = '12'; must be a whole number from 1 to"),
        (
            configuration(n_layer=4),
            "state.pt: by config.yaml must have the tensor '_backbone.h.3.attn.c_attn.bias' (12 of",
        ),
        (
            configuration(n_positions=7),
            "training.curriculum.points.end = 8; must be at least 2 and at most n_positions",
        ),
        ([1], "config.yaml: not a run's configuration in YAML, or a damaged one"),
        ({}, "config.yaml: has no model; must be a run's configuration"),
    ],
)
def test_a_configuration_that_does_not_fit_is_named(folder, config, message):
    (folder / "config.yaml").write_text(yaml.dump(config), encoding="utf-8")
    refused(folder, message)


def test_another_task_is_named(folder):
    config = configuration()
    config["training"]["task"] = "decision_tree"
    (folder / "config.yaml").write_text(yaml.dump(config), encoding="utf-8")
    refused(folder, "config.yaml: training.task = 'decision_tree'; must be 'linear_regression'")


@pytest.mark.parametrize(
    "text",
    [
        b"model: [",
        b"\xff\xfe\x00",
        b"!!python/object/apply:os.system ['true']",
        b"model: " + b"[" * 100_000,
        b"# " + b"x" * 2**16,
    ],
    ids=["cut", "bytes", "code", "deep", "long"],
)
def test_a_hostile_configuration_is_refused(folder, text):
    (folder / "config.yaml").write_bytes(text)
    refused(folder, "config.yaml: not a run's configuration in YAML, or a damaged one")


def test_what_is_missing_is_named(folder, tmp_path):
    refused(tmp_path / "nowhere", "no such folder; must be one on this machine that holds config.yaml and state.pt")
    refused(folder / "state.pt", "no such folder")
    (folder / "state.pt").unlink()
    refused(folder, "has no weights; must hold state.pt or model_STEP.pt")
    (folder / "config.yaml").unlink()
    refused(folder, "has no config.yaml, which a run of Garg et al.'s code writes")
