"""In-context regression as a task: an example more at every position, and its label is asked for first."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.task import Problems, Task
from companion.topics.regression.baselines import gradient_descent, least_squares, newton, online_gradient_descent
from companion.topics.regression.data import prompts

STEPS = (1, 2, 4, 8)


def regression_task(scale: str) -> Task:
    """Predict the label of an input from examples of a linear map that is new in every sequence."""
    d = 20 if scale == "paper" else 5

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        xs, ys, _ = prompts(batch, 4 * d + 1, d, generator=generator)
        before = torch.cat([xs, ys[..., None]], -1).roll(1, 1)
        before[:, 0] = 0
        place = torch.arange(4 * d + 1, device=ys.device)
        counts = (place >= 0 if size is None else place == size).expand_as(ys)
        return Problems(torch.cat([before, xs], -1), ys, counts)

    def predictions(weights, inputs: Float[Tensor, "batch n features"]) -> Float[Tensor, "batch n"]:
        xs, ys = inputs[..., d + 1 :], inputs[..., d].roll(-1, 1)  # the last label is read by nobody
        return (weights(xs, ys) * xs).sum(-1)

    others = {"online gradient descent": online_gradient_descent}
    for k in STEPS:
        others[f"gradient descent, {k} steps"] = lambda xs, ys, k=k: gradient_descent(xs, ys, [k], lr=0.5 / d)[0]
        others[f"Newton, {k} steps"] = lambda xs, ys, k=k: newton(xs, ys, [k])[0]
    others = {name: partial(predictions, weights) for name, weights in others.items()}
    return Task("examples", (d, 2 * d, 4 * d), draw, partial(predictions, least_squares), outputs=1, others=others)
