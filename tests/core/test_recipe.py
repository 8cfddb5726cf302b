"""Every recipe of every topic: all scales are there, it learns at smoke scale, a seed decides it."""

import inspect
from dataclasses import replace
from functools import partial

import pytest
import torch
from stopping import train_until
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from companion.core.recipe import SCALES, as_sampler, recipe, recipes, register
from companion.core.training import Schedule, batch_generator, seeded

# under a curriculum the task gets harder, and the loss with it
STEADY = [name for name in recipes() if not recipe(name, "smoke").schedule.curriculum]

TRAINED = {}  # at smoke scale many recipes are the same


def trained_as(plan):
    """What the first recipe gave that differs from this one in nothing but its name."""
    parts = plan.config, plan.schedule, plan.make, plan.sampler, plan.loss, plan.task
    if (key := "".join(map(decides, parts))) not in TRAINED:
        TRAINED[key] = trained(plan)
    return TRAINED[key]


def trained(plan):
    """The model, and its loss on the run's first batch before and after: a run stops where it is a tenth lower."""
    first, losses = plan.draw(plan.schedule.batch, batch_generator(1, 0, torch.device("cpu"))), []

    def on_first(model):
        with seeded(0), torch.no_grad():  # a loss may draw noise
            return plan.loss(model, *first).item()

    def learned(model):
        losses.append(on_first(model))
        return losses[-1] < 0.9 * losses[0]

    model = train_until(learned, plan, seed=1, every=10)
    return model, losses[0], on_first(model)


def decides(part):
    """What a part of a recipe is made of: of a function its code, and what that closes over."""
    if isinstance(part, partial):
        return decides(part.func) + repr((part.args, part.keywords))
    if not inspect.isfunction(part):
        return repr(part)
    part = inspect.unwrap(part)
    return repr(part.__code__) + "".join(decides(cell.cell_contents) for cell in part.__closure__ or ())


@pytest.mark.types_unchecked  # `tests/devices` checks those of each recipe in its first steps
@pytest.mark.parametrize("name", STEADY)
def test_every_recipe_learns_something_at_smoke_scale(name):
    model, before, after = trained_as(recipe(name, "smoke"))
    assert not model.training
    assert after < 0.995 * before, "equal if nothing is learned"


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_has_every_scale(name):
    assert tuple(recipes()[name]) == SCALES


class Float64(TorchDispatchMode):
    """Notes whether anything is computed in float64."""

    seen = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.seen |= any(each.dtype == torch.float64 for each in tree_leaves(result) if torch.is_tensor(each))
        return result


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_says_whether_it_needs_float64(name):
    chosen = recipe(name, "smoke")
    done = (0.5,) if chosen.schedule.curriculum else ()
    chosen.draw(2, torch.Generator().manual_seed(0), *done)  # what is drawn once and kept may be made in float64
    model = chosen.model()
    with Float64() as computed:
        chosen.loss(model, *chosen.draw(2, torch.Generator().manual_seed(0), *done)).backward()
    assert computed.seen == chosen.needs_float64


def test_a_seed_is_a_model():
    first, again, other = (recipe("regression-live", "smoke").model(seed).read_in.weight for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    "name, scale, message",
    [
        ("nothing", "course", "recipe = 'nothing'"),
        (
            "regresion-live",
            "course",
            "recipe = 'regresion-live': must be one of regression-live, .* that `python -m companion train` lists$",
        ),
        ("regression-live", "huge", "scale = 'huge'"),
    ],
)
def test_unknown_names_are_answered_with_what_there_is(name, scale, message):
    with pytest.raises(ValueError, match=message):
        recipe(name, scale)


def test_a_name_is_registered_once():
    assert "multihead-student" in recipes()
    sizes = dict.fromkeys(SCALES, (None, Schedule(1, 1, 1.0)))
    with pytest.raises(ValueError, match="name = 'multihead-student': there is a recipe of this name already"):
        register("multihead-student", "", **dict.fromkeys(("model", "sampler", "loss"), print), **sizes)


def test_a_draw_becomes_a_sampler_that_is_given_its_config_and_task_first():
    @as_sampler
    def all_that_is_given(config, batch, generator, done=1.0, *, asked=0):
        return config, batch, generator, done, asked

    assert all_that_is_given("config", asked=5)(2, "generator") == ("config", 2, "generator", 1.0, 5)
    assert all_that_is_given("config")(2, "generator", 0.5) == ("config", 2, "generator", 0.5, 0)


def test_a_variation_changes_what_it_names_alone():
    plan = recipe("graphs-standard-within", "smoke")
    varied = plan.with_(config=replace(plan.config, width=24), task=plan.task | {"many": 500}, steps=7)
    assert varied.model().config.width == 24
    assert varied.task == plan.task | {"many": 500}
    assert varied.schedule == replace(plan.schedule, steps=7)
    assert plan.model().config == plan.config  # and the recipe stays as it was
    graphs, answers = varied.draw(3, torch.Generator().manual_seed(0))
    assert graphs.shape == answers.shape == (3, 5, 5)
    with pytest.raises(TypeError, match="stepps"):
        plan.with_(stepps=7)
