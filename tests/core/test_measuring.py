"""Tables that are measured: their jobs, their text and back, what a wrong file is told, a cluster of Dask."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from joblib import parallel_config

from companion.core import measuring
from companion.core.measuring import HEADER, as_csv, look_up, measure, measured_table, measurement, read_table

SAID = dict(zip(HEADER, ("python -m companion measure a-b", "0", "v", "m", "1.0"), strict=True))
ROWS = [{"seed": seed, "arm": arm, "x": seed + 0.25} for seed in (0, 1) for arm in ("p", "q, r")]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "a-b.csv"
    file.write_text(as_csv(SAID, ROWS))
    return file


def test_a_table_comes_back_as_it_was_written(path):
    table = read_table(path)
    assert table.header == SAID and table.rows == ROWS
    assert repr(table).startswith("Table of 4 rows, seed, arm, x; {")
    assert table.values("arm") == ["p", "q, r"]
    assert table.grid("seed", "arm", of="x").tolist() == [[0.25, 0.25], [1.25, 1.25]]
    assert table.grid("arm", "seed", of=("seed", "x")).shape == (2, 2, 2)
    assert table.where(arm="p").rows == ROWS[::2]


def test_what_a_table_does_not_have_is_named(path):
    table = read_table(path)
    with pytest.raises(ValueError, match="column = 'y': must be one of seed, arm, x"):
        table.values("y")
    with pytest.raises(
        ValueError,
        match=r"axes = .*: must have one row for each of the 2 combinations of their values; 2 occur, in 4 rows",
    ):
        table.grid("seed", of="x")
    with pytest.raises(ValueError, match="no row has these entries"):
        table.where(seed=7)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# config: 0\n", "", "line 2: '# versions: v': must begin with '# config: '"),
        ("# machine: m", "# machine: ", "line 4"),
        ("seed,arm,x", "seed,seed,x", "line 6: 'seed,seed,x': must name columns, each once"),
        ("0,p,0.25", "0,p", "line 7: '0,p': must have 3 entries, none empty"),
        ("0,p,0.25", "0,,0.25", "line 7"),
    ],
)
def test_a_wrong_file_is_named_with_the_line(path, old, new, said):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=f"a-b.csv, {said}"):
        read_table(path)


def test_a_table_without_rows_is_refused(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:6]))
    with pytest.raises(ValueError, match=r"a-b\.csv: has no rows"):
        read_table(path)


def test_rows_that_tell_other_things_are_refused():
    with pytest.raises(ValueError, match="row 5 has the columns seed; must have those of the first row, seed, arm, x"):
        as_csv(SAID, [*ROWS, {"seed": 2}])


def test_unknown_names_scales_and_seeds_are_named():
    for find in (measured_table, look_up, measure):
        with pytest.raises(ValueError, match=r"name = 'regression-none': must be one of .*regression-memory-in-blocks"):
            find("regression-none")
    with pytest.raises(ValueError, match="scale = 'large': must be one of smoke, course, paper"):
        measure("sensitivity-sharpness", scale="large")
    for seeds in ([], [0, 0]):
        with pytest.raises(ValueError, match=rf"seeds = {re.escape(str(seeds))}: must be at least one, and none twice"):
            measure("sensitivity-sharpness", seeds=seeds)
    look_up("sensitivity-sharpness")
    with pytest.raises(ValueError, match="there is a measurement of this name already"):
        measurement("sensitivity-sharpness", "another", tolerance=0, because="none")


def test_a_hash_changes_with_the_scale_and_not_by_itself():
    chosen = look_up("regression-memory-in-blocks")
    assert chosen.config() == chosen.config() != chosen.config("smoke")


@pytest.mark.filterwarnings("default")  # Dask's own are not ours to mend
@pytest.mark.types_unchecked
def test_a_dask_cluster_measures_what_one_process_does(tmp_path):
    distributed = pytest.importorskip("distributed")
    files = [tmp_path / "here.csv", tmp_path / "there.csv"]
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        measure("facts-by-learning-rate", scale="smoke", out=files[1])
    measure("facts-by-learning-rate", scale="smoke", out=files[0])
    here, there = map(read_table, files)
    assert here.rows == there.rows and len(here.rows) == 3
    assert here.header["command"] == "python -m companion measure facts-by-learning-rate --scale smoke"


def test_a_table_says_which_gpu_was_there(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A GPU")
    measuring.make_table(lambda job: [job], [{"seed": 0}], tmp_path / "a.csv", tmp_path / "b", "c", "d", "e", 1)
    assert read_table(tmp_path / "a.csv").header["machine"].endswith("cores, A GPU")


def test_a_measurement_that_was_stopped_twice_goes_on_elsewhere(tmp_path, monkeypatch):
    name, seeds, calls, real = "graphs-relu-by-filter", [0, 1], [], measuring._timed

    def stopped_after(many):
        def timed(*job):
            if len(calls) == many:
                raise KeyboardInterrupt
            calls.append(job)
            return real(*job)

        monkeypatch.setattr(measuring, "_timed", timed)

    whole = measure(name, seeds=seeds, scale="smoke", out=tmp_path / "whole.csv")
    for folder, many in (("first", 2), ("second", 5)):
        (tmp_path / folder).mkdir()
        if folder == "second":
            shutil.move(tmp_path / "first" / "build", tmp_path / folder / "build")
        monkeypatch.chdir(tmp_path / folder)
        stopped_after(many)
        with pytest.raises(KeyboardInterrupt):
            measure(name, seeds=seeds, scale="smoke")
    stopped_after(-1)
    found = measure(name, seeds=seeds, scale="smoke")
    assert len(calls) == 6  # each cell once
    assert read_table(found).rows == read_table(whole).rows
    assert not list(Path("build/measured").glob("*.partial.json"))


def test_a_state_that_a_power_cut_left_as_zeros_is_put_aside(tmp_path, capsys):
    kept = tmp_path / "bench.partial.json"
    kept.write_bytes(b"\0" * 40)
    assert measuring._finished(kept, "config") == []
    assert capsys.readouterr().out == (
        "bench.partial.json is not a measurement that was stopped; it is now bench.partial (set aside 1).json\n"
    )
    assert not kept.exists()
