"""Training sets are fixed and have the noise that they say; a smoke run of every family trains and is measured; the
stored tables have the form that the lesson reads.
"""

import numpy as np
import pytest
import torch

from companion.core.measuring import measured_table
from companion.core.recipe import recipe
from companion.topics.sensitivity.baselines import best_under_noise
from companion.topics.sensitivity.data import truth_table
from companion.topics.sensitivity.measured import FOUND, MARKS, measure_of, measured, robust, sharp
from companion.topics.sensitivity.model import Classifier, ClassifierConfig
from companion.topics.sensitivity.recipes import LENGTHS, RIVALS, fit, fit_steadily, with_noisy_part
from companion.topics.sensitivity.tasks import (
    BLURRED,
    FLIPPED,
    FLIPPED_PARITIES,
    TASKS,
    examples,
    function_of,
    table_of_sums,
    trapped,
)


def test_training_sets_have_the_noise_that_they_say():
    tokens, labels = examples("labels", 16, 4000)
    assert (function_of("labels", 16)(tokens) != labels).double().mean().item() == pytest.approx(FLIPPED, abs=0.02)
    tokens, labels = examples("sparse", 20, 4000)
    wrong = function_of("sparse", 20)(tokens) != labels
    assert wrong.double().mean().item() == pytest.approx(FLIPPED_PARITIES, abs=0.02)
    tokens, labels = examples("clean", 16, 500)
    assert torch.equal(function_of("clean", 16)(tokens), labels)
    wrong = (
        function_of("features", 16)(examples("features", 16, 4000)[0]) != examples("features", 16, 4000)[1]
    ).double()
    assert 0.1 < wrong.mean() < 0.4
    tokens, labels = examples("random", 16, 4000)
    assert labels.double().mean().item() == pytest.approx(0.5, abs=0.03)


def test_the_trap_is_one():
    table = trapped()
    assert (best_under_noise(table, BLURRED) != table).sum() >= 2


def test_a_batch_is_drawn_from_the_training_set():
    drawn = recipe("sensitivity-labels-mlp")
    x, labels = drawn.draw(40, torch.Generator().manual_seed(1))
    tokens, known = examples("labels", 16, TASKS["labels"][1])
    for row, label in zip(x.argmax(-1), labels, strict=True):
        assert label in known[(tokens == row).all(-1)]


def test_three_fifths_of_the_table_of_sums_are_for_training_and_no_swap_answers_a_pair():
    tokens, labels, train, held = table_of_sums(59)
    assert torch.equal(tokens.sum(1) % 59, labels) and 0.55 < train.double().mean() < 0.65
    assert torch.equal(train.view(59, 59), train.view(59, 59).mT) and torch.equal(held, ~train)


def test_the_published_pairs_of_sums_are_all_in_every_batch_and_no_swap_answers_one_held_out():
    published = recipe("sensitivity-sums-decay", "paper")
    x, labels = published.draw(published.schedule.batch, torch.Generator().manual_seed(1))
    tokens, sums, train, held = table_of_sums(113, 3830)
    assert torch.equal(x.argmax(-1), tokens[train]) and torch.equal(labels, sums[train])
    assert len(x) == published.schedule.batch == int(0.3 * 113**2)
    train, held = train.view(113, 113), held.view(113, 113)
    assert not (held & (train | train.mT)).any() and 0.45 < held.double().mean() < 0.53
    assert (train & ~train.mT).any()  # drawn pair by pair


def test_the_published_parity_is_of_four_bits_of_forty():
    published = recipe("sensitivity-sparse-lstm", "paper")
    assert (published.config.length, published.task["many"]) == (40, 40_000)
    for n, k in ((20, 3), (40, 4)):
        parity = function_of("sparse", n)
        assert torch.equal(parity.table, truth_table("parity", k)) and len(parity.places.unique()) == k


@pytest.mark.parametrize(
    "name",
    [
        "labels-transformer",
        "writes-lstm",
        "features-mlp",
        "random-mlp",
        "sparse-lstm",
        "digits-cnn",
        "wide-transformer",
        "text-mlp",
        "sums-decay",
    ],
)
def test_a_smoke_run_is_measured_at_every_mark(name):
    name = f"sensitivity-{name}"
    model, figures = measured(recipe(name, "smoke"), measure_of(name, "smoke"), marks=3, seed=0)
    assert len(figures) == 4 and figures.min() >= 0 and figures.max() <= 1
    assert torch.equal(figures[-1], measure_of(name, "smoke")(model))


def test_marks_may_be_steps():
    chosen = recipe("sensitivity-sums-decay", "smoke")
    far_apart, more = (
        measured(chosen, measure_of(chosen.name, "smoke"), marks=marks)[1] for marks in (3, (0, 9, 50, 100))
    )
    assert torch.equal(more[[0, 2, 3, 4]], far_apart)


def test_marks_that_do_not_divide_the_steps_are_named():
    with pytest.raises(ValueError, match="marks = 7: must divide the 150 steps"):
        measured(recipe("sensitivity-labels-mlp", "smoke"), measure_of("sensitivity-labels-mlp", "smoke"), marks=7)


def test_the_steady_loss_is_the_fit_where_noise_changes_nothing():
    model = Classifier(ClassifierConfig("mlp", 3, 2, width=4))
    x, labels = torch.randn(5, 3, 2), torch.tensor([0, 1, 1, 0, 1])
    for weights in model.network.parameters():
        weights.data.zero_()
    assert fit_steadily(model, x, labels).item() == pytest.approx(fit(model, x, labels).item() / 2)
    assert ((with_noisy_part(x) != x).any(-1).sum(1) == 1).all()


def test_what_is_measured_at_the_end_is_finite():
    for [row] in (robust(0, "smoke", "steadied"), sharp(0, "smoke", LENGTHS[0], "parity")):
        assert np.isfinite(list(row.values())).all()


@pytest.mark.parametrize(
    ("name", "arms", "figures"),
    [
        *((task, len(RIVALS), 3) for task in ("labels", "features", "writes", "random")),
        ("clean", 1, 3),
        ("digits", 6, 5),
        ("wide", 3, 5),
        ("text", 3, 26),
        ("sums", 2, 3),
    ],
)
def test_the_stored_curves_have_three_seeds_and_all_marks(name, arms, figures):
    table = measured_table(f"sensitivity-{name}")
    rows = table.grid("seed", "mark", "network", of=list(table.columns)[3:])
    assert rows.shape == (3, MARKS + 1, arms, figures)
    assert (table.values("seed"), table.values("mark")) == ([0, 1, 2], [*range(MARKS + 1)])
    assert rows.min() >= 0 and rows.max() <= 1


def test_two_of_three_transformers_find_the_sparse_parity_in_3000_steps_and_an_lstm_if_told_the_places():
    runs = measured_table("sensitivity-budgets").where(task="sparse", step=3000, steps=3000)
    ends = runs.grid("network", "seed", of="clean_accuracy")
    found = dict(zip(runs.values("network"), (ends >= FOUND).sum(1).tolist(), strict=True))
    assert found == {"transformer": 2, "lstm": 0, "mlp": 3, "lstm-told": 3, "lstm-shuffled": 0}


def test_noisy_bits_hold_all_transformers_for_1500_steps_and_one_of_three_for_4500():
    runs, best = measured_table("sensitivity-trap"), (best_under_noise(trapped(), BLURRED) == trapped()).double().mean()
    above = {
        steps: (runs.where(steps=steps, step=steps).grid("network", "seed", of="clean_accuracy") > best.item()).sum(1)
        for steps in runs.values("steps")
    }
    assert {steps: each.tolist() for steps, each in above.items()} == {1500: [0, 3], 4500: [2, 3]}


def test_the_other_tables_have_a_row_for_each_run():
    table = measured_table("sensitivity-robust")
    assert table.grid("seed", "network", of=list(table.columns)[2:]).shape == (3, 3, 8)
    table = measured_table("sensitivity-sharpness")
    assert table.values("bits") == list(LENGTHS)
    assert np.isfinite(table.grid("seed", "bits", "function", of=("accuracy", "loss", "rise"))).all()
