"""Tables over budgets have one form, and measure what they say on networks of which it is known."""

import math

import pytest
import torch
from torch import nn

from companion.core.measuring import measurements
from companion.core.recipe import recipe
from companion.topics.layers.measured import SmallTable
from companion.topics.layers.probes import jacobian
from companion.topics.layers.questions import ask
from companion.topics.regression.baselines import least_squares, newton, online_gradient_descent, predict
from companion.topics.regression.measured import newton_steps_as_good, remembered
from companion.topics.regression.model import InContextRegressor
from companion.topics.sensitivity.measured import equally_long, examples, function_of, on_flipped
from companion.topics.sensitivity.recipes import RIVALS

BUDGETS = {name: chosen for name, chosen in measurements().items() if name.endswith("-budgets")}


@pytest.mark.types_unchecked
@pytest.mark.parametrize("name", BUDGETS)
def test_a_table_has_the_seed_the_network_times_and_steps_then_figures(name):
    cells = BUDGETS[name].jobs("smoke", [1])
    short, long = cells[0], next(cell for cell in cells if cell["times"] == 3)
    assert long == short | {"times": 3}
    rows = [BUDGETS[name].rows(cell) for cell in (short, long)]
    for row in rows[0] + rows[1]:
        assert list(row)[: len(short)] == [*(key for key in short if key != "scale"), "steps"]
        assert all(isinstance(value, str) or math.isfinite(value) for value in row.values())
    assert 3 * rows[0][0]["steps"] == rows[1][0]["steps"] and list(rows[0][0]) == list(rows[1][0])
    assert {cell["times"] for cell in cells} >= {1, 3, 10}


class Solves(InContextRegressor):
    """Answers by an algorithm."""

    def __init__(self, solve):
        super().__init__(recipe("regression-transformer").config)
        self.solve = solve

    def forward(self, xs, ys):
        return predict(self.solve(xs, ys), xs)


@pytest.mark.parametrize("solve", [least_squares, online_gradient_descent])
def test_what_is_remembered_of_algorithms_is_what_they_remember(solve):
    model = Solves(solve)
    found, steps = remembered(model), newton_steps_as_good(model)
    assert newton_steps_as_good(Solves(lambda xs, ys: newton(xs, ys, [7])[0])) == 7
    assert (steps > 20) == (solve is least_squares)
    share = 1 - 1 / 5  # what one look leaves of the error
    untold = {"few": 1 / 5, "all": 0} if solve is least_squares else {"few": share**4, "all": share**10}
    for many, due in untold.items():
        assert found[f"untold_after_{many}"] == pytest.approx(due, abs=0.05)
        assert found[f"newest_after_{many}"] == pytest.approx(0, abs=1e-4)
        assert (found[f"oldest_after_{many}"] < 1e-4) == (solve is least_squares)
        assert found[f"oldest_after_{many}"] < found[f"untold_after_{many}"] + 1e-4


def test_the_table_on_the_bench_carries_the_numbers_of_lesson_14():
    ask(SmallTable, 32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        across = jacobian(SmallTable(32), torch.randn(24, 32))[:16, :, 16:]
    assert torch.linalg.matrix_rank(across.flatten(0, 1).flatten(1), rtol=1e-6) == 32


class Knows(nn.Module):
    """Answers by a function of bits."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return nn.functional.one_hot(self.function(x.argmax(-1)), 2).float()


@pytest.mark.parametrize("task", ["labels", "sparse"])
def test_a_rule_has_no_flipped_label_right_and_a_list_of_examples_has_all(task):
    plans = [equally_long(task, network, 3, "course") for network in RIVALS]
    assert {plan.schedule.steps / 3 for plan in plans} == {recipe(f"sensitivity-{task}-transformer").schedule.steps}
    config = plans[0].config
    rule, (tokens, labels) = function_of(task, config.length), examples(task, config.length, 200)

    def heart(bits):
        return labels[(bits[:, None] == tokens).all(-1).int().argmax(-1)]

    measure = on_flipped(config, task, 200)
    assert measure(Knows(rule))[2:].tolist() == [1, 0]
    assert measure(Knows(heart))[[0, 3]].tolist() == [1, 1]
