"""What is trained, at which scale. A recipe's name is a topic's, then what sets it apart: ``regression-isotropic``.

Scales: ``smoke`` (seconds: does it run at all), ``course`` (a laptop's CPU), ``paper`` (the published sizes, for a
GPU). With ``COURSE_TIMES=3`` in the environment all is trained three times as long (`times`).
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from companion import SCALES
from companion.core.defaults import torch_defaults
from companion.core.registry import one_of_many, rooms
from companion.core.training import History, Schedule, pick_device, seeded, train

TIMES = (1, 3, 10)  # budgets: what is said of training is measured at so many times a recipe's steps
Draw = Callable[..., tuple[Tensor, ...]]
Size = tuple[Any, Schedule] | tuple[Any, Schedule, dict[str, Any]]


@dataclass(frozen=True)
class Recipe:
    """All that decides a training run but its seed; how its checkpoint is kept (``calibrate``, ``stored``);
    and whether it needs a device with float64.

    ``make(config)`` gives a fresh model and ``sampler(config, **task)`` what a batch is drawn with.
    """

    name: str
    scale: str
    about: str
    config: Any
    schedule: Schedule
    make: Callable[[Any], nn.Module]
    sampler: Callable[..., Draw]
    loss: Callable[..., Tensor]
    task: dict[str, Any] = field(default_factory=dict)
    calibrate: Callable[[nn.Module], object] | None = None
    stored: torch.dtype | None = None
    needs_float64: bool = False

    def model(self, seed: int = 0) -> nn.Module:
        """Make a fresh model, initialised from ``seed`` without touching the global random state."""
        with seeded(seed), torch_defaults(), torch.inference_mode(False):
            return self.make(self.config)

    @cached_property
    def draw(self) -> Draw:
        """Draw a batch: a function of (batch, generator), and of the share done where the schedule has a curriculum."""
        return self.sampler(self.config, **self.task)

    def with_(self, *, config: Any = None, task: dict[str, Any] | None = None, **schedule: Any) -> "Recipe":
        """Return a variation: another ``config``, another ``task``, other fields of the schedule (``steps=50``)."""
        return replace(
            self,
            config=self.config if config is None else config,
            task=self.task if task is None else task,
            schedule=replace(self.schedule, **schedule),
        )

    def longer(self, times: int) -> "Recipe":
        """Return the same training in so many times as many steps: a point of a curve over budgets.

        Each budget is a run of its own. A mark along one long run is no shorter budget, because the rate has not fallen
        there as it falls to 0 at the end of a run. A plateau with a short descent from each mark would save a fifth
        (budgets of 1, 3 and 10 cost 11 times the first, separate runs 14), but its first point is not what the lesson
        trains. It tells the same story a little earlier: excess errors of an LSTM after 100, 300 and 1,000 steps were
        .53, .30 and .17 by runs of their own, .45, .25 and .16 by a plateau with a descent over the last fifth.
        """
        return self.with_(steps=times * self.schedule.steps)

    def train(
        self,
        *,
        seed: int = 0,
        device: str | None = None,
        resume: str | Path | None = None,
        each: Callable[[nn.Module], Any] | None = None,
        every: int | Collection[int] = 1,
    ) -> tuple[nn.Module, History]:
        """Train a fresh model with a progress bar; return it, on the CPU, with what the run did. ``seed``,
        ``device``, ``resume``, ``each`` and ``every`` are those of `companion.core.training.train`.

        Raises ValueError for a device that is not there, or that has no float64 where this is needed.
        """
        pick_device(device, float64=self.needs_float64)
        model = self.model(seed)
        label = f"{self.name} ({self.scale})"
        with torch_defaults():
            history = train(
                model,
                self.draw,
                self.loss,
                self.schedule,
                seed=seed,
                device=device,
                resume=resume,
                label=label,
                each=each,
                every=every,
            )
        return model, history


def as_sampler(draw: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Draw]:
    """Return what `register` takes, ``sampler(config, **task)``, of a function that draws a batch,
    ``draw(config, batch, generator, **task)``, with ``done`` behind the generator where a schedule has ``curriculum``.
    """

    @wraps(draw)
    def sampler(config: Any, **task: Any) -> Draw:
        return partial(draw, config, **task)

    return sampler


_registered: dict[str, dict[str, Recipe]] = {}


def register(
    name: str,
    about: str,
    *,
    model: Callable[[Any], nn.Module],
    sampler: Callable[..., Draw],
    loss: Callable[..., Tensor],
    smoke: Size,
    course: Size,
    paper: Size,
    calibrate: Callable[[nn.Module], object] | None = None,
    stored: torch.dtype | None = None,
    needs_float64: bool = False,
) -> None:
    """Make a recipe known, at its three scales. Raises ValueError for a name that is taken.

    ``name``: the topic's, then what sets it apart.
    ``about``: one line for those who choose a recipe.
    ``model``: makes a fresh model from a config.
    ``sampler``: makes ``draw(batch, generator)`` from a config; for a schedule with ``curriculum``, ``draw(batch,
    generator, done)``.
    ``loss``: of the model and what was drawn.
    ``smoke``, ``course``, ``paper``: the config and the schedule at each scale, and, where the sampler asks for more,
    its keywords.
    ``calibrate``: runs a trained model on what its weights in int8 must still do well
    (`companion.core.rounding.fitted`).
    ``stored``: without ``calibrate``, what the checkpoint's weights are rounded to (`companion.core.rounding.compact`):
    ``torch.bfloat16``, ``torch.int8``, or None for all digits.
    ``needs_float64``: whether sampler or model compute in float64, which mps lacks.
    """
    if name in _registered:
        raise ValueError(f"name = {name!r}: there is a recipe of this name already")
    _registered[name] = {
        scale: Recipe(
            name, scale, about, config, schedule, model, sampler, loss, dict(*task), calibrate, stored, needs_float64
        )
        for scale, (config, schedule, *task) in zip(SCALES, (smoke, course, paper), strict=True)
    }


def recipes() -> dict[str, dict[str, Recipe]]:
    """Import every recipe, and return them by name and scale."""
    list(rooms("recipes"))
    return dict(_registered)


def recipe(name: str, scale: str = "course") -> Recipe:
    """Return one recipe; only its topic's, the first word of the name, are imported.

    Raises ValueError, naming what is like it, for an unknown name, or scale.
    """
    found = any(name in _registered for _ in rooms("recipes", name.partition("-")[0]))
    known = _registered if found else recipes()
    if name not in known:
        raise ValueError(f"recipe = {name!r}: must be one of {one_of_many(name, sorted(known), 'train')}")
    if scale not in known[name]:
        raise ValueError(f"scale = {scale!r}: must be one of {', '.join(known[name])}, which {name} has")
    chosen = known[name][scale]
    return chosen if times() == 1 else chosen.longer(times())


def times() -> int:
    """Return how many times a recipe's steps everything is trained: ``COURSE_TIMES`` in the environment, 1 unless set.
    Raises ValueError for anything but a whole number above 0.
    """
    times = os.environ.get("COURSE_TIMES", "1")
    if not times.isdecimal() or int(times) == 0:
        raise ValueError(f"COURSE_TIMES = {times!r}: must be a whole number above 0, such as 3")
    return int(times)


def kept_in(folder: Path) -> Path:
    """Return ``folder``, the package's for what was trained; where everything is trained longer, one in ``build/``."""
    return folder if times() == 1 else folder.parents[1] / f"build/{folder.name}-{times()}-times"
