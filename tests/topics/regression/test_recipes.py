"""Shipped checkpoints are what their recipes say, and predict as well as claimed."""

import pytest
import torch

from companion.core.checkpoints import read_header, shipped, weights_path
from companion.core.measuring import measured_table
from companion.core.recipe import recipe, recipes
from companion.topics.regression import measured
from companion.topics.regression.baselines import least_squares, online_gradient_descent, predict, ridge_states
from companion.topics.regression.data import prompts
from companion.topics.regression.measured import excess, resemblance, state_error
from companion.topics.regression.model import StateRegressor
from companion.topics.regression.probes import errors_by_gap
from companion.topics.regression.recipes import (
    BLOCK_MIXERS,
    INTERLEAVED,
    MEMORY_SWEEP,
    TAUGHT_RIDGE,
    TEACHING,
    fresh_prompts,
    growing,
    state_loss,
)

SHIPPED = {"regression-isotropic": 1.0, "regression-ill-conditioned": 100.0}


@pytest.mark.parametrize("name", [name for name in recipes() if name.startswith("regression-")])
@pytest.mark.types_unchecked
def test_the_paper_scale_has_the_published_dimension(name):
    assert recipe(name, "paper").config.d == 20


EACH = (
    [(name, 0) for name in SHIPPED]
    + [("regression-lstm-deep", 0), ("regression-lstm-ten", 0), ("regression-large", 0), ("regression-valley", 0)]
    + [(f"regression-lstm-{width}", 0) for width in MEMORY_SWEEP]
)
EACH += [(name, seed) for name in ("regression-lstm", "regression-transformer") for seed in range(5)]
EACH += [
    (name, seed)
    for name in ("regression-delta", "regression-delta-small", "regression-linear-small")
    for seed in range(3)
]


@pytest.mark.parametrize(("name", "seed"), EACH)
def test_a_shipped_checkpoint_is_its_recipes(name, seed):
    header, plan = read_header(weights_path(name, seed=seed)), recipe(name)
    assert (header.recipe, header.scale, header.seed, header.steps) == (name, "course", seed, plan.schedule.steps)
    assert header.loss_curve[-1][0] == header.steps


@pytest.mark.parametrize("name, kappa", SHIPPED.items())
def test_a_shipped_model_is_within_five_percent_of_least_squares(name, kappa):
    model, _ = shipped(name)
    xs, ys, _ = prompts(512, model.config.n, model.config.d, kappa=kappa, generator=99)
    with torch.no_grad():
        error = (model(xs, ys) - ys).square().mean()
    assert error < 1.05 * (predict(least_squares(xs, ys), xs) - ys).square().mean()


@torch.no_grad()
@pytest.mark.parametrize("data_seed", range(50, 53))
@pytest.mark.types_unchecked
def test_every_shipped_lstm_forgets_and_no_transformer_does(data_seed):
    xs, ys, _ = prompts(128, 10, 5, generator=data_seed)
    for seed in range(5):
        lstm = errors_by_gap(shipped("regression-lstm", seed=seed)[0], xs, ys).mean(1)
        transformer = errors_by_gap(shipped("regression-transformer", seed=seed)[0], xs, ys).mean(1)
        assert lstm[-1] > 2 * lstm[0]
        assert transformer[-1] < 2 * transformer[0]


# The published size


def test_the_paper_scale_begins_as_the_paper_does_and_course_has_no_curriculum():
    """Alternating tokens, 5 dimensions and 11 points at first, 20 and 41 after 30,000 of 500,001 steps."""
    plan = recipe("regression-isotropic", "paper")
    assert plan.schedule.steps == 500_001 and plan.config.tokens == "interleaved"
    seen = []
    for step in (0, 15_000, 30_001):
        xs, ys = plan.draw(4, torch.Generator().manual_seed(0), step / plan.schedule.steps)
        seen.append((ys.shape[1], int(xs.abs().sum((0, 1)).count_nonzero())))
    assert seen == [(11, 5), (26, 12), (41, 20)]
    assert plan.model().streams(xs, ys).shape == (13, 4, 41, 256)
    course = recipe("regression-isotropic")
    assert course.draw(4, torch.Generator().manual_seed(0))[0].shape == (4, course.config.n, course.config.d)


def test_a_curriculum_begins_small_and_ends_with_whole_prompts():
    draw = growing(5, 11)(recipe("regression-large").config)
    seen = []
    for done in (0.0, 0.2, 0.4, 0.99):
        xs, ys = draw(4, torch.Generator().manual_seed(0), done)
        seen.append((ys.shape[1], int(xs.abs().sum((0, 1)).count_nonzero()), xs.shape[2]))
    assert seen == [(11, 5, 20), (26, 13, 20), (41, 20, 20), (41, 20, 20)]


def test_a_grown_model_says_what_the_smaller_one_says_where_nothing_is_new():
    small, _ = shipped("regression-isotropic")
    large = recipe("regression-large").model()
    xs, ys, _ = prompts(16, small.config.n, small.config.d, generator=3)
    with torch.no_grad():
        torch.testing.assert_close(large(torch.nn.functional.pad(xs, (0, 10)), ys), small(xs, ys), rtol=1e-5, atol=1e-5)
        longer = prompts(16, 41, 20, generator=3)
        assert (large(longer.xs, longer.ys) - longer.ys).square().mean() > 10  # and nothing of what is new


@pytest.mark.types_unchecked
def test_the_grown_model_learns_what_is_new(monkeypatch):
    monkeypatch.setattr(measured, "fresh_prompts", lambda model, seed: prompts(256, 41, 20, generator=seed)[:2])
    assert excess(shipped("regression-large")[0]) < 0.05
    assert excess(recipe("regression-large").model(seed=0)) > 0.5


# In the same blocks, and a taught state


def test_four_kinds_keep_as_many_numbers_and_softmax_more():
    kept = {mixer: recipe(f"regression-blocks-{mixer}").model().decoder.memory(11) for mixer in BLOCK_MIXERS}
    assert kept.pop("softmax") > 512 and set(kept.values()) == {512}


@pytest.mark.parametrize("name, share", TEACHING.items())
def test_the_state_is_taught_first(name, share):
    plan = recipe(f"regression-taught-{name}")
    taught = [plan.draw(2, torch.Generator().manual_seed(0), done)[2].tolist() for done in (0.0, 0.49, 0.5, 0.99)]
    assert taught == [[float(done < share)] * 2 for done in (0.0, 0.49, 0.5, 0.99)]


def test_the_state_that_is_taught_is_that_of_recursive_least_squares():
    """A model that holds it has no loss; the answers of one that holds least squares' w have little."""

    class Holding:
        def __call__(self, xs, ys, **_):
            ws, matrices = ridge_states(xs, ys, TAUGHT_RIDGE)
            return ws, TAUGHT_RIDGE * matrices

    xs, ys, _ = prompts(64, 11, 5, generator=4)
    assert state_loss(Holding(), xs, ys, torch.ones(64)) < 1e-10
    exact = ((least_squares(xs, ys) * xs).sum(-1) - ys).square().mean() / 5
    assert exact < state_loss(Holding(), xs, ys, torch.zeros(64)) < 1.1 * exact


class Answering(StateRegressor):
    """Least squares' answers, plus ``off``; it holds a ``share`` of the weights that are taught."""

    def __init__(self, off: float = 0.0, share: float = 1.0):
        super().__init__(recipe("regression-taught-state").config)
        self.off, self.share = off, share

    def forward(self, xs, ys):
        return predict(least_squares(xs, ys), xs) + self.off

    def states(self, xs, ys):
        ws, matrices = ridge_states(xs, ys, TAUGHT_RIDGE)
        return self.share * ws, matrices


def test_an_excess_is_above_least_squares_in_units_of_the_labels():
    assert excess(Answering()) == 0
    xs, ys = fresh_prompts(Answering())
    assert (xs.shape, ys.shape) == ((2048, 11, 5), (2048, 11))
    error = (predict(least_squares(xs, ys), xs) - ys).mean()
    assert excess(Answering(off=2.0)) == pytest.approx(((4 + 4 * error) / ys.square().mean()).item(), rel=1e-4)


@pytest.mark.parametrize("share, due", [(1.0, 0.0), (0.5, 0.25), (0.0, 1.0)])
def test_a_state_is_measured_against_what_is_taught(share, due):
    assert state_error(Answering(share=share)) == pytest.approx(due)


class Online(Answering):
    """Answers as online gradient descent does."""

    def forward(self, xs, ys):
        return predict(online_gradient_descent(xs, ys), xs)


def test_whoever_descends_online_resembles_that_and_no_other():
    alike = resemblance(Online())
    assert alike[0] == pytest.approx(1, abs=1e-5) and max(alike[1:]) < 0.95
    alike = resemblance(Answering())  # least squares, where Newton ends
    assert alike[1] > 0.97 and alike[0] < 0.8


def test_the_shipped_lstm_of_ten_dimensions_resembles_what_the_table_says():
    [row] = measured_table("regression-lstms-at-ten").where(seed=0).rows
    assert resemblance(shipped("regression-lstm-ten")[0]) == pytest.approx(list(row.values())[1:], abs=2e-3)


def test_the_small_networks_are_longer_runs_of_the_blocks():
    for mixer in ("delta", "linear"):
        small, block = (recipe(f"regression-{name}").config for name in (f"{mixer}-small", f"blocks-{mixer}"))
        assert small == block


def test_the_tables_of_states_have_a_row_for_each_seed_and_a_column_for_each_arm():
    for name, seeds, rows in (
        ("memory-in-blocks", 3, len(BLOCK_MIXERS) + len(INTERLEAVED)),
        ("taught-states", 3, len(TEACHING)),
        ("lstms-at-ten", 3, 1),
        ("contenders-interleaved", 5, 2),
    ):
        table = measured_table(f"regression-{name}")
        assert table.columns["seed"] == [seed for seed in range(seeds) for _ in range(rows)]


@pytest.mark.weekly
@pytest.mark.types_unchecked
def test_an_entry_of_each_table_is_measured_again():
    """Another machine's rounding may move them a little."""
    [row] = measured_table("regression-memory-in-blocks").where(seed=1, mixer="linear", tokens="triplet").rows
    model, _ = recipe("regression-blocks-linear").train(seed=1, device="cpu")
    assert excess(model) == pytest.approx(row["excess"], abs=0.01)
    [row] = measured_table("regression-taught-states").where(seed=2, teaching="state").rows
    model, _ = recipe("regression-taught-state").train(seed=2, device="cpu")
    assert [excess(model), state_error(model)] == pytest.approx([row["excess"], row["weights_off"]], abs=0.03)
