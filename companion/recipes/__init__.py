"""What is trained, at which scale. A recipe's name is a topic's, then what sets it apart: ``regression-isotropic``.

Scales: ``smoke`` (seconds: does it run at all), ``course`` (a laptop's CPU), ``paper`` (the published sizes, for a GPU).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import torch
from torch import Tensor, nn

from companion import checkpoints
from companion.checkpoints import Header
from companion.training import History, Schedule, train

SCALES = ("smoke", "course", "paper")


@dataclass(frozen=True)
class Recipe:
    """All that decides a training run but its seed."""

    name: str
    scale: str
    build: Callable[[], nn.Module]
    draw: Callable[[int, torch.Generator], tuple[Tensor, ...]]
    loss: Callable[..., Tensor]
    schedule: Schedule
    about: str

    def model(self, seed: int = 0) -> nn.Module:
        """A fresh model, initialised from ``seed`` without touching the global random state."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # the CPU's alone; torch.manual_seed would reach every GPU's
            return self.build()

    def train(self, *, seed: int = 0, device: str | None = None, resume: Path | None = None) -> tuple[nn.Module, History]:
        """Train a fresh model with a progress bar; returns it on the CPU, with what the run did."""
        model = self.model(seed)
        label = f"{self.name} ({self.scale})"
        history = train(model, self.draw, self.loss, self.schedule, seed=seed, device=device, resume=resume, label=label)
        return model.cpu(), history


def recipes() -> dict[str, dict[str, Recipe]]:
    """Every recipe by name and scale."""
    topics = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return {name: scales for topic in topics for name, scales in topic.RECIPES.items()}


def recipe(name: str, scale: str = "course") -> Recipe:
    """One recipe. Raises ValueError, naming what there is, for an unknown name or scale."""
    known = recipes()
    if name not in known:
        raise ValueError(f"recipe = {name!r}: must be one of {', '.join(sorted(known))}")
    if scale not in known[name]:
        raise ValueError(f"scale = {scale!r}: {name} has {', '.join(known[name])}")
    return known[name][scale]


def weights_path(name: str, scale: str = "course", seed: int = 0) -> Path:
    """Where the shipped checkpoint of a recipe lies (or would lie); several seeds are shipped where a lesson needs an interval."""
    return checkpoints.WEIGHTS / f"{name}-{scale}{f'-seed{seed}' if seed else ''}.safetensors"


def shipped(name: str, scale: str = "course", seed: int = 0) -> tuple[nn.Module, Header]:
    """The shipped model of a recipe and the header that says how it was made."""
    model = recipe(name, scale).model()
    return model, checkpoints.load(weights_path(name, scale, seed), model, recipe=name)
