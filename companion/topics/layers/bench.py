"""The bench: which of the course's tasks does a layer learn within a given budget, and which does it not?

A layer is anything that is called as ``layer(width)`` and gives a module from (batch, time, width) to the same, which
sees no future. It is asked first what goes wrong most often (`companion.topics.layers.questions`), then trained on
every task (`companion.topics.layers.runs`), and drawn beside what the course's own layers reach,
``measured_table("layers-bench")``.

>>> from companion import bench
>>> table = bench(MyLayer, tasks=["recall", "s3"])
"""

import runpy
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import torch

from companion.core.defaults import torch_defaults
from companion.core.extras import MissingExtra
from companion.core.files import atomic_write, make_room
from companion.core.measuring import Row, Table, make_table, measured_table, read_table
from companion.core.registry import nearest_first
from companion.core.task import Task
from companion.core.task import tasks as tasks_at
from companion.core.training import seeded
from companion.topics.layers.known import KNOWN, Layer
from companion.topics.layers.questions import ask
from companion.topics.layers.runs import BUDGETS, RATES, SHORTER, results


def bench(
    *layers: str | Layer,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    scale: str = "course",
    jobs: int | None = None,
    out: Path | None = None,
) -> Table:
    """Train layers on tasks; return a row for each seed, task, layer and size, and draw them, at the scale course
    beside the course's own layers. What is finished of a bench that was stopped is not trained again.

    ``layers``: layers, names of `companion.topics.layers.known.KNOWN`, or "FILE.py:NAME".
    ``tasks``: names of `companion.core.task.tasks`; all of them unless told.
    ``seeds``: of weights and problems.
    ``scale``: smoke, course or paper.
    ``jobs``: how many runs at a time; as many as joblib is told, unless said.
    ``out``: the table's file, beside which the picture lies as PNG where the extra "lessons" can draw it;
        ``build/bench/LAYERS.csv`` unless told.

    Raises ValueError for an unknown task, layer or scale, for none, for one twice, and for a layer of which
    `companion.topics.layers.questions.ask` finds something wrong.
    """
    with torch_defaults(), torch.inference_mode(False), torch.enable_grad():
        return _bench(layers, tasks, seeds, scale, jobs, out)


def _bench(layers, tasks, seeds, scale, jobs, out) -> Table:
    """`bench`, under torch's own defaults."""
    named, known = dict(map(_named, layers)), tasks_at(scale)
    chosen = list(known if tasks is None else tasks)
    if unknown := [task for task in chosen if task not in known]:
        raise ValueError(f"tasks = {unknown[0]!r}: must be one of {', '.join(nearest_first(unknown[0], known))}")
    many = [(named, layers), (set(chosen), chosen), (set(seeds), seeds)]
    if any(not given or len(once) < len(given) for once, given in many):
        raise ValueError("layers, tasks, seeds: must be at least one each, none twice, and no layers of one name")
    lengths = {n: task for task in chosen for n in _lengths(known[task])}
    for name, layer in named.items():
        try:
            ask(layer, BUDGETS[scale][0], lengths)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error

    def rows(job: Row) -> list[Row]:
        return [job | row for row in results(job["task"], named[job["layer"]], job["seed"], scale)]

    label = "+".join(named)
    out = out or Path("build/bench") / f"{label}.csv"
    make_room(out.parent)
    todo = [{"seed": seed, "task": task, "layer": name} for seed in seeds for task in chosen for name in named]
    kept, said = out.with_suffix(".partial.json"), f"bench of {label} on {', '.join(chosen)}, scale {scale}"
    make_table(rows, todo, out, kept, said, _config(named, chosen, scale), label, jobs)
    table = read_table(out)
    try:
        from companion.topics.layers.shown import picture  # noqa: PLC0415 (the table needs no extra)
    except MissingExtra as error:
        print(f"No picture: {error}", file=sys.stderr)
    else:
        atomic_write(out.with_suffix(".png"), picture(beside(table) if scale == "course" else table.rows).png)
    return table


def beside(table: Table) -> list[Row]:
    """Return the rows of a bench at the scale course, after those of the course's other layers on the same tasks."""
    shipped, on, own = measured_table("layers-bench").rows, table.values("task"), table.values("layer")
    return [row for row in shipped if row["task"] in on and row["layer"] not in own] + table.rows


def _named(layer: str | Layer) -> tuple[str, Layer]:
    """A layer and its name. Raises ValueError for a name that is neither known nor in a file."""
    if not isinstance(layer, str):
        return getattr(layer, "__name__", type(layer).__name__), layer
    if layer in KNOWN:
        return layer, KNOWN[layer]
    file, colon, name = layer.rpartition(":")
    if not colon or not Path(file).is_file():
        lacks = f"; there is no file {file!r} here" if colon else ""
        names = ", ".join(nearest_first(layer, KNOWN))
        raise ValueError(f"layer = {layer!r}: must be one of {names}, or FILE.py:NAME of your own{lacks}")
    if (folder := str(Path(file).resolve().parent)) not in sys.path:
        sys.path.insert(0, folder)  # it stays: a layer may import what lies beside it late, and in other processes
    try:
        with torch_defaults(), torch.enable_grad():  # what a file sets for all is taken back
            there = runpy.run_path(file)  # no module that can be imported: other processes are sent the layer by value
    except (Exception, SystemExit) as error:
        raise ValueError(f"layer = {layer!r}: {file} cannot be run: {type(error).__name__}: {error}") from error
    if not callable(there.get(name)):
        raise ValueError(f"layer = {layer!r}: {file} defines no {name} that can be called")
    return name, there[name]


def _lengths(task: Task) -> set[int]:
    """How long the sequences of a task are, in training and in tests."""
    return {task.draw(1, torch.Generator(), size).inputs.shape[1] for size in (None, *task.sizes)}


def _config(named: dict[str, Layer], chosen: Sequence[str], scale: str) -> str:
    """A hash of what decides a bench: tasks, budget, and what layers compute at the start."""
    said = [scale, BUDGETS[scale], RATES, SHORTER, chosen]
    for name, layer in named.items():
        with seeded(0):
            output = layer(BUDGETS[scale][0])(torch.randn(1, 8, BUDGETS[scale][0]))
        said.append((name, [f"{number:.3g}" for number in output.flatten().tolist()]))
    return sha256(repr(said).encode()).hexdigest()[:16]
