"""What is stopped while it is looked at, or in the middle of a table's cell, goes on as if nothing had happened; and
budgets are runs of their own.
"""

import math
import signal
from dataclasses import replace
from itertools import count

import pytest
import torch
from processes import python
from safetensors.torch import load_file, save_file
from torch import nn

from companion.core import training
from companion.core.measuring import measure, read_table
from companion.core.recipe import TIMES, recipe
from companion.core.training import History, ResumeError, Schedule, resumable, seeded, train
from companion.topics.regression.measured import excess

SCHEDULE, EVERY = Schedule(steps=30, batch=8, lr=0.05, warmup=5), 4


@pytest.fixture(autouse=True)
def saved_at_every_step(monkeypatch):
    monkeypatch.setattr(training, "SAVE_EVERY_SECONDS", 0.0)


def run(stop: int = -1, start: int = 3, **how) -> tuple[nn.Module, History]:
    """Train a line under noise from the global generator, both from ``start``; stopped in the ``stop``-th of its draws
    and looks.
    """
    events = count()

    def goes_on():
        if next(events) == stop:
            raise KeyboardInterrupt

    def draw(batch, generator):
        goes_on()
        return (torch.randn(batch, 4, generator=generator),)

    def loss(model, xs):
        return (model(xs)[:, 0] - xs.sum(1) + 0.1 * torch.randn(len(xs))).square().mean()

    def each(model):
        goes_on()
        return {"weight": model.weight.detach().clone(), "noise": [torch.rand(()).item(), None, ("text", 3, math.inf)]}

    with seeded(start):
        model = nn.Linear(4, 1)
        return model, train(model, draw, loss, SCHEDULE, **{"each": each, "every": EVERY} | how)


@pytest.mark.parametrize(("cuts", "done"), [((2,), 1), ((5, 0, 0), 4), ((7, 3, 12), 17), ((36,), 28)])
def test_a_run_that_is_looked_at_is_the_same_after_cuts_in_steps_and_in_looks(tmp_path, cuts, done, capsys):
    state = tmp_path / "state"
    for start, stop in enumerate(cuts, 3):  # from another start, so that all that is right comes from the file
        with pytest.raises(KeyboardInterrupt):
            run(stop, start, resume=state)
    capsys.readouterr()
    model, history = run(start=99, resume=state)
    assert f"| {done}/30 [" in capsys.readouterr().err.split("training")[1], "the bar starts where it goes on"
    whole, expected = run()
    assert history.losses == expected.losses and len(history.losses) == 30
    assert torch.equal(model.weight, whole.weight) and torch.equal(model.bias, whole.bias)
    assert len(history.looks) == len(expected.looks) == 8
    for ours, other in zip(history.looks, expected.looks, strict=True):
        assert torch.equal(ours["weight"], other["weight"]) and ours["noise"] == other["noise"]
    assert not list(tmp_path.iterdir())


def test_other_looks_an_older_state_and_what_a_state_cannot_hold_are_refused(tmp_path):
    state = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        run(14, resume=state)
    for other, due in ({"each": None}, 0), ({"every": 7}, 2):
        with pytest.raises(
            ResumeError, match=f"that called `each` 3 times, where this one would have {due}; remove it"
        ):
            run(resume=state, **other)
    with training.safe_open(state, "pt") as file:
        header = {name: said for name, said in file.metadata().items() if name != "looks"}
    save_file(load_file(state), state, header)
    with pytest.raises(ResumeError, match="saved by an earlier version of the course; remove it"):
        run(resume=state)
    with pytest.raises(ValueError, match=r"each: returned Linear.*; must return tensors, numbers"):
        run(resume=tmp_path / "other", each=lambda model: model)


def test_work_of_several_runs_trains_only_what_is_left(tmp_path):
    def work(stop=-1):
        """Two runs of one name; while the first is looked at it trains a third, which has no state."""
        with resumable(tmp_path) as states:
            return states, run(each=lambda model: run(each=None)[1].losses[-1])[1], run(stop)[1]

    with pytest.raises(KeyboardInterrupt):
        work(20)
    first, second = sorted(tmp_path.iterdir())
    finished = first.stat().st_mtime_ns
    states, looked_at, stopped = work()
    assert sorted(tmp_path.iterdir()) == [first, second] and first.stat().st_mtime_ns > finished
    assert states.seconds > 0 and looked_at.looks == run(each=lambda model: run(each=None)[1].losses[-1])[1].looks
    assert stopped.losses == run()[1].losses


KILLED = """
import os, signal, sys
from companion.core import training
from companion.core.measuring import measure

os.chdir(sys.argv[1])
training.SAVE_EVERY_SECONDS = 0.0
real, saves = training._save_state, 0

def save(*state):
    global saves
    real(*state)
    saves += 1
    if saves == int(sys.argv[2]):
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

training._save_state = save
measure("sensitivity-wide", seeds=[1], scale="smoke", jobs=1)
"""


@pytest.mark.types_unchecked
def test_a_measurement_that_is_killed_twice_in_the_middle_of_cells_gives_the_same_table(tmp_path, monkeypatch):
    for saves in (70, 300):  # three cells of 150 steps and the end: in the first, then in the third
        killed = python("-c", KILLED, tmp_path, saves)
        assert killed.returncode == -getattr(signal, "SIGKILL", -signal.SIGTERM), killed.stderr
    monkeypatch.chdir(tmp_path)
    real, saves = training._save_state, count()
    monkeypatch.setattr(training, "_save_state", lambda *state: (real(*state), next(saves)))
    resumed = read_table(measure("sensitivity-wide", seeds=[1], scale="smoke", jobs=1))
    assert next(saves) == 3 * 151 - 70 - 300, "not one step was trained twice"
    assert [path.name for path in (tmp_path / "build/measured").iterdir()] == ["sensitivity-wide.csv"]
    whole = read_table(measure("sensitivity-wide", seeds=[1], scale="smoke", jobs=1, out=tmp_path / "whole.csv"))
    assert resumed.rows == whole.rows


class Plateau(Schedule):
    """The rate stays until four fifths of the run are over, then falls to 0 in a line."""

    def lr_at(self, step: int) -> float:
        return self.lr * min(1, (step + 1) * 10 / self.steps, 5 * (1 - step / self.steps))


@pytest.mark.types_unchecked
def test_a_plateau_with_a_descent_gives_the_curve_of_separate_runs_a_little_earlier():
    """Up to its descent a run is the same for every budget: what is trained here is one long run and its descents."""
    own, marked = [], []
    for times in TIMES:
        chosen = recipe("regression-lstm", "smoke").with_(steps=100).longer(times)
        on_plateau = replace(chosen, schedule=Plateau(**vars(chosen.schedule)))
        for plan, errors in (chosen, own), (on_plateau, marked):
            errors.append(excess(plan.train()[0]))
    assert own == pytest.approx([0.53, 0.30, 0.17], abs=0.02)
    assert marked == pytest.approx([0.45, 0.25, 0.16], abs=0.02)
