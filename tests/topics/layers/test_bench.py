"""The bench: equal parameters, a learning rate of each one's own, a table that goes on where it was stopped."""

import math

import pytest
import torch
from joblib import parallel_config
from torch import nn

from companion.core import measuring
from companion.core.measuring import read_table
from companion.core.task import tasks
from companion.topics.layers import runs
from companion.topics.layers.bench import bench
from companion.topics.layers.known import KNOWN
from companion.topics.layers.runs import RATES, Solver, learning_rate, recipe_for, results
from companion.topics.layers.shown import from_floor, picture, reading

FILE = """
import torch
from torch import nn


class Mean(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        return self.map(x).cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


class Peeking(Mean):
    def forward(self, x):
        return super().forward(x).flip(1)
"""
COLUMNS = ["seed", "task", "layer", "axis", "size", "score", "floor", "ceiling", "nearest", "lr", "parameters"]


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    return f"{path}:Mean"


@pytest.mark.parametrize("name", tasks())
def test_all_layers_have_as_many_parameters_within_3_percent(name):
    sizes = []
    for layer in KNOWN.values():
        model = Solver(tasks()[name], layer, 32)
        sizes.append(sum(parameter.numel() for parameter in model.parameters()))
        assert model(tasks()[name].draw(2, torch.Generator().manual_seed(0)).inputs).shape[0] == 2
    assert max(sizes) <= 1.03 * min(sizes)


def test_a_learning_rate_is_that_of_the_least_loss_on_held_out_problems(monkeypatch):
    """A model that says how far its learning rate was from the second one, as its loss."""
    trained = []

    class Chosen:
        def __init__(self, lr):
            self.lr, self.schedule = lr, runs.Schedule(40, 8, lr)

        def with_(self, steps):
            trained.append((self.lr, steps))
            return self

        def train(self, **_):
            return self, None

        def loss(self, model, *_):
            return torch.tensor(math.nan if model.lr == RATES[0] else abs(model.lr - RATES[1]))

    monkeypatch.setattr(runs, "recipe_for", lambda task, layer, scale, lr: Chosen(lr))
    assert learning_rate.__wrapped__("parity", KNOWN["linear"], "smoke") == RATES[1]
    assert trained == [(lr, 10) for lr in RATES]


def test_a_trained_layer_is_tested_between_floor_and_ceiling():
    """Attention finds the value of a key in a few steps: a bench that could not show it would show nothing."""
    chosen = recipe_for("recall", KNOWN["softmax"], "smoke", 1e-2).with_(steps=150)
    model, _ = chosen.train(device="cpu")
    task = tasks("smoke")["recall"]
    problems = task.draw(200, torch.Generator().manual_seed(5), 2)
    floor = task.score(task.blind(problems.inputs), problems)
    with torch.no_grad():
        assert task.score(task.answers(model(problems.inputs)), problems) > floor + 0.5


def test_results_are_the_same_twice_and_have_a_row_for_each_size():
    rows = results("regression", KNOWN["delta"], 1, "smoke")
    assert rows == results("regression", KNOWN["delta"], 1, "smoke")
    assert [row["size"] for row in rows] == [5, 10, 20] and rows[0]["lr"] in RATES
    assert all(row["floor"] == 0 and row["ceiling"] == pytest.approx(1, abs=1e-4) for row in rows)
    assert all(row["nearest"] != "-" for row in rows)


def test_a_table_of_a_file_and_of_a_known_layer_is_written_with_its_picture(mine, tmp_path):
    out = tmp_path / "there.csv"
    table = bench(mine, "lstm", tasks=["parity", "recall"], seeds=[0, 1], scale="smoke", out=out)
    assert list(table.columns) == COLUMNS and table.rows == read_table(out).rows
    assert table.values("layer") == ["Mean", "lstm"] and table.values("seed") == [0, 1]
    assert len(table.rows) == 2 * 2 * (4 + 2)
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "there.csv", "there.png"]


def test_a_bench_that_was_stopped_goes_on_to_the_same_table(mine, tmp_path, monkeypatch):
    settings = {"tasks": ["parity", "hops"], "seeds": [0], "scale": "smoke"}
    whole = bench(mine, "linear", **settings, out=tmp_path / "whole.csv")
    calls, real = [], measuring._timed

    def timed(*job):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(job)
        return real(*job)

    monkeypatch.setattr(measuring, "_timed", timed)
    with pytest.raises(KeyboardInterrupt):
        bench(mine, "linear", **settings, out=tmp_path / "parts.csv")
    monkeypatch.setattr(measuring, "_timed", lambda *job: (calls.append(job), real(*job))[1])
    parts = bench(mine, "linear", **settings, out=tmp_path / "parts.csv")
    assert parts.rows == whole.rows and len(calls) == 4


def test_another_layer_of_the_same_name_is_trained_anew(mine, tmp_path, monkeypatch):
    settings = {"tasks": ["parity"], "seeds": [0], "scale": "smoke", "out": tmp_path / "parts.csv"}
    real = measuring._timed
    monkeypatch.setattr(measuring, "atomic_write", lambda path, text: path.write_text(text, encoding="utf-8"))
    monkeypatch.setattr(measuring, "as_csv", lambda *_: 1 / 0)  # stopped when all runs are done
    with pytest.raises(ZeroDivisionError):
        bench(mine, **settings)
    kept = settings["out"].with_suffix(".partial.json")
    before = kept.read_text(encoding="utf-8")
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace("nn.Linear(width, width)", "nn.Linear(width, width, bias=False)"), encoding="utf-8")
    calls = []
    monkeypatch.setattr(measuring, "_timed", lambda *job: (calls.append(job), real(*job))[1])
    with pytest.raises(ZeroDivisionError):
        bench(mine, **settings)
    assert len(calls) == 1 and kept.read_text(encoding="utf-8") != before


@pytest.mark.filterwarnings("default")  # Dask's own are not ours to mend
@pytest.mark.types_unchecked
def test_processes_and_a_dask_cluster_give_what_one_process_does(mine, tmp_path):
    distributed = pytest.importorskip("distributed")
    settings = {"tasks": ["parity"], "seeds": [0, 1], "scale": "smoke"}
    here = bench(mine, **settings, out=tmp_path / "here.csv")
    assert bench(mine, **settings, jobs=2, out=tmp_path / "two.csv").rows == here.rows
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        assert bench(mine, **settings, out=tmp_path / "there.csv").rows == here.rows


def test_what_is_wrong_is_named(mine, tmp_path):
    for given, settings, said in (
        (["gru"], {}, "layer = 'gru': must be one of softmax, .*, or FILE.py:NAME of your own"),
        (["none.py:Mean"], {}, "there is no file 'none.py' here"),
        ([mine.replace("Mean", "Median")], {}, "defines no Median that can be called"),
        ([mine.replace("Mean", "Peeking")], {}, "Peeking: future: what comes out before position 1 changes"),
        (["linear"], {"tasks": ["recalling"]}, "tasks = 'recalling': must be one of recall, addition, "),
        (["linear"], {"scale": "huge"}, "scale = 'huge': must be one of smoke, course, paper"),
        ([], {}, "layers, tasks, seeds: must be at least one each"),
        (["linear"], {"seeds": [0, 0]}, "none twice"),
        (["linear", "linear"], {}, "no layers of one name"),
    ):
        with pytest.raises(ValueError, match=said):
            bench(*given, out=tmp_path / "none.csv", **{"scale": "smoke"} | settings)
    assert not list(tmp_path.glob("none*"))


def test_what_is_not_learned_is_never_called_impossible():
    row = {"task": "parity", "axis": "bits", "floor": 0.5, "ceiling": 1.0}
    rows = [row | {"size": 8, "layer": "mine", "score": score} for score in (0.5, 0.52)]
    rows += [row | {"size": 8, "layer": "lstm", "score": score} for score in (0.9, 1.0)]
    assert from_floor(rows) == {("parity", 8, "bits"): {"mine": [0, pytest.approx(0.04)], "lstm": [0.8, 1.0]}}
    [line] = reading(rows)
    assert line.startswith("parity, bits 8: mine 0.02 [0.00, 0.04] (near the floor); lstm 0.90 [0.80,")
    assert line.endswith("1.00]") and "near" not in line.split("lstm")[1]
    drawn = picture(rows)
    assert drawn.alt == line and drawn.png.startswith(b"\x89PNG")


def test_a_layer_without_parameters_of_its_own_can_be_benched(tmp_path):
    class Cumulative(nn.Module):
        def forward(self, x):
            return x.cumsum(1)

    table = bench(lambda width: Cumulative(), tasks=["parity"], seeds=[0], scale="smoke", out=tmp_path / "a.csv")
    assert len(table.rows) == 4
