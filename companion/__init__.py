"""The companion of the course *Transformers as Algorithms*: what its notebooks share, and what research can use.

`core` is what every topic stands on: decoder, hooks, training, checkpoints. `topics` has a room for each: its data,
model, baselines, probes, recipes, exercises. `lesson` makes a notebook a lesson. `workshop` is for instructors and
maintainers.

>>> from companion import Decoder, pick_device, recipe, regression, shipped, train
>>> xs, ys, _ = regression.data.prompts(batch=256, n=21, d=5)

Importing it loads nothing: the names below come when they are asked for.
"""

from importlib import import_module
from pkgutil import walk_packages
from typing import Any

__version__ = "0.4.0"
SCALES = ("smoke", "course", "paper")  # how large a run is: seconds; a laptop's CPU; the published sizes, for a GPU
PUBLIC = {
    # models and training
    "Decoder": "core.decoder",
    "DecoderConfig": "core.decoder",
    "Llama": "core.llama",
    "LlamaConfig": "core.llama",
    "LSTM": "core.lstm",
    "LSTMConfig": "core.lstm",
    "Hooked": "core.hooks",
    "Part": "core.circuits",
    "direct_attribution": "core.circuits",
    "interchange": "core.circuits",
    "ablation": "core.circuits",
    "wire": "core.circuits",
    "wires": "core.circuits",
    "Schedule": "core.training",
    "train": "core.training",
    "pick_device": "core.training",
    "fit_readouts": "core.readouts",
    # by name: what is trained, what is shipped, what was measured and published; others' models, by folder
    "recipe": "core.recipe",
    "recipes": "core.recipe",
    "shipped": "core.checkpoints",
    "measured_table": "core.measuring",
    "published_table": "lesson.claims",
    "LanguageModel": "pretrained.language",
    "published_regressor": "pretrained.regression",
    # a layer of one's own on the course's tasks, and the tasks alone
    "bench": "topics.layers.bench",
    "tasks": "core.task",
    "Examples": "core.task",
    # what makes a notebook a lesson
    "Claims": "lesson.claims",
    "Explorer": "lesson.widgets.explorer",
    "Predictions": "lesson.widgets.predictions",
    # the topics, with their samplers, models, baselines, probes and what is built by hand
    "addition": "topics",
    "attention": "topics",
    "bigrams": "topics",
    "calibration": "topics",
    "facts": "topics",
    "graphs": "topics",
    "language": "topics",
    "layers": "topics",
    "limits": "topics",
    "memories": "topics",
    "multihead": "topics",
    "regression": "topics",
    "sensitivity": "topics",
    "structures": "topics",
}
ROLES = ("data", "model", "by_hand", "baselines", "probes", "fourier")  # what of a topic comes with its name
__all__ = list(PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'companion' has no name {name!r}; it has {', '.join(__all__)}")
    if PUBLIC[name] != "topics":
        return getattr(import_module(f"companion.{PUBLIC[name]}"), name)
    topic = import_module(f"companion.topics.{name}")
    for found in walk_packages(topic.__path__, f"{topic.__name__}."):
        if found.name.split(".")[3] in ROLES:
            import_module(found.name)
    return topic


def __dir__() -> list[str]:
    return sorted(["SCALES", *PUBLIC, *(name for name in globals() if name.startswith("__"))])
