"""Recipes of lessons 02 and 03: in-context linear regression.

Published setting (Garg et al. 2022, arXiv:2208.01066, appendix A; Fu et al. 2024, arXiv:2310.17086): d = 20, 40
examples, 12 layers, 8 heads, width 256, inputs and labels as alternating tokens, Adam 1e-4, batch 64, 500,001 steps
with a curriculum. The ``paper`` scale is that, but for a rate that warms up and falls to zero (published: constant) and
the course's own decoder and LSTM; ``course`` is what an hour of one CPU core affords, in triplets (`RegressorConfig`).
"""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.core.checkpoints import shipped
from companion.core.recipe import as_sampler, register
from companion.core.training import Schedule
from companion.topics.regression.baselines import ridge_states
from companion.topics.regression.data import prompts
from companion.topics.regression.model import InContextRegressor, RegressorConfig, StateRegressor

BLOCK_MIXERS = ("lstm-block", "gated", "linear", "delta", "softmax")  # in the same blocks
INTERLEAVED = ("lstm-block", "linear", "delta")  # those of them that read alternating tokens, too
TEACHING = {"answers": 0.0, "half": 0.5, "state": 1.0}  # the share of the run in which the state is taught
TAUGHT_RIDGE = 0.1
FRESH = 10_000  # the seed of the prompts on which models are measured, unless said
MEMORY_SWEEP = (4, 8, 16, 32, 64, 256)  # hidden units of each of two LSTM layers; 128 is regression-lstm


def mean_squared_error(model, xs, ys):
    """Mean over prompts and prefixes of (prediction - label)^2 / d, in the units of a label of variance d.

    ``xs`` (batch, n, d), ``ys`` (batch, n). So 1 is the loss of saying 0, as in Garg et al. (2022), arXiv:2208.01066.
    """
    scale = (model.module if hasattr(model, "module") else model).config.scale
    return ((model(xs, ys) - ys) / scale).square().mean() / xs.shape[-1]


def growing(d: int, n: int, kappa: float = 1.0, over: float = 0.4):
    """The curriculum of Garg et al. (2022), appendix A, in short: prompts have ``d`` dimensions and ``n`` points at
    first, and grow step by step to the config's over the share ``over`` of the run (published: from 5 and 11, over
    6 %).

    ``d``, ``n``: where it starts.
    ``kappa``: the condition number of the inputs.
    ``over``: the share of the run after which prompts are whole.

    Dimensions to come are zeros in the inputs.
    """

    @as_sampler
    def sampler(config: RegressorConfig, batch, generator, done=1.0):
        share = min(1.0, done / over)
        now, points = (start + round(share * (end - start)) for start, end in ((d, config.d), (n, config.n)))
        xs, ys, _ = prompts(batch, points, now, kappa=kappa, generator=generator)
        return F.pad(xs, (0, config.d - now)), ys

    return sampler


def grown(config: RegressorConfig, start: str = "regression-isotropic") -> InContextRegressor:
    """A model of ``config`` that begins as the smaller shipped model ``start``, of the same width, and computes the
    same.

    Inputs of more dimensions come with fresh weights, more positions as copies of the last, and between the old blocks
    stand new ones, whose outputs are 0. On prompts whose further dimensions are zeros it gives the smaller one's
    predictions.
    """
    small, _ = shipped(start)
    model, before, d = InContextRegressor(config), small.config, small.config.d
    old = small.state_dict()
    into = {block * config.layers // before.layers: block for block in range(before.layers)}  # spread evenly
    with torch.no_grad():
        for block, room in enumerate(model.decoder.blocks):
            if block in into:
                room.load_state_dict(small.decoder.blocks[into[block]].state_dict())
            else:
                room.attention.out.weight.zero_()
                room.mlp[-1].weight.zero_()
        weight = model.read_in.weight
        for start_new, start_old, size in ((0, 0, d), (config.d, d, 1), (config.d + 1, d + 1, d)):
            weight[:, start_new : start_new + size] = old["read_in.weight"][:, start_old : start_old + size]
        model.read_in.bias.copy_(old["read_in.bias"])
        model.decoder.positions[: before.n] = old["decoder.positions"]
        model.decoder.positions[before.n :] = old["decoder.positions"][-1]
        model.decoder.norm.load_state_dict(small.decoder.norm.state_dict())
        model.read_out.load_state_dict(small.read_out.state_dict())
    return model


def state_first(share: float):
    """Prompts, and beside them whether the state is taught (1) or the answers (0): the state first, for ``share`` of
    the run.
    """

    @as_sampler
    def sampler(config: RegressorConfig, batch, generator, done):
        xs, ys, _ = prompts(batch, config.n, config.d, generator=generator)
        return xs, ys, torch.full((batch,), float(done < share), device=xs.device)

    return sampler


def state_loss(model, xs, ys, of_state):
    """The mean squared error of the state where it is taught, that of the answers (as in `mean_squared_error`) where
    not.

    The state to be is that of recursive least squares with a ridge of `TAUGHT_RIDGE`: its weights, and its P in units
    of the P that it starts from.

    ``model``: answers from a state that can be read.
    ``xs``, ``ys``: the prompts, (batch, n, d) and (batch, n).
    ``of_state``: (batch,), 1 where the state is taught and 0 where answers are; alike for the whole batch.
    """
    ws, matrices = model(xs, ys, states=True)
    if of_state[0] == 0:
        return ((ws * xs).sum(-1) - ys).square().mean() / xs.shape[-1]
    best, inverses = ridge_states(xs, ys, TAUGHT_RIDGE)
    return (ws - best).square().mean() + (matrices - TAUGHT_RIDGE * inverses).square().mean()


def fresh_prompts(model: InContextRegressor, seed: int = FRESH) -> tuple[Tensor, Tensor]:
    """The prompts on which `excess`, `state_error` and `resemblance` are measured: xs (2048, n, d) and ys (2048, n)."""
    return prompts(2048, model.config.n, model.config.d, generator=seed)[:2]


def on_fresh_prompts(model: InContextRegressor) -> Tensor:
    """What rounded weights must still do well: `fresh_prompts`."""
    return model(*fresh_prompts(model))


def _in_context(
    name: str,
    about: str,
    course: tuple[RegressorConfig, Schedule],
    *,
    kappa: float = 1.0,
    layers=12,
    width=256,
    calibrate: Callable[[InContextRegressor], object] | None = None,
    stored: torch.dtype | None = None,
) -> None:
    """Register a recipe from what it is at the scale ``course``, and the ``layers`` and ``width`` of ``paper``;
    ``calibrate`` and ``stored`` as for `register`.
    """

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
        sampler=growing(5, 11, kappa, over=0.06),  # whole prompts, but for a schedule with a curriculum
        loss=mean_squared_error,
        smoke=(
            in_units(replace(config, d=3, n=10, width=32, layers=depth, heads=2)),
            Schedule(steps=50, batch=32, lr=lr),
        ),
        course=(in_units(config), schedule),
        paper=(
            in_units(replace(config, d=20, n=41, width=width, layers=layers, heads=8, tokens="interleaved")),
            Schedule(500_001, batch=64, lr=1e-4, curriculum=True),
        ),
        calibrate=calibrate,
        stored=stored,
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
    "regression-valley",
    "6 layers on long, narrow valleys that can be drawn: d = 2, condition number 12 (lesson 02)",
    (RegressorConfig(d=2, n=13, width=32, layers=6, heads=2), Schedule(steps=7000, batch=64, lr=2e-3)),
    kappa=12.0,
    stored=torch.bfloat16,
)
_contender = RegressorConfig(d=5, n=11, width=64, layers=6, heads=4), Schedule(steps=4500, batch=64, lr=1e-3)
for _name, _about, (_config, _schedule), _layers in (
    ("transformer", "6 layers, the contender of the LSTM", _contender, 12),
    ("lstm", "2 layers of an LSTM", _lstm(128, 2, 4000), 10),
):
    _in_context(f"regression-{_name}", f"{_about} (lesson 03)", (_config, _schedule), layers=_layers, stored=torch.int8)
    _in_context(
        f"regression-{_name}-interleaved",
        f"{_about}, alternating tokens (lesson 03)",
        (replace(_config, tokens="interleaved"), _schedule),
        layers=_layers,
    )
_in_context(
    "regression-lstm-deep",
    "4 layers of an LSTM (lesson 03)",
    _lstm(128, 4, 5000, lr=2e-3),
    layers=10,
    stored=torch.int8,
)
_in_context("regression-lstm-live", "an LSTM that the learner trains (lesson 03)", _lstm(128, 2, 1000), layers=10)
_in_context(
    "regression-lstm-ten",
    "the LSTM at d = 10, with 20 examples (lesson 03)",
    (RegressorConfig(d=10, n=21, width=128, layers=2, heads=1, mixer="lstm"), Schedule(steps=4000, batch=64, lr=4e-3)),
    layers=10,
    calibrate=on_fresh_prompts,
)
_in_context(  # minutes of a GPU
    "regression-lstm-twenty",
    "the LSTM at d = 20, the published dimension, with 40 examples (lesson 03)",
    (
        RegressorConfig(d=20, n=41, width=256, layers=2, heads=1, mixer="lstm"),
        Schedule(steps=4000, batch=256, lr=2e-3, warmup=200),
    ),
    layers=10,
)
_in_context(
    "regression-delta",
    "6 layers with the delta rule for attention (lesson 03)",
    (RegressorConfig(d=5, n=11, width=64, layers=6, heads=4, mixer="delta"), Schedule(steps=4000, batch=64, lr=2e-3)),
    stored=torch.int8,
)
for _mixer, _name in (("delta", "the delta rule"), ("linear", "linear attention")):
    _in_context(
        f"regression-{_mixer}-small",
        f"{_name} with 512 numbers of memory, as an LSTM of 2 x 128 has (lesson 03)",
        (
            RegressorConfig(d=5, n=11, width=32, layers=2, heads=4, mixer=_mixer),
            Schedule(steps=4000, batch=64, lr=3e-3),
        ),
        stored=torch.bfloat16,
    )
for _width in MEMORY_SWEEP:
    _in_context(
        f"regression-lstm-{_width}",
        f"2 layers of {_width} hidden units: one point of the memory sweep (lesson 03)",
        _lstm(_width, 2, 4000),
        layers=2,
        width=2 * _width,
        stored=torch.int8,
    )

for _mixer in BLOCK_MIXERS:
    _block = RegressorConfig(d=5, n=11, width=32, layers=2, heads=4, mixer=_mixer)
    _in_context(
        f"regression-blocks-{_mixer}",
        f"{_mixer} in the same two blocks as the others (lesson 03)",
        (_block, Schedule(steps=1200, batch=64, lr=3e-3)),
    )
    if _mixer in INTERLEAVED:
        _in_context(
            f"regression-blocks-{_mixer}-interleaved",
            f"{_mixer} in the same two blocks, alternating tokens (lesson 03)",
            (replace(_block, tokens="interleaved"), Schedule(steps=1200, batch=64, lr=3e-3)),
        )
for _name, _share in TEACHING.items():
    _lstm_config, _schedule = _lstm(128, 2, 1500)
    _paper = replace(_lstm_config, d=20, n=41, width=256)
    register(
        f"regression-taught-{_name}",
        f"an LSTM that is taught the state of recursive least squares for {_share:.0%} of the run (lesson 03)",
        model=StateRegressor,
        sampler=state_first(_share),
        loss=state_loss,
        smoke=(
            RegressorConfig(d=3, n=10, width=32, layers=1, heads=1, mixer="lstm"),
            Schedule(steps=50, batch=32, lr=1e-2, curriculum=True),
        ),
        course=(_lstm_config, replace(_schedule, curriculum=True)),
        paper=(_paper, Schedule(31_250, batch=1024, lr=4e-4, warmup=1000, curriculum=True)),
    )
_large = RegressorConfig(d=20, n=41, width=64, layers=12, heads=4)
register(
    "regression-large",
    "the published size, d = 20 and 41 points, 12 layers of width 64, grown from regression-isotropic (lesson 02)",
    model=grown,
    sampler=growing(10, 31),
    loss=mean_squared_error,
    smoke=(
        RegressorConfig(d=12, n=33, width=64, layers=9, heads=4),
        Schedule(steps=4, batch=8, lr=1e-3, muon=True, curriculum=True),
    ),
    course=(_large, Schedule(steps=11_000, batch=64, lr=2e-3, muon=True, curriculum=True)),
    paper=(_large, Schedule(31_250, batch=1024, lr=2e-3, warmup=1000, muon=True, curriculum=True)),
    calibrate=on_fresh_prompts,
)
