"""What decides lesson 09's verdicts and stands in a measured table is that table's."""

from math import log10

import numpy as np
import pytest
from stored_evidence import MULTIHEAD, evidence, of_tables, seen

from companion.core.measuring import measured_table


@pytest.mark.parametrize(
    ("id", "name", "chosen"),
    [
        ("learns-two-heads", "multihead-teachers", {"sharpness": 2.0}),
        ("gaussian-tokens", "multihead-gaussian", {"sharpness": 2.0, "labels": "its own"}),
        ("learns-three-heads", "multihead-three-heads", {"labels": "its own"}),
    ],
)
def test_the_losses_of_lesson_09_are_of_the_tables_of_teachers(id, name, chosen):
    losses = measured_table(name).where(**chosen).columns["loss"]
    assert evidence(MULTIHEAD, id, name).ours == pytest.approx([-log10(loss) for loss in losses], abs=0.01)


def test_how_luck_gets_rare_is_of_its_table():
    table = measured_table("multihead-luck").where(heads="random")
    logs, m = np.log2(table.grid("seed", "m", of="share")), np.array(table.values("m"))
    found = evidence(MULTIHEAD, "luck-gets-rare", "multihead-luck")
    assert found.ours == pytest.approx([-np.polyfit(m, row, 1)[0] for row in logs], abs=0.01)
    for of, said in ((m, found.fit), (np.log(m), found.rival)):
        assert said == pytest.approx([np.corrcoef(of, row)[0, 1] ** 2 for row in logs], abs=1e-4)


@pytest.mark.parametrize(("lesson", "id", "field"), of_tables(lambda lesson: lesson == MULTIHEAD))
def test_an_invented_figure_of_a_table_is_seen(lesson, id, field, monkeypatch):
    assert seen(globals(), lesson, id, field, monkeypatch), "no test compares it with its table"
