"""What the course's own layers reach on its tasks, and what they and lesson 14's table reach at longer budgets."""

import math

import torch.nn.functional as F
from torch import Tensor, nn

from companion.core.measuring import Row, measurement
from companion.core.recipe import TIMES
from companion.core.task import tasks
from companion.topics.layers.exercises import associate
from companion.topics.layers.known import KNOWN
from companion.topics.layers.runs import RATES, recipe_for, results

LONGER = {"recall": (*TIMES, 32), "s3": TIMES}  # times the steps of the bench, by task


class SmallTable(nn.Module):
    """Linear attention of one head whose table has 4 x 8 numbers: of a key's 8 numbers it keeps 4, at length 1."""

    def __init__(self, width: int):
        super().__init__()
        self.keys, self.values, self.queries = (nn.Linear(width, 8) for _ in range(3))
        self.back = nn.Linear(8, width)

    def forward(self, x: Tensor) -> Tensor:
        """Read and write at every position of x (batch, time, width)."""
        keys, queries = (F.normalize(each(x)[..., :4], dim=-1) for each in (self.keys, self.queries))
        return self.back(associate.answer(keys, self.values(x), queries))


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


BUDGETED = KNOWN | {"table": SmallTable}


@measurement(
    "layers-budgets",
    "what the bench's layers and a table of 32 numbers reach at longer budgets, up to 16,000 batches of recall",
    cells=[
        {"task": task, "layer": layer, "times": times}
        for task, budgets in LONGER.items()
        for layer in BUDGETED
        for times in budgets
    ],
    recipes=lambda scale: [recipe_for(task, KNOWN["softmax"], scale, RATES[0]) for task in LONGER],
    tolerance=math.inf,
    because="as for the bench",
)
def layers_by_budget(seed: int, scale: str, task: str, layer: str, times: int) -> list[Row]:
    """Train a layer on a task for so many times the bench's steps, with the learning rate that it has there, and test
    it at every size.
    """
    chosen = BUDGETED[layer]
    steps = recipe_for(task, chosen, scale, RATES[0]).longer(times).schedule.steps
    return [{"steps": steps} | row for row in results(task, chosen, seed, scale, times=times)]


@measurement(
    "layers-written-twice",
    "what adding and erasing recall of keys that are written twice, of which the later value counts",
    cells=[{"layer": layer, "times": times} for times in TIMES for layer in ("linear", "delta")],
    recipes=lambda scale: [recipe_for("recall-twice", KNOWN["linear"], scale, RATES[0])],
    tolerance=math.inf,
    because="as for the bench",
)
def written_twice_by_budget(seed: int, scale: str, layer: str, times: int) -> list[Row]:
    """Train a layer for so many times the bench's steps, and test it at every size."""
    return layers_by_budget(seed, scale, "recall-twice", layer, times)
