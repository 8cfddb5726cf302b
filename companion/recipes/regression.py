"""Recipes of lessons 02 and 03: in-context linear regression.

Published setting (Garg et al. 2022, arXiv:2208.01066, appendix A; Fu et al. 2024, arXiv:2310.17086): d = 20, 40
examples, 12 layers, 8 heads, width 256, Adam 1e-4, batch 64, 500,001 steps with a curriculum. The ``paper`` scale keeps
the sizes, sees as many prompts in larger batches, and has no curriculum; ``course`` is what an hour of one CPU core
affords.
"""

from dataclasses import replace

from companion.models.regression import InContextRegressor, RegressorConfig
from companion.recipes import register
from companion.samplers.regression import prompts
from companion.training import Schedule

MEMORY_SWEEP = (4, 8, 16, 32, 64, 256)  # hidden units of each of two LSTM layers; 128 is regression-lstm


def mean_squared_error(model, xs, ys):
    """Mean over prompts and prefixes of (prediction - label)^2 / d, in the units of a label of variance d.

    ``xs`` (batch, n, d), ``ys`` (batch, n). So 1 is the loss of saying 0, as in Garg et al. (2022), arXiv:2208.01066.
    """
    scale = (model.module if hasattr(model, "module") else model).config.scale
    return ((model(xs, ys) - ys) / scale).square().mean() / xs.shape[-1]


def with_condition(kappa: float):
    """Prompts whose inputs have the condition number ``kappa``."""

    def sampler(config: RegressorConfig):
        def draw(batch, generator):
            return prompts(batch, config.n, config.d, kappa=kappa, generator=generator)[:2]

        return draw

    return sampler


def _in_context(
    name: str, about: str, course: tuple[RegressorConfig, Schedule], *, kappa: float = 1.0, layers=12, width=256
) -> None:
    """Register a recipe from what it is at the scale ``course``, and the ``layers`` and ``width`` of ``paper``."""

    def in_units(config: RegressorConfig) -> RegressorConfig:
        large = config.d // 2
        return replace(config, scale=((large * kappa + config.d - large) / config.d) ** 0.5)

    config, schedule = course
    # Fifty steps are too few for a deep LSTM to leave its plateau.
    depth, lr = (1, 1e-2) if config.mixer == "lstm" else (4, 2e-3)
    register(
        name,
        about,
        model=InContextRegressor,
        sampler=with_condition(kappa),
        loss=mean_squared_error,
        smoke=(
            in_units(RegressorConfig(d=3, n=10, width=32, layers=depth, heads=2, mixer=config.mixer)),
            Schedule(steps=50, batch=32, lr=lr),
        ),
        course=(in_units(config), schedule),
        paper=(
            in_units(RegressorConfig(d=20, n=41, width=width, layers=layers, heads=8, mixer=config.mixer)),
            Schedule(31_250, batch=1024, lr=4e-4, warmup=1000),
        ),
    )


def _lstm(width: int, layers: int, steps: int, lr: float = 4e-3) -> tuple[RegressorConfig, Schedule]:
    return RegressorConfig(d=5, n=11, width=width, layers=layers, heads=1, mixer="lstm"), Schedule(
        steps, batch=64, lr=lr
    )


_in_context(
    "regression-isotropic",
    "8 layers on isotropic prompts (lesson 02)",
    (RegressorConfig(d=10, n=31, width=64, layers=8, heads=4), Schedule(steps=16_000, batch=64, lr=1.2e-3)),
)
_in_context(
    "regression-ill-conditioned",
    "8 layers on prompts with condition number 100 (lesson 02)",
    (RegressorConfig(d=10, n=31, width=64, layers=8, heads=4), Schedule(steps=16_000, batch=64, lr=1.2e-3)),
    kappa=100.0,
)
_in_context(
    "regression-live",
    "4 layers that the learner trains in half a minute (lesson 02)",
    (RegressorConfig(d=3, n=10, width=64, layers=4, heads=4), Schedule(steps=1000, batch=64, lr=2e-3)),
)
_in_context(
    "regression-transformer",
    "6 layers, the contender of the LSTM (lesson 03)",
    (RegressorConfig(d=5, n=11, width=64, layers=6, heads=4), Schedule(steps=4500, batch=64, lr=1e-3)),
)
_in_context("regression-lstm", "2 layers of an LSTM (lesson 03)", _lstm(128, 2, 4000), layers=10)
_in_context("regression-lstm-deep", "4 layers of an LSTM (lesson 03)", _lstm(128, 4, 5000, lr=2e-3), layers=10)
_in_context("regression-lstm-live", "an LSTM that the learner trains (lesson 03)", _lstm(128, 2, 1000), layers=10)
_in_context(
    "regression-delta",
    "6 layers with the delta rule for attention (lesson 03)",
    (
        RegressorConfig(d=5, n=11, width=64, layers=6, heads=4, mixer="delta"),
        Schedule(steps=4000, batch=64, lr=2e-3),
    ),
)
_in_context(
    "regression-delta-small",
    "the delta rule with 512 numbers of memory, as an LSTM of 2 x 128 has (lesson 03)",
    (
        RegressorConfig(d=5, n=11, width=32, layers=2, heads=4, mixer="delta"),
        Schedule(steps=4000, batch=64, lr=3e-3),
    ),
)
for _width in MEMORY_SWEEP:
    _in_context(
        f"regression-lstm-{_width}",
        f"2 layers of {_width} hidden units: one point of the memory sweep (lesson 03)",
        _lstm(_width, 2, 4000),
        layers=2,
        width=2 * _width,
    )
