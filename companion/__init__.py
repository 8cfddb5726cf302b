"""The companion of the course *Transformers as Algorithms*: what its notebooks share.

`core` is what every topic stands on: decoder, hooks, training, checkpoints. `topics` has a room for each: its data,
model, baselines, probes, recipes, exercises. `lesson` makes a notebook a lesson. `workshop` is for instructors and
maintainers.

>>> from companion import Decoder, recipe, shipped, train
>>> from companion.topics.regression import baselines, data, probes

Importing it loads nothing: the names below come when they are asked for.
"""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"
SCALES = ("smoke", "course", "paper")  # how large a run is: seconds; a laptop's CPU; the published sizes, for a GPU
PUBLIC = {
    "Claims": "lesson.claims",
    "Decoder": "core.decoder",
    "DecoderConfig": "core.decoder",
    "Explorer": "lesson.widgets.explorer",
    "Predictions": "lesson.widgets.predictions",
    "Schedule": "core.training",
    "measured_table": "core.measuring",
    "published_table": "lesson.claims",
    "recipe": "core.recipe",
    "shipped": "core.checkpoints",
    "train": "core.training",
}
__all__ = list(PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'companion' has no name {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"companion.{PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *PUBLIC])
