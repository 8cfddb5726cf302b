"""Every table that the course measured: a cell of it is measured again and is what is stored, at least in its form.

Where a cell takes less than ten seconds it is measured as it was. Where it takes longer, the suite runs it at smoke
scale, for its columns alone, and the weekly workflow the true one: ``pytest -m weekly tests/measured``. A cell that is
measured on a model that others trained is left out where that was not fetched.
"""

import math
import re

import pytest
import torch

from companion.core.measuring import MEASURED, Measurement, measured_table, measurements

TABLES = measurements()
QUICK = [name for name, chosen in TABLES.items() if chosen.quick]
LONG = [name for name in TABLES if name not in QUICK]
WEEKLY = [name for name in LONG if torch.cuda.is_available() or not TABLES[name].gpu]


def differences(chosen: Measurement, job: dict) -> list[str]:
    """What is otherwise in a cell that is measured again, beyond the table's tolerance."""
    setting = {name: value for name, value in job.items() if name != "scale"}
    stored = measured_table(chosen.name).where(**setting).rows
    again = chosen.rows(job)
    if chosen.tolerance == math.inf:
        return [] if again and all(list(row) == list(stored[0]) for row in again) else ["other columns"]
    assert [list(row) for row in again] == [list(row) for row in stored]
    return [
        f"{name}: {new} where {old} is stored, in {was}"
        for row, was in zip(again, stored, strict=True)
        for (name, new), old in zip(row.items(), was.values(), strict=True)
        if not near(new, old, chosen.tolerance)
    ]


def near(new: object, old: object, tolerance: float) -> bool:
    """Texts and infinities are equal; figures differ by the tolerance at most, absolutely up to 1, relatively above."""
    if isinstance(new, str) or math.isinf(old):
        return new == old
    return abs(new - old) <= tolerance * max(1, abs(old))


def with_its_models(name: str, request: pytest.FixtureRequest) -> Measurement:
    """Who measures a table; each model that it is measured on is a fixture, which skips where it is not there."""
    for model in TABLES[name].models:
        request.getfixturevalue(model)
    return TABLES[name]


def test_every_table_has_a_function_and_every_function_a_table():
    assert sorted(path.stem for path in MEASURED.glob("*.csv")) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_its_cells_says_its_command_and_is_of_todays_recipes(name):
    chosen, table = TABLES[name], measured_table(name)
    measures = getattr(chosen.one, "func", chosen.one)
    room = r"pretrained(\.\w+)?" if chosen.models else f"topics.{name.partition('-')[0]}"
    assert re.fullmatch(rf"companion\.{room}\.measured", measures.__module__)
    assert table.header["command"] == f"python -m companion measure {name}"
    assert table.header["config"] == chosen.config(), "a recipe has changed: measure the table again"
    settings = ["seed", *chosen.cells[0]]
    there = list(dict.fromkeys(zip(*(table.columns[each] for each in settings), strict=True)))
    assert there == [tuple(job[each] for each in settings) for job in chosen.jobs()]
    assert chosen.tolerance >= 0 and chosen.because


@pytest.mark.types_unchecked
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.weekly) for name in WEEKLY)])
def test_a_cell_is_measured_again(name, request):
    chosen = with_its_models(name, request)
    assert not differences(chosen, chosen.jobs()[0])


@pytest.mark.types_unchecked
@pytest.mark.parametrize("name", LONG)
def test_a_long_cell_has_its_columns(name, request):
    chosen = with_its_models(name, request)
    rows, stored = chosen.rows(chosen.jobs("smoke")[0]), measured_table(name)
    assert rows and set(rows[0]) <= set(stored.columns)  # a smaller model has fewer waves
    assert list(rows[0])[: len(chosen.cells[0]) + 2] == list(stored.columns)[: len(chosen.cells[0]) + 2]
