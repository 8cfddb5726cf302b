"""What is said of the course's own layers is so in their shipped table, in every seed."""

import pytest

from companion.core.measuring import Table, measured_table
from companion.topics.layers.bench import beside
from companion.topics.layers.known import KNOWN
from companion.topics.layers.shown import from_floor


@pytest.fixture(scope="module")
def reached():
    found = from_floor(measured_table("layers-bench").rows)
    return lambda task, size, layer: next(v[layer] for (t, s, _), v in found.items() if (t, s) == (task, size))


def test_with_32_pairs_only_softmax_attention_recalls_all(reached):
    assert min(reached("recall", 32, "softmax")) > 0.99
    assert all(max(reached("recall", 32, layer)) < 0.9 for layer in KNOWN if layer != "softmax")


def test_an_lstm_alone_carries_s3_beyond_the_lengths_of_training_and_parity_in_one_seed(reached):
    assert min(reached("s3", 16, "lstm")) > 0.5
    assert sorted(share > 0.5 for share in reached("parity", 16, "lstm")) == [False, False, True]
    for task in ("s3", "parity"):
        assert all(max(reached(task, 16, layer)) < 0.2 for layer in KNOWN if layer != "lstm")


def test_the_delta_rule_recalls_about_as_much_as_linear_attention(reached):
    means = [sum(reached("recall", 32, layer)) / 3 for layer in ("delta", "linear")]
    assert abs(means[0] - means[1]) < 0.15


def test_a_table_of_32_numbers_is_learned_sooner_than_an_lstm_which_gains_more_from_longer_training():
    rows = measured_table("layers-budgets").where(task="recall", size=8)
    table, lstm = (rows.where(layer=layer).grid("times", "seed", of="score") for layer in ("table", "lstm"))
    assert (lstm[0] <= table[0] / 2).all()
    assert (lstm[2] < table[0]).all(), "ten times the batches"
    assert (lstm[-1] - lstm[0] > table[-1] - table[0]).all()


def test_a_layer_of_ones_own_stands_beside_the_others_on_its_tasks():
    row = measured_table("layers-bench").rows[0] | {"layer": "mine", "task": "recall"}
    shown = beside(Table({}, {name: [value] for name, value in row.items()}))
    assert {each["task"] for each in shown} == {"recall"}
    assert {each["layer"] for each in shown} == {*KNOWN, "mine"}
