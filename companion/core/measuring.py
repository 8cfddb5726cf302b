"""Tables that the course measured itself: who measures them, how they are written, how they are read.

A function under `measurement` measures one cell of a table (a seed, and a setting) and gives rows. ``python -m
companion measure NAME`` calls it for all cells and writes ``measured/NAME.csv``, with how the table was made in its
header; a lesson reads that by `measured_table`. A table's name begins with its topic, in whose module its function is;
what is measured on a model that others trained is in that of `companion.pretrained`, which topics may not import.

Cells are independent of each other and are spread by joblib, so that a department's cluster takes them: ``with
joblib.parallel_config(backend="dask"):`` around `measure`, with a ``distributed.Client`` open; or
``ray.util.joblib.register_ray()``, then ``joblib.parallel_config(backend="ray")``.
"""

import csv
import io
import json
import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from companion import SCALES
from companion.core.files import atomic_write, make_room, read_kept
from companion.core.recipe import kept_in, times
from companion.core.registry import HOME, one_of_many, rooms
from companion.core.training import resumable

MEASURED = HOME / "measured"
HEADER = ("command", "config", "versions", "machine", "minutes")
Row = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """Who measures a table, and all that decides it: see `measurement`."""

    name: str
    about: str
    one: Callable[..., list[Row]]
    seeds: tuple[int, ...]
    cells: tuple[Row, ...]
    recipes: Callable[[str], Iterable[Any]]
    tolerance: float
    because: str
    quick: bool
    gpu: bool
    models: Mapping[str, str]

    @property
    def path(self) -> Path:
        """Return the path of the table."""
        return kept_in(MEASURED) / f"{self.name}.csv"

    def jobs(self, scale: str = "course", seeds: Iterable[int] | None = None) -> list[Row]:
        """Return the keywords of every call of the function, seed after seed. Raises ValueError for another scale."""
        if scale not in SCALES:
            raise ValueError(f"scale = {scale!r}: must be one of {', '.join(SCALES)}")
        seeds = self.seeds if seeds is None else seeds
        return [{"seed": seed, **cell, "scale": scale} for seed in seeds for cell in self.cells]

    def rows(self, job: Row) -> list[Row]:
        """Return what one of the `jobs` measures: rows that begin with its seed and its setting."""
        setting = {name: value for name, value in job.items() if name != "scale"}
        return [setting | row for row in self.one(**job)]

    def config(self, scale: str = "course") -> str:
        """Return 16 hexadecimal digits, a hash of what decides a run but its seeds: cells, recipes at a scale, models.

        What has its default counts for nothing: a new setting that nobody uses changes no hash.
        """
        recipes = [[each.name, _said((each.config,)), _said(each.schedule)] for each in self.recipes(scale)]
        others = [dict(self.models)] if self.models else []
        return _digest([self.name, scale, _said(self.cells), recipes, *others])


_registered: dict[str, Measurement] = {}


def measurement(
    name: str,
    about: str,
    *,
    tolerance: float,
    because: str,
    seeds: Iterable[int] = (0, 1, 2),
    cells: Iterable[Row] = ({},),
    recipes: Callable[[str], Iterable[Any]] = lambda scale: (),
    quick: bool = False,
    gpu: bool = False,
    models: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., list[Row]]], Callable[..., list[Row]]]:
    """Make known that the function below measures a table. Raises ValueError for a name that is taken.

    The function is called as ``one(seed=..., scale=..., **cell)`` and gives rows, what else it varied first and then
    the figures; the table has the seed and the cell before them.

    ``name``: the topic's, then what sets the table apart.
    ``about``: one line for those who look for a table.
    ``tolerance``, ``because``: how far a figure may be from the stored one when it is measured on another machine,
        absolutely up to 1 and relatively above (infinity where it has to be), and the reason.
    ``seeds``: of the runs.
    ``cells``: the settings that every seed is measured with.
    ``recipes``: of a scale, those recipes that decide what is measured.
    ``quick``: whether a cell at the scale course takes less than ten seconds of one core.
    ``gpu``: whether it takes hours of one, and was measured on a GPU.
    ``models``: that others trained and that are measured, by name, each with the hash of its file.
    """
    if name in _registered:
        raise ValueError(f"name = {name!r}: there is a measurement of this name already")

    def known(one: Callable[..., list[Row]]) -> Callable[..., list[Row]]:
        _registered[name] = Measurement(
            name, about, one, tuple(seeds), tuple(cells), recipes, tolerance, because, quick, gpu, models
        )
        return one

    return known


def measurements() -> dict[str, Measurement]:
    """Return every measurement by name; every module that measures is imported."""
    list(rooms("measured"))
    return dict(sorted(_registered.items()))


def look_up(name: str) -> Measurement:
    """Return one measurement; its topic's module alone is imported, and where that does not have it, the one on models
    that others trained. Raises ValueError, naming what is like it, for an unknown name.
    """
    if not any(name in _registered for _ in rooms("measured", name.partition("-")[0])):
        raise ValueError(f"name = {name!r}: must be one of {one_of_many(name, measurements(), 'measure')}")
    return _registered[name]


def measure(
    name: str,
    *,
    seeds: Sequence[int] | None = None,
    scale: str = "course",
    jobs: int | None = None,
    out: Path | None = None,
) -> Path:
    """Measure a table, with a progress bar, and write it; return where it lies. Raises ValueError for an unknown name
    or scale, or for no seeds, or one twice.

    A measurement that was stopped goes on where it was: cells that are finished, ``build/measured/NAME.partial.json``,
    are not measured again, and what the others train goes on from its last state, 20 seconds old at most.

    ``name``: of the `measurement`.
    ``seeds``: of the runs; the measurement's own, unless said.
    ``scale``: smoke, course or paper.
    ``jobs``: how many cells at a time, each on one thread; as many as joblib is told, unless said.
    ``out``: where to; the course's own place for a whole table at the scale course, ``build/measured/`` for any other,
        and where `measured_table` looks where everything is trained longer.
    """
    chosen = look_up(name)
    todo = chosen.jobs(scale, seeds)
    if not todo or (seeds and len(set(seeds)) < len(seeds)):
        raise ValueError(f"seeds = {seeds!r}: must be at least one, and none twice")
    longer = times() > 1
    command = [f"{f'COURSE_TIMES={times()} ' if longer else ''}python -m companion measure", name]
    if seeds is not None and tuple(seeds) != chosen.seeds:
        command += ["--seeds", *map(str, seeds)]
    if scale != "course":
        command += ["--scale", scale]
    out = out or (chosen.path if longer or len(command) == 2 else Path("build/measured") / f"{name}.csv")
    make_room(out.parent)
    kept = Path("build/measured") / f"{name}{f'-{times()}-times' if longer else ''}.partial.json"
    make_table(partial(_rows, name), todo, out, kept, " ".join(command), chosen.config(scale), name, jobs)
    return out


def make_table(
    one: Callable[[Row], list[Row]],
    todo: Sequence[Row],
    out: Path,
    kept: Path,
    command: str,
    config: str,
    label: str,
    jobs: int | None,
) -> None:
    """Measure all cells, with a progress bar, and write their table. What ``kept`` has of them from a measurement that
    was stopped is not measured again, and what the others train goes on from the states in a folder beside it
    (`companion.core.training.resumable`).

    ``one``: gives the rows of one cell.
    ``todo``: the cells, in the order of the table.
    ``out``: where the table goes.
    ``kept``: where cells that are finished are kept until all are.
    ``command``, ``config``: what makes the table, and a hash of all that decides it.
    ``label``: what the progress bar says.
    ``jobs``: as for `measure`.
    """
    cells = _finished(kept, config)
    left = [job for job in todo if not any(job == done for done, *_ in cells)]
    states = kept.with_suffix(".states")
    folders = [states / _digest([config, job]) for job in left]
    found = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(_timed)(one, job, folder) for job, folder in zip(left, folders, strict=True)
    )
    bar = tqdm(found, desc=label, total=len(left), delay=2)
    for job, folder, (part, took) in zip(left, folders, filter(None, bar), strict=True):  # joblib's type allows None
        cells.append([job, part, took])
        atomic_write(kept, json.dumps({"config": config, "cells": cells}))
        shutil.rmtree(folder, ignore_errors=True)
    cells = [next(cell for cell in cells if cell[0] == job) for job in todo]
    rows, seconds = [row for _, part, _ in cells for row in part], sum(took for *_, took in cells)
    gpu = [torch.cuda.get_device_name()] if torch.cuda.is_available() else []
    header = {
        "command": command,
        "config": config,
        "versions": f"Python {platform.python_version()}, torch {version('torch')}, numpy {version('numpy')}",
        "machine": ", ".join([f"{platform.system()} {platform.machine()}", f"{os.cpu_count()} cores", *gpu]),
        "minutes": f"{seconds / 60:.1f}",
    }
    atomic_write(out, as_csv(header, rows))
    kept.unlink(missing_ok=True)
    shutil.rmtree(states, ignore_errors=True)  # those of other recipes, too


def _finished(kept: Path, config: str) -> list[list[Any]]:
    """Return the cells (job, rows, seconds) of a measurement that was stopped, if what decides it is still the same."""
    state = read_kept(kept, "a measurement that was stopped", lambda state: state["config"] and state["cells"])
    return state["cells"] if state and state["config"] == config else []


def _rows(name: str, job: Row) -> list[Row]:
    return look_up(name).rows(job)


def _timed(one: Callable[[Row], list[Row]], job: Row, folder: Path) -> tuple[list[Row], float]:
    """Compute the rows of one cell, and its seconds, with those of what it goes on from, the states in ``folder``. One
    thread everywhere: a sum in other parts rounds otherwise.
    """
    threads, started = torch.get_num_threads(), time.perf_counter()
    torch.set_num_threads(1)
    try:
        with resumable(folder) as states:
            rows = one(job)
        return rows, time.perf_counter() - started + (states.seconds if states else 0)
    finally:
        torch.set_num_threads(threads)


def as_csv(header: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Return a table as text: the header as comments, a line of names, a line for each row; figures with five digits.

    Raises ValueError for rows that differ in what they tell.
    """
    names = list(rows[0])
    for number, row in enumerate(rows, 1):
        if list(row) != names:
            said = f"row {number} has the columns {', '.join(row)}"
            raise ValueError(f"rows: {said}; must have those of the first row, {', '.join(names)}")
    text = io.StringIO()
    text.writelines(f"# {name}: {header[name]}\n" for name in HEADER)
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(names)
    lines.writerows([f"{cell:.5g}" if isinstance(cell, float) else cell for cell in row.values()] for row in rows)
    return text.getvalue()


@dataclass(frozen=True)
class Table:
    """A table that was read: its header, and a list for each column, of whole numbers, numbers or texts."""

    header: dict[str, str]
    columns: dict[str, list]

    def __repr__(self) -> str:
        return f"Table of {len(self.rows)} rows, {', '.join(self.columns)}; {self.header}"

    @cached_property
    def rows(self) -> list[Row]:
        """Return the table row by row."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

    def values(self, name: str) -> list:
        """Return the different entries of a column, in the order in which they come first. Raises ValueError for an
        unknown column.
        """
        return list(dict.fromkeys(self._column(name)))

    def grid(self, *axes: str, of: str | Sequence[str]) -> np.ndarray:
        """Return a column as an array with an axis for each column in ``axes``, its entries in the order of `values`;
        of several columns, they are the last axis.

        >>> measured_table("regression-taught-states").grid("teaching", "seed", of="excess")

        Raises ValueError for an unknown column, and where a place of the array has no row, or two.
        """
        places = [{value: place for place, value in enumerate(self.values(axis))} for axis in axes]
        wanted = [self._column(name) for name in ([of] if isinstance(of, str) else of)]
        shape = tuple(len(each) for each in places)
        rows = {
            tuple(each[value] for each, value in zip(places, at, strict=True)): row
            for row, at in enumerate(zip(*(self._column(axis) for axis in axes), strict=True))
        }
        if not len(rows) == len(wanted[0]) == math.prod(shape):
            raise ValueError(
                f"axes = {axes!r}: must have one row for each of the {math.prod(shape)} combinations of their values; "
                f"{len(rows)} occur, in {len(wanted[0])} rows. `where` chooses rows"
            )
        found = np.array([[column[rows[place]] for column in wanted] for place in np.ndindex(shape)])
        return found.reshape(shape if isinstance(of, str) else (*shape, len(wanted)))

    def where(self, **settings: object) -> "Table":
        """Return the rows that have these entries. Raises ValueError for an unknown column, and where no row has."""
        for name in settings:
            self._column(name)
        kept = [row for row in self.rows if all(row[name] == value for name, value in settings.items())]
        if not kept:
            raise ValueError(f"{settings}: no row has these entries; `values` lists those of a column")
        return Table(self.header, {name: [row[name] for row in kept] for name in self.columns})

    def _column(self, name: str) -> list:
        if name not in self.columns:
            raise ValueError(f"column = {name!r}: must be one of {', '.join(self.columns)}")
        return self.columns[name]


def measured_table(name: str) -> Table:
    """Return a table that the course measured; where everything is trained longer (`companion.core.recipe.times`), the
    longer one, if it was measured. Raises ValueError, naming what is like it, for an unknown name, and, naming the
    file, for one that `read_table` cannot read.
    """
    tables = {
        path.stem: path
        for folder in dict.fromkeys((MEASURED, kept_in(MEASURED)))
        for path in sorted(folder.glob("*.csv"))
    }
    if name not in tables:
        raise ValueError(f"name = {name!r}: must be one of {one_of_many(name, tables, 'measure')}")
    return read_table(tables[name])


def read_table(path: Path) -> Table:
    """Return a table from a file. Raises ValueError, naming the file and the line, for a header or a row that is not as
    `as_csv` writes it.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    header = {}
    for number, name in enumerate(HEADER):
        line = lines[number] if number < len(lines) else ""
        text = line.removeprefix(f"# {name}: ").strip()
        if text == line.strip() or not text:
            raise ValueError(
                f"{path}, line {number + 1}: {line!r}: must begin with '# {name}: ', and its value must follow"
            )
        header[name] = text
    names, *rows = csv.reader(lines[len(HEADER) :]) if len(lines) > len(HEADER) else [[]]
    if not names or len(set(names)) < len(names) or not all(names):
        raise ValueError(f"{path}, line {len(HEADER) + 1}: {','.join(names)!r}: must name columns, each once")
    if not rows:
        raise ValueError(f"{path}: has no rows; must have one or more below the line of names")
    for number, row in enumerate(rows, len(HEADER) + 2):
        if len(row) != len(names) or not all(row):
            raise ValueError(f"{path}, line {number}: {','.join(row)!r}: must have {len(names)} entries, none empty")
    return Table(header, {name: _parsed(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})


def _parsed(column: Sequence[str]) -> list:
    """Parse a column as whole numbers, as numbers or as it is, whichever comes first for all of its entries."""
    for kind in (int, float):
        try:
            return [kind(entry) for entry in column]
        except ValueError:
            pass
    return list(column)


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _said(value: object) -> object:
    """Return a setting as JSON can hold it; of a dataclass those fields alone that differ from their default."""
    if is_dataclass(value):
        return {
            each.name: _said(getattr(value, each.name))
            for each in fields(value)
            if each.default is MISSING or getattr(value, each.name) != each.default
        }
    if isinstance(value, Mapping):
        return {str(name): _said(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_said(each) for each in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else getattr(value, "__name__", str(value))
