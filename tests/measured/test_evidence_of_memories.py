"""What decides lesson 05's verdicts and stands in a measured table is that table's."""

from statistics import fmean

import numpy as np
import pytest
from stored_evidence import MEMORIES, evidence, of_tables, seen

from companion.core.measuring import measured_table
from companion.topics.memories.probes import interval, two_power_laws


def test_the_exponents_of_lesson_05_are_of_the_table_of_samples():
    table, ratios = measured_table("memories-error-by-samples").where(kept="most seen"), []
    for alpha in table.values("alpha"):
        rows = table.where(alpha=alpha)
        laws = [
            two_power_laws(*(rows.where(seed=seed).columns[name] for name in ("n", "d", "error")))
            for seed in rows.values("seed")
        ]
        ratios += [[law.in_n / (1 - 1 / alpha) for law in laws], [law.in_d / (alpha - 1) for law in laws]]
    farthest = max(ratios, key=lambda each: abs(fmean(each) - 1))
    stored = evidence(MEMORIES, "error-by-samples", "memories-error-by-samples")
    assert stored.ours == pytest.approx([fmean(farthest)], abs=1e-3)
    assert stored.interval == pytest.approx(interval(farthest), abs=1e-3)


def _slopes(x, rows):
    """The slope of each row in x, and what of its variance that explains."""
    return np.array([[np.polyfit(x, row, 1)[0], np.corrcoef(x, row)[0, 1] ** 2] for row in np.asarray(rows)]).T


def test_the_fall_of_lesson_05_with_room_is_of_its_table():
    table = measured_table("memories-errors-alike").where(stored="all alike")
    widths, logs = table.values("d"), np.log(table.grid("seed", "d", of="error"))
    (falls, fit), (_, rival) = (_slopes(x, logs) for x in (widths, np.log(widths)))
    stored = evidence(MEMORIES, "scheme-alike", "memories-errors-alike")
    for found, due in ((stored.ours, -falls), (stored.fit, fit), (stored.rival, rival)):
        assert found == pytest.approx(due.tolist(), abs=1e-4)


def test_the_powers_of_lesson_05_by_degree_are_of_their_table():
    table = measured_table("memories-degrees").where(tokens="independent")
    widths, facts = np.log(table.values("d")), np.log(table.grid("degree", "seed", "d", of="facts"))
    first, _, third = (_slopes(widths, rows)[0] for rows in facts)
    stored = evidence(MEMORIES, "degree-saturates", "memories-degrees")
    assert stored.ours == pytest.approx(((third - first) / 2).tolist(), abs=1e-3)


def test_the_powers_of_lesson_05_of_pairs_are_of_their_table():
    table = measured_table("memories-pairs").where(degree=3)
    by = {
        name: _slopes(np.log(rows.values(name)), np.log(rows.grid("seed", name, of="facts")))[0]
        for name, rows in (("m", table.where(d=32)), ("d", table.where(m=128)))
    }
    farthest = max(by.values(), key=lambda each: abs(each.mean() - 1))
    stored = evidence(MEMORIES, "pairs-need-cubes", "memories-pairs")
    assert stored.ours == pytest.approx(farthest.tolist(), abs=1e-3)


def test_the_powers_of_lesson_05_of_trained_units_are_of_their_table():
    table = measured_table("memories-trained-units").where(units="ReLU")
    by = {}
    for name, rows in (("m", table.where(d=16)), ("d", table.where(m=32))):
        facts = rows.grid("seed", name, of="facts")
        by[name] = _slopes(np.log(rows.values(name)), np.log(facts * np.log(facts)))[0]
    farthest = max(by.values(), key=lambda each: abs(each.mean() - 1))
    stored = evidence(MEMORIES, "trained-mlp", "memories-trained-units")
    assert stored.ours == pytest.approx(farthest.tolist(), abs=1e-3)


def test_what_smaller_steps_gain_in_lesson_05_is_of_their_table():
    stored = evidence(MEMORIES, "smaller-steps-later", "memories-steps-budgets")
    settings = [(d, steps) for d in (16, 32) for steps in (10_000, 3000, 1000)]
    for found, (d, steps) in zip((stored, *stored.beside), settings, strict=True):
        errors = (
            measured_table("memories-steps-budgets").where(d=d, steps=steps).grid("later", "step", "seed", of="error")
        )
        same, tenth = (rows[rows.mean(1).argmin()] for rows in errors)
        assert found.ours == pytest.approx((same - tenth).tolist(), abs=1e-4)


@pytest.mark.parametrize(("lesson", "id", "field"), of_tables(lambda lesson: lesson == MEMORIES))
def test_an_invented_figure_of_a_table_is_seen(lesson, id, field, monkeypatch):
    assert seen(globals(), lesson, id, field, monkeypatch), "no test compares it with its table"
