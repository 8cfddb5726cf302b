"""What the course's own layers reach on its tasks."""

import math

from companion.core.measuring import Row, measurement
from companion.core.task import tasks
from companion.topics.layers.known import KNOWN
from companion.topics.layers.runs import RATES, recipe_for, results


@measurement(
    "layers-bench",
    "what five layers reach on the course's tasks, from its floor to its ceiling",
    cells=[{"task": task, "layer": layer} for task in tasks() for layer in KNOWN],
    recipes=lambda scale: [recipe_for(task, KNOWN["softmax"], scale, RATES[0]) for task in tasks(scale)],
    tolerance=math.inf,
    because="a run that has just learned a task when its steps are over has not learned it on another machine",
)
def layers_bench(seed: int, scale: str, task: str, layer: str) -> list[Row]:
    """Train a layer on a task, with a learning rate of its own, and test it at every size."""
    return results(task, KNOWN[layer], seed, scale)
