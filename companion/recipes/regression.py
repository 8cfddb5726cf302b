"""Recipes of lessons 02 and 03: in-context linear regression.

Published setting (Garg et al. 2022, arXiv:2208.01066, appendix A; Fu et al. 2024, arXiv:2310.17086): d = 20, 40 examples, 12 layers,
8 heads, width 256, Adam 1e-4, batch 64, 500,001 steps with a curriculum. The ``paper`` scale keeps the sizes, sees as many prompts in
larger batches, and has no curriculum; ``course`` is what an hour of one CPU core affords.
"""

from dataclasses import replace
from functools import partial

from companion.models.regression import InContextRegressor, RegressorConfig
from companion.recipes import Recipe
from companion.samplers.regression import prompts
from companion.training import Schedule

MEMORY_SWEEP = (4, 8, 16, 32, 64, 256)  # hidden units of each of two LSTM layers; 128 is regression-lstm


def mean_squared_error(model, xs, ys):
    """Mean over prefixes of (prediction - label)^2 / d, in the units of a label of variance d."""
    scale = (model.module if hasattr(model, "module") else model).config.scale
    return ((model(xs, ys) - ys) / scale).square().mean() / xs.shape[-1]


def _recipe(name: str, scale: str, config: RegressorConfig, schedule: Schedule, about: str, kappa: float = 1.0) -> Recipe:
    def draw(batch, generator):
        return prompts(batch, config.n, config.d, kappa=kappa, generator=generator)[:2]

    return Recipe(name, scale, partial(InContextRegressor, config), draw, mean_squared_error, schedule, about)


def _scales(
    name: str, about: str, course: tuple[RegressorConfig, Schedule], *, kappa: float = 1.0, layers: int = 12, width: int = 256
) -> dict[str, Recipe]:
    mixer = course[0].mixer
    depth, lr = (1, 1e-2) if mixer == "lstm" else (4, 2e-3)  # fifty steps are too few for a deep LSTM to leave its plateau
    smoke = RegressorConfig(d=3, n=10, width=32, layers=depth, heads=2, mixer=mixer), Schedule(steps=50, batch=32, lr=lr)
    paper = (
        RegressorConfig(d=20, n=41, width=width, layers=layers, heads=8, mixer=mixer),
        Schedule(31_250, batch=1024, lr=4e-4, warmup=1000),
    )
    sizes = {"smoke": smoke, "course": course, "paper": paper}
    recipes = {}
    for scale, (config, schedule) in sizes.items():
        large = config.d // 2
        mean_eigenvalue = (large * kappa + config.d - large) / config.d
        recipes[scale] = _recipe(name, scale, replace(config, scale=mean_eigenvalue**0.5), schedule, about, kappa)
    return recipes


def _lstm(width: int, layers: int, steps: int, lr: float = 4e-3) -> tuple[RegressorConfig, Schedule]:
    return RegressorConfig(d=5, n=11, width=width, layers=layers, heads=1, mixer="lstm"), Schedule(steps, batch=64, lr=lr)


RECIPES = {
    "regression-isotropic": _scales(
        "regression-isotropic",
        "8 layers on isotropic prompts (lesson 02)",
        (RegressorConfig(d=10, n=31, width=64, layers=8, heads=4), Schedule(steps=16_000, batch=64, lr=1.2e-3)),
    ),
    "regression-ill-conditioned": _scales(
        "regression-ill-conditioned",
        "8 layers on prompts with condition number 100 (lesson 02)",
        (RegressorConfig(d=10, n=31, width=64, layers=8, heads=4), Schedule(steps=16_000, batch=64, lr=1.2e-3)),
        kappa=100.0,
    ),
    "regression-live": _scales(
        "regression-live",
        "4 layers that the learner trains in a minute (lesson 02)",
        (RegressorConfig(d=3, n=10, width=64, layers=4, heads=4), Schedule(steps=1500, batch=64, lr=2e-3)),
    ),
    "regression-transformer": _scales(
        "regression-transformer",
        "6 layers, the contender of the LSTM (lesson 03)",
        (RegressorConfig(d=5, n=11, width=64, layers=6, heads=4), Schedule(steps=4500, batch=64, lr=1e-3)),
    ),
    "regression-lstm": _scales("regression-lstm", "2 layers of an LSTM (lesson 03)", _lstm(128, 2, 4000), layers=10),
    "regression-lstm-deep": _scales("regression-lstm-deep", "4 layers of an LSTM (lesson 03)", _lstm(128, 4, 5000, lr=2e-3), layers=10),
    "regression-lstm-live": _scales("regression-lstm-live", "an LSTM that the learner trains (lesson 03)", _lstm(128, 2, 1000), layers=10),
    "regression-delta": _scales(
        "regression-delta",
        "6 layers with the delta rule for attention (lesson 03)",
        (RegressorConfig(d=5, n=11, width=64, layers=6, heads=4, mixer="delta"), Schedule(steps=4000, batch=64, lr=2e-3)),
    ),
    "regression-delta-small": _scales(
        "regression-delta-small",
        "the delta rule with 512 numbers of memory, as an LSTM of 2 x 128 has (lesson 03)",
        (RegressorConfig(d=5, n=11, width=32, layers=2, heads=4, mixer="delta"), Schedule(steps=4000, batch=64, lr=3e-3)),
    ),
    **{
        f"regression-lstm-{width}": _scales(
            f"regression-lstm-{width}",
            f"2 layers of {width} hidden units: one point of the memory sweep (lesson 03)",
            _lstm(width, 2, 4000),
            layers=2,
            width=2 * width,
        )
        for width in MEMORY_SWEEP
    },
}
