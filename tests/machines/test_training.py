"""Models and launchers as people have them: tied, compiled, data-parallel, torchrun or its variables alone."""

from contextlib import nullcontext
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from processes import needs_torchrun, torchrun
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from stopping import stops_after
from torch import nn
from torch.optim.swa_utils import AveragedModel

from companion import SCALES
from companion.core import checkpoints, processes, training
from companion.core.processes import BY_TORCHRUN, share
from companion.core.recipe import recipes
from companion.core.training import Schedule, train

SCHEDULE = Schedule(steps=6, batch=8, lr=0.05)
HOW = {"recipe": "tied", "scale": SCALES[0], "seed": 0}


@dataclass
class Config:
    words: int = 5


class Words(nn.Module):
    """A table that is read at both ends, tied or not."""

    def __init__(self, *, tied: bool = True):
        super().__init__()
        self.config = Config()
        self.read, self.say = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        if tied:
            self.say.weight = self.read.weight

    def forward(self, words):
        return self.say(self.read(words))


class Owned(nn.Module):
    """Somebody's own model that calls a part of its ``module``, as wrappers do."""

    def __init__(self):
        super().__init__()
        self.config, self.module, self.scale = Config(), Words(), nn.Parameter(torch.ones(()))

    def forward(self, words):
        return self.scale * self.module(words)


class Bare(nn.Module):
    """What DistributedDataParallel has: ``forward``, and nothing of its module's own."""

    def __init__(self, module, **_):
        super().__init__()
        self.module = module

    def forward(self, *tensors):
        return self.module(*tensors)


def compiled(model):
    return torch.compile(model, backend="eager")


def compiled_in_part(model):
    model.say = compiled(model.say)
    return model


def draw(batch, generator):
    return (torch.randint(5, (batch, 2), generator=generator),)


def loss(model, words):
    return F.cross_entropy(model(words).flatten(0, 1), words.flatten())


@pytest.mark.filterwarnings("ignore")  # of torch.compile's own making
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        nn.DataParallel,
        AveragedModel,
        pytest.param(compiled, marks=pytest.mark.weekly),
        pytest.param(compiled_in_part, marks=pytest.mark.weekly),
    ],
)
def test_a_model_is_kept_under_its_own_names_whatever_wraps_it(tmp_path, wrap, tied):
    path, model = tmp_path / "words.safetensors", Words(tied=tied)
    history = train(wrap(model) if wrap is not AveragedModel else model, draw, loss, SCHEDULE, device="cpu")
    checkpoints.save(path, wrap(model), **HOW, history=history)
    assert set(load_file(path)) == {"read.weight", "say.weight"}
    for again in (Words(tied=tied), wrap(Words(tied=tied))):
        checkpoints.load(path, again)
        assert torch.equal(again(torch.arange(5)[None]), model(torch.arange(5)[None]))


def test_names_that_an_older_file_has_from_a_wrapper_are_accepted(tmp_path):
    path, model = tmp_path / "words.safetensors", Words()
    checkpoints.save(path, model, **HOW, history=train(model, draw, loss, SCHEDULE, device="cpu"))
    with safe_open(path, "pt") as file:
        header = file.metadata()
    save_file({f"module._orig_mod.{name}": tensor for name, tensor in load_file(path).items()}, path, header)
    checkpoints.load(path, again := Words())
    assert torch.equal(again.read.weight, model.read.weight)


@pytest.mark.parametrize(
    ("before", "after"), [(Words, Words), (Owned, Owned), (Words, lambda: nn.DataParallel(Words()))]
)
def test_a_run_of_tied_weights_goes_on(tmp_path, monkeypatch, before, after):
    monkeypatch.setattr(training, "SAVE_EVERY_SECONDS", 0.0)
    path = tmp_path / "state"
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)
        whole = train(before(), draw, loss, SCHEDULE, device="cpu").losses
        torch.default_generator.manual_seed(1)
        with pytest.raises(KeyboardInterrupt):
            train(before(), stops_after(4, draw), loss, SCHEDULE, device="cpu", resume=str(path))
    assert train(after(), draw, loss, SCHEDULE, device="cpu", resume=str(path)).losses == whole


class Stateful(Words):
    def get_extra_state(self):
        return {"seen": 3}

    def set_extra_state(self, state):
        pass


def test_what_no_file_holds_is_told_before_the_first_step(tmp_path):
    sparse = Words()
    sparse.register_buffer("mask", torch.eye(3).to_sparse())
    for model, said in (
        (Stateful(), "_extra_state in its state is dict"),
        (sparse, "mask in its state is torch.float32, torch.sparse_coo"),
    ):
        with pytest.raises(ValueError, match=f"model: {said}, which cannot be saved; must be a dense tensor"):
            train(model, lambda *_: pytest.fail("drew a batch"), loss, SCHEDULE, resume=tmp_path / "state")


@pytest.mark.parametrize("said", [{"WORLD_SIZE": "2"}, {"WORLD_SIZE": "two"}, {"WORLD_SIZE": "0"}, {"RANK": "1"}])
def test_torchruns_variables_without_torchrun_get_a_sentence(monkeypatch, said):
    monkeypatch.delenv(BY_TORCHRUN, raising=False)
    [(name, value)] = said.items()
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} = '{value}': .* torchrun has not started this one; unset it"):
        train(Words(), draw, loss, SCHEDULE)
    for harmless in ({"WORLD_SIZE": "1", "RANK": "0"}, {"WORLD_SIZE": "", "RANK": ""}):
        for each in harmless.items():
            monkeypatch.setenv(*each)
        assert share() == (0, 1)


MANY = ("addition", "regression", "sensitivity", "structures")  # topics whose recipes take more than a second
TOPICS = [
    pytest.param(topic, marks=[pytest.mark.weekly] * (topic in MANY))
    for topic in sorted({name.partition("-")[0] for name in recipes()})
]


@pytest.mark.types_unchecked
@pytest.mark.parametrize("topic", TOPICS)
def test_every_recipe_trains_where_its_model_has_no_method_but_forward(monkeypatch, topic):
    monkeypatch.setattr(training, "share", lambda: (0, 2))
    monkeypatch.setattr(training, "process_group", lambda *_: nullcontext(0))
    monkeypatch.setattr(processes, "DistributedDataParallel", Bare)
    monkeypatch.setattr(training.dist, "all_reduce", lambda _: None)
    for name, scales in recipes().items():
        if name.partition("-")[0] == topic:
            _, history = scales["smoke"].with_(steps=1).train(device="cpu")
            assert len(history.losses) == 1, name


TWO = """
import sys
import torch
from companion.core.recipe import recipe

torch.set_num_threads(1)
model, history = recipe(sys.argv[1], "smoke").with_(steps=3).train(device="cpu")
print(*history.losses, sum(parameter.sum().item() for parameter in model.parameters()), flush=True)
"""


@needs_torchrun
@pytest.mark.weekly
@pytest.mark.parametrize("name", ["structures-frozen", "structures-unordered", "regression-taught-half"])
def test_two_processes_train_by_methods_of_the_model_as_one(tmp_path, name):
    script = tmp_path / "two.py"
    script.write_text(TWO)
    done = torchrun(script, name)
    assert done.returncode == 0, done.stderr
    model, history = recipes()[name]["smoke"].with_(steps=3).train(device="cpu")
    alone = [*history.losses, sum(parameter.sum().item() for parameter in model.parameters())]
    said = [[float(number) for number in line.split()] for line in done.stdout.splitlines()]
    torch.testing.assert_close(torch.tensor(said), torch.tensor([alone, alone]), rtol=1e-3, atol=1e-3)
