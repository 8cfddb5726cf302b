"""What decides a verdict and stands in a measured table is that table's: the interval or the seeds of the evidence."""

from math import log2

import pytest

from companion.core.measuring import measured_table
from companion.lesson.claims import statements
from companion.lesson.verdicts import Experiment

LAYERS = {  # lesson 02's claims: the checkpoint, the column, and what is taken of it
    "reaches-least-squares": ("regression-isotropic", "error", lambda error: 1 / error),
    "improves-across-layers": ("regression-isotropic", "least_fall", float),
    "newton-linear-isotropic": ("regression-isotropic", "newton_steps_a_layer", float),
    "descent-exponential-isotropic": ("regression-isotropic", "descent_factor_a_layer", float),
    "published-size-reached": ("regression-large", "error", lambda error: 1 / error),
    "newton-linear-published-size": ("regression-large", "newton_steps_a_layer", float),
    "descent-exponential-published-size": ("regression-large", "descent_factor_a_layer", log2),
    "newton-linear-ill-conditioned": ("regression-ill-conditioned", "newton_steps_a_layer", float),
    "descent-exponential-ill-conditioned": ("regression-ill-conditioned", "descent_factor_a_layer", float),
    "few-newton-many-descent": ("regression-ill-conditioned", "descent_step", float),
}


@pytest.mark.parametrize("id", LAYERS)
def test_the_intervals_of_lesson_02_are_of_the_table_of_layers(id):
    checkpoint, column, of = LAYERS[id]
    measured = measured_table("regression-layers").where(checkpoint=checkpoint).columns[column]
    taken = sorted(map(of, Experiment("sets", ours=tuple(map(float, measured))).between()))
    assert statements("02-in-context-regression")[id].evidence.interval == pytest.approx(taken, rel=0.01)


def test_the_seeds_of_lesson_03_at_ten_are_of_their_table():
    table = measured_table("regression-lstms-at-ten")
    rivals = zip(table.columns["newton"], table.columns["gradient_descent"], strict=True)
    margins = [own - max(pair) for own, pair in zip(table.columns["online_gradient_descent"], rivals, strict=True)]
    evidence = statements("03-lstm-vs-transformer")["lstm-like-ogd-at-ten"].evidence
    assert evidence.ours == pytest.approx(margins, abs=5e-4)


def test_the_intervals_of_lesson_03_are_of_the_table_of_its_checkpoints():
    table = measured_table("regression-lstm-checkpoints").columns
    excesses = zip(table["lstm"], table["larger_lstm"], table["transformer"], strict=True)
    gains = zip(table["lstm_gain"], table["transformer_gain"], strict=True)
    taken = {
        "memory-alone-closes-the-gap": [(larger - best) / (small - best) for small, larger, best in excesses],
        "no-gain-over-layers": [100 * (transformer - lstm) for lstm, transformer in gains],
    }
    for id, sets in taken.items():
        between = Experiment("sets", ours=tuple(sets)).between()
        assert statements("03-lstm-vs-transformer")[id].evidence.interval == pytest.approx(between, rel=0.002), id
