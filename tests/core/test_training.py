"""The training loop: it computes what a plain loop computes, whether it is killed and resumed, or shared by two
processes.
"""

import math
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from processes import needs_torchrun, torchrun
from refusals import refusals
from safetensors import safe_open
from safetensors.torch import save, save_file
from stopping import stops_after
from torch import nn

from companion.core import training
from companion.core.recipe import recipe
from companion.core.training import ResumeError, Schedule, batch_generator, pick_device, seeded, train

SCHEDULE = Schedule(steps=30, batch=8, lr=0.05, warmup=5)


def line(seed=0) -> nn.Linear:
    torch.default_generator.manual_seed(seed)
    return nn.Linear(4, 1)


def draw(batch, generator):
    xs = torch.randn(batch, 4, generator=generator)
    return xs, xs.sum(dim=1)


def loss(model, xs, ys):
    return (model(xs)[:, 0] - ys).square().mean()


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


# Schedule


def test_the_learning_rate_rises_in_a_line_then_falls_in_half_a_cosine():
    rates = [Schedule(steps=1000, batch=1, lr=2.0, warmup=100).lr_at(step) for step in range(1000)]
    np.testing.assert_allclose(rates[:100], 2.0 * np.arange(1, 101) / 100)
    np.testing.assert_allclose(rates[100:], 1 + np.cos(np.pi * np.arange(900) / 900), atol=1e-12)


@pytest.mark.parametrize(("steps", "warmup"), [(50, 5), (5, 1), (1, 1)])
def test_a_short_run_warms_up_for_a_tenth_of_it(steps, warmup):
    schedule = Schedule(steps=steps, batch=1, lr=1.0)
    assert max(range(steps), key=schedule.lr_at) == warmup - 1
    assert schedule.lr_at(warmup - 1) == 1.0


test_a_wrong_schedule_is_named_with_its_value = refusals(
    ({"steps": 0}, "steps = 0"),
    ({"batch": 0}, "batch = 0"),
    ({"lr": 0.0}, r"lr = 0\.0"),
    ({"lr": math.nan}, "lr = nan"),
    ({"precision": "float16"}, "precision = 'float16': must be one of float32, bfloat16"),
    of=lambda wrong: Schedule(**{"steps": 10, "batch": 4, "lr": 0.1} | wrong),
)


# The loop


@pytest.mark.parametrize("decay", [0.0, 1.0])
def test_losses_and_weights_equal_a_plain_loop(decay):
    """Adam (Kingma & Ba 2015), decoupled decay of the weights, and the clip of the gradient's norm written out."""
    model, reference = line(), line()
    history = train(model, draw, loss, replace(SCHEDULE, decay=decay), seed=3)

    parameters = list(reference.parameters())
    first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    losses, clipped = [], 0
    for step in range(SCHEDULE.steps):
        value = loss(reference, *draw(SCHEDULE.batch, batch_generator(3, step, torch.device("cpu"))))
        losses.append(value.item())
        gradients = torch.autograd.grad(value, parameters)
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        clipped += norm > 1
        for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
            m.mul_(0.9).add_((1 - 0.9) * g / max(1, norm))
            v.mul_(0.99).add_((1 - 0.99) * (g / max(1, norm)) ** 2)
            step_size = SCHEDULE.lr_at(step) / (1 - 0.9 ** (step + 1))
            p.data *= 1 - decay * SCHEDULE.lr_at(step)
            p.data -= step_size * m / ((v / (1 - 0.99 ** (step + 1))).sqrt() + 1e-8)
    assert 0 < clipped < SCHEDULE.steps  # both kinds of step were tried
    np.testing.assert_allclose(history.losses, losses, rtol=1e-4, atol=1e-6)
    assert losses[-1] < 0.5 * losses[0]
    for ours, plain in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)


def test_a_seed_decides_the_run():
    models = [line() for _ in range(3)]
    histories = [train(model, draw, loss, SCHEDULE, seed=seed) for model, seed in zip(models, (1, 1, 2), strict=True)]
    assert histories[0].losses == histories[1].losses
    assert same_weights(models[0], models[1])
    assert histories[0].losses[0] != histories[2].losses[0]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_forward_pass_runs_in_the_schedules_precision_and_weights_keep_theirs(precision):
    bfloat16 = precision == "bfloat16"
    seen, model, exact = set(), line(), line()

    def watching_loss(model, xs, ys):
        seen.add(model(xs).dtype)
        return loss(model, xs, ys)

    schedule = replace(SCHEDULE, precision=precision)
    history = train(model, draw, watching_loss, schedule, device="cpu")
    expected = train(exact, draw, loss, SCHEDULE, device="cpu")
    assert seen == {torch.bfloat16 if bfloat16 else torch.float32}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    np.testing.assert_allclose(
        history.losses, expected.losses, rtol=0.1 if bfloat16 else 0, atol=0.05 if bfloat16 else 0
    )
    assert same_weights(model, exact) != bfloat16


@pytest.mark.parametrize("every", [7, [0, 3, 58]])
def test_it_looks_before_the_first_step_and_every_so_many_and_changes_nothing(every):
    plan = recipe("facts", "smoke")
    plain, known = plan.train()
    assert known.looks == []
    seen, history = plan.train(each=lambda model: next(model.parameters()).detach().clone(), every=every)
    assert len(history.looks) == (-(-plan.schedule.steps // 7) if every == 7 else 3)
    assert torch.equal(history.looks[0], next(plan.model().parameters()))
    assert not torch.equal(history.looks[1], history.looks[0])
    assert history.losses == known.losses
    assert torch.equal(next(seen.parameters()), next(plain.parameters()))


def test_looks_need_a_step_between_them():
    with pytest.raises(ValueError, match="every = 0: must be at least 1"):
        train(line(), draw, loss, SCHEDULE, each=print, every=0)


def test_every_step_and_every_seed_has_its_own_batch():
    cpu = torch.device("cpu")
    first_numbers = {
        torch.randn(1, generator=batch_generator(seed, step, cpu)).item() for seed in range(20) for step in range(50)
    }
    assert len(first_numbers) == 1000


def test_training_leaves_the_global_random_states_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002 (the global state is the point)
    recipe("regression-live", "smoke").train()
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()  # noqa: NPY002


def test_what_is_seeded_draws_alike_and_leaves_the_global_random_state_alone():
    before, drawn = torch.get_rng_state(), []
    for seed in (1, 1, 2):
        with seeded(seed):
            drawn.append(torch.rand(3).tolist())
    assert drawn[0] == drawn[1] != drawn[2]
    assert torch.equal(before, torch.get_rng_state())


def test_the_model_comes_back_in_evaluation_mode_and_the_history_says_where_it_ran():
    model = line()
    history = train(model, draw, loss, SCHEDULE, device="cpu")
    assert not model.training
    assert history.device == "cpu"
    assert history.seconds > 0
    assert len(history.losses) == SCHEDULE.steps


# Devices


class Luggage(nn.Linear):
    """Notes where it is sent, and stays on the CPU: on another device nothing can be computed everywhere."""

    def __init__(self):
        super().__init__(4, 1)
        self.sent = []

    def to(self, device):
        self.sent.append(torch.device(device))
        return self


@pytest.mark.parametrize("stops", [False, True])
def test_the_model_goes_to_the_device_and_comes_back_also_when_a_run_is_stopped(monkeypatch, stops):
    model = Luggage()
    monkeypatch.setattr(training, "pick_device", lambda *_, **__: torch.device("cuda"))
    monkeypatch.setattr(
        training, "batch_generator", lambda seed, step, _: batch_generator(seed, step, torch.device("cpu"))
    )

    def stopping_draw(batch, generator):
        assert model.training
        assert model.sent == [torch.device("cuda")]
        if stops:
            raise KeyboardInterrupt
        return draw(batch, generator)

    with pytest.raises(KeyboardInterrupt) if stops else nullcontext():
        train(model, stopping_draw, loss, SCHEDULE)
    assert model.sent == [torch.device("cuda"), torch.device("cpu")]
    assert not model.training


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_trained_on_a_gpu_is_where_it_was():
    for device in ("cpu", "cuda:0"):
        model = line().to(device)
        history = train(
            model, lambda n, g: (torch.ones(n, 4, device="cuda"), torch.ones(n, device="cuda")), loss, SCHEDULE
        )
        assert history.device == "cuda"
        assert next(model.parameters()).device == torch.device(device)


@pytest.mark.parametrize("gpus", [0, 1, 2])
def test_the_default_device_is_a_gpu_if_there_is_one(monkeypatch, gpus):
    pretend_gpus(monkeypatch, gpus)
    assert pick_device().type == ("cuda" if gpus else "cpu")
    assert pick_device("cpu").type == "cpu"
    assert pick_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "gpus"), [("cuda", 0), ("cuda:0", 0), ("cuda:1", 1), ("cuda:x", 1), ("tpu", 1), ("", 0)]
)
def test_a_device_that_is_not_there_is_named_with_those_that_are(monkeypatch, name, gpus):
    pretend_gpus(monkeypatch, gpus)
    with pytest.raises(ValueError, match=f"device = '{name}': must be one of .*cpu"):
        pick_device(name)


@pytest.mark.parametrize("name", [None, "cuda"])
def test_under_torchrun_every_process_has_its_own_gpu(monkeypatch, name):
    pretend_gpus(monkeypatch, 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert pick_device(name) == torch.device("cuda:1")


@pytest.mark.parametrize("gpus", [0, 1])
def test_apples_gpu_is_taken_on_request_alone_and_not_for_float64(monkeypatch, gpus):
    pretend_gpus(monkeypatch, gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    others = "cuda:0, cpu" if gpus else "cpu"
    assert pick_device().type == ("cuda" if gpus else "cpu")
    assert pick_device("mps").type == "mps"
    refused = f"device = 'mps': has no float64, which is needed here; must be one of {others}$"
    with pytest.raises(ValueError, match=refused):
        pick_device("mps", float64=True)
    with pytest.raises(ValueError, match=refused):  # the sampler is what computes in float64
        recipe("bigrams-two-layers", "smoke").train(device="mps")
    with pytest.raises(ValueError, match=refused):
        train(line().double(), draw, loss, SCHEDULE, device="mps")


def pretend_gpus(monkeypatch, count):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


# Stopped and resumed: that it goes on as if nothing had happened, `test_resuming` says


@pytest.fixture
def state(tmp_path, monkeypatch):
    """What a run has left that stopped after ten steps."""
    monkeypatch.setattr(training, "SAVE_EVERY_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(line(), stops_after(10, draw), loss, SCHEDULE, resume=tmp_path / "state.safetensors")
    return tmp_path / "state.safetensors"


@pytest.mark.skipif(sys.platform != "linux", reason="the list of what is mapped is Linux's")
def test_nothing_of_the_state_stays_mapped_into_memory(state):
    """Windows replaces no file that is, and Adam keeps the tensors that it is given."""
    mapped = []

    def looking_draw(batch, generator):
        mapped.append(state.name in Path("/proc/self/maps").read_text())
        return draw(batch, generator)

    train(line(), looking_draw, loss, SCHEDULE, resume=state)
    assert len(mapped) == 20 and not any(mapped)


def test_seconds_of_all_parts_of_a_run_are_added(state):
    tensors, header = kept_in(state)
    assert float(header["seconds"]) < 100
    save_file(tensors, state, header | {"seconds": "100.0"})
    assert train(line(), draw, loss, SCHEDULE, resume=state).seconds > 100


ANOTHER_RUN = r"saved by another run .*remove it to start afresh"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, ANOTHER_RUN),
        ({"schedule": replace(SCHEDULE, steps=31)}, ANOTHER_RUN),
        ({"schedule": replace(SCHEDULE, batch=4)}, ANOTHER_RUN),
        ({"schedule": replace(SCHEDULE, lr=0.06)}, ANOTHER_RUN),
        ({"schedule": replace(SCHEDULE, precision="bfloat16")}, ANOTHER_RUN),
        ({"label": "another recipe"}, ANOTHER_RUN),
        ({"model": nn.Sequential(line())}, "another model"),
    ],
)
def test_the_state_of_another_run_or_model_is_refused_and_kept(state, other, message):
    before = state.read_bytes()
    given = {"model": line(), "draw": draw, "loss": loss, "schedule": SCHEDULE, "seed": 0, "label": "training"}
    with pytest.raises(ResumeError, match=message):
        train(**given | other, resume=state)
    assert state.read_bytes() == before


CHECKPOINT = save(dict(line().state_dict()))


@pytest.mark.parametrize("content", [b"", b"not weights", bytes(range(256)) * 8, CHECKPOINT])
def test_a_file_that_is_no_state_is_refused_and_kept(tmp_path, content):
    state = tmp_path / "state.safetensors"
    state.write_bytes(content)
    refused = "another run" if content is CHECKPOINT else r"state\.safetensors: not the saved state of a run"
    with pytest.raises(ResumeError, match=refused):
        train(line(), draw, loss, SCHEDULE, resume=state)
    assert state.read_bytes() == content


def kept_in(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """A file's tensors and its header."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name).clone() for name in file.keys()}, file.metadata()


# Two processes

SHARED = """
import os, sys
import torch
from safetensors.torch import save_file
from companion.core.recipe import recipe

torch.set_num_threads(1)
chosen = recipe("regression-ill-conditioned", "smoke")
model, history = chosen.train(seed=5, device="cpu")
save_file({"losses": torch.tensor(history.losses, dtype=torch.float64), **model.state_dict()},
          f"{sys.argv[1]}/rank{os.environ['RANK']}.safetensors",
          {"group left": str(not torch.distributed.is_initialized())})
"""


@needs_torchrun
def test_two_processes_train_as_one(tmp_path):
    """Real processes under torchrun, talking through gloo on the loopback: the same losses at the same global batch, to
    1e-4.
    """
    script = tmp_path / "shared.py"
    script.write_text(SHARED)
    done = torchrun(script, tmp_path)
    assert done.returncode == 0, done.stderr

    alone, history = recipe("regression-ill-conditioned", "smoke").train(seed=5, device="cpu")
    for rank in (0, 1):
        shared, header = kept_in(tmp_path / f"rank{rank}.safetensors")
        np.testing.assert_allclose(shared.pop("losses").numpy(), history.losses, rtol=0, atol=1e-4)
        for name, tensor in alone.state_dict().items():
            torch.testing.assert_close(shared[name], tensor, rtol=1e-3, atol=1e-4)
        assert header["group left"] == "True"


def test_a_batch_that_the_processes_cannot_share_is_refused(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "3", "TORCHELASTIC_RUN_ID": "none"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="batch = 8: must be a multiple of the number of processes, 3"):
        train(line(), draw, loss, SCHEDULE)
