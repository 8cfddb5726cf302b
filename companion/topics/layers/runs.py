"""One run of the bench: a layer in the course's decoder learns a task within a budget, and is tested.

A layer takes the place of attention in two blocks of `companion.core.decoder`; what it leaves of a block's 12 width^2
parameters is its MLP's. Every layer reads the same problems, as many of them, with a learning rate of its own.
Positions are not told, except where a task shows them.
"""

import math
from functools import cache

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from companion.core.decoder import Decoder, DecoderConfig
from companion.core.measuring import Row
from companion.core.recipe import Recipe
from companion.core.task import Problems, Task, tasks
from companion.core.training import Schedule
from companion.topics.layers.data import written_twice
from companion.topics.layers.known import Layer

DEPTH = 2
RATES = (1e-3, 3e-3, 1e-2)
BUDGETS = {  # width, steps, positions a step
    "smoke": (16, 10, 128),
    "course": (32, 500, 1024),
    "paper": (128, 20_000, 16384),
}
SHORTER = 4  # the runs that choose a learning rate have a fourth of the steps
HELD_OUT, TESTED = 10**15, 2 * 10**15  # seeds of problems that no run is trained on
MANY = {"smoke": 50, "course": 1000, "paper": 1000}  # problems of a test


class Solver(nn.Module):
    """A task's inputs as vectors, summed over fields; the decoder's blocks with a layer in the place of attention; and
    a linear map to the answers.
    """

    def __init__(self, task: Task, layer: Layer, width: int):
        super().__init__()
        mixers = [layer(width) for _ in range(DEPTH)]
        spent = sum(parameter.numel() for parameter in mixers[0].parameters())
        mlp = (12 * width**2 - spent) / (2 * width**2)
        features = task.draw(1, torch.Generator()).inputs.shape[-1]
        self.embed = nn.Embedding(task.vocabulary, width) if task.vocabulary else nn.Linear(features, width)
        self.decoder = Decoder(DecoderConfig(width, DEPTH, 1, 10**6, mlp=mlp, positions=False))
        for block, mixer in zip(self.decoder.blocks, mixers, strict=True):
            block.attention = mixer
        self.read_out = nn.Linear(width, task.outputs)

    def forward(self, inputs: Shaped[Tensor, "batch length features"]) -> Float[Tensor, "batch length outputs"]:
        """Answer at every position."""
        x = self.embed(inputs)
        return self.read_out(self.decoder(x if inputs.is_floating_point() else x.sum(-2)))


def task_named(name: str, scale: str) -> Task:
    """Return the task of that name; of "recall-twice", `written_twice`, which the bench leaves out."""
    known = tasks(scale)
    return (known | {"recall-twice": written_twice(known["recall"])})[name]


def recipe_for(task: str, layer: Layer, scale: str, lr: float) -> Recipe:
    """Return how ``layer`` is trained on ``task``, at a ``scale`` and with the learning rate ``lr``."""
    asked, (width, steps, positions) = task_named(task, scale), BUDGETS[scale]
    length = asked.draw(1, torch.Generator(), asked.sizes[len(asked.sizes) // 2]).inputs.shape[1]
    return Recipe(
        name=f"layers-{task}",
        scale=scale,
        about=asked.about,
        config={"sizes": asked.sizes, "width": width},  # what is measured, and with what
        schedule=Schedule(steps, positions // length, lr, warmup=50),
        make=lambda _: Solver(asked, layer, width),
        sampler=lambda _: asked.draw,
        loss=lambda model, *drawn: asked.loss(model(drawn[0]), Problems(*drawn)),
    )


@cache
def learning_rate(task: str, layer: Layer, scale: str) -> float:
    """Return that of the `RATES` with which a run of a fourth of the steps, from seed 0, leaves the least loss on
    problems that it was not trained on.
    """
    generator = torch.Generator().manual_seed(HELD_OUT)
    held_out = [task_named(task, scale).draw(64, generator) for _ in range(8)]

    def left(lr: float) -> float:
        chosen = recipe_for(task, layer, scale, lr)
        model, _ = chosen.with_(steps=max(1, chosen.schedule.steps // SHORTER)).train(device="cpu")
        with torch.no_grad():
            loss = sum(chosen.loss(model, *problems).item() for problems in held_out)
        return loss if math.isfinite(loss) else math.inf

    return min(RATES, key=left)


def results(task: str, layer: Layer, seed: int, scale: str, lr: float | None = None, *, times: int = 1) -> list[Row]:
    """Train a ``layer`` on a ``task`` at a ``scale``, from a ``seed`` of weights and problems, with the learning rate
    ``lr``, that of `learning_rate` unless told, for so many ``times`` the steps of the bench; return a row for each
    size, with the floor and the ceiling there.
    """
    asked, lr = task_named(task, scale), lr or learning_rate(task, layer, scale)
    model, _ = recipe_for(task, layer, scale, lr).longer(times).train(seed=seed, device="cpu")
    spent, rows = sum(parameter.numel() for parameter in model.parameters()), []
    for size in asked.sizes:
        problems = asked.draw(MANY[scale], torch.Generator().manual_seed(TESTED + size), size)
        with torch.no_grad():
            answers = asked.answers(model(problems.inputs))
        found = {"score": answers, "floor": asked.blind(problems.inputs), "ceiling": asked.best(problems.inputs)}
        scores = {name: asked.score(each, problems) for name, each in found.items()}
        nearest = asked.nearest(answers, problems)
        rows.append({"axis": asked.axis, "size": size, **scores, "nearest": nearest, "lr": lr, "parameters": spent})
    return rows
