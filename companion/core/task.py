"""Tasks: what a layer is to carry over a sequence, with the best answer and the blind one, each computed.

A topic has them in ``task.py``: there ``recall_task(scale)`` makes "recall". Every position of a sequence shows what
can be had on the spot (a key and its value, an input and the label of the one before), so that what is asked for is
what a layer carries from one position to others. Nothing but evidence and questions stands in a sequence: there is no
filler that could overwrite what is asked for later.

>>> recall = tasks()["recall"]
>>> inputs, targets, counts = recall.draw(batch=64, generator=torch.Generator().manual_seed(0), size=16)
>>> for inputs, targets, counts in DataLoader(Examples(recall, batch=64), batch_size=None): ...
"""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import count
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from companion import SCALES
from companion.core.registry import rooms
from companion.core.training import batch_generator


class Problems(NamedTuple):
    """Inputs, the right answers, and which positions count. Inputs are tokens, several fields at a position, 0 for a
    field that is empty; or numbers. Answers are classes, or numbers.
    """

    inputs: Shaped[Tensor, "batch length features"]
    targets: Shaped[Tensor, "batch length"]
    counts: Bool[Tensor, "batch length"]


@dataclass(frozen=True)
class Task:
    """What is asked for, and what can be reached.

    ``axis``, ``sizes``: what grows, such as "pairs", and the sizes at which a model is tested.
    ``draw(batch, generator, size)``: `Problems` of that size, or, for None, of training.
    ``best(inputs)``: what the best algorithm answers from the inputs alone.
    ``blind(inputs)``: the best answers that look at their own position alone; 0 for numbers around 0, or for classes
        that are equally likely.
    ``others``: further algorithms, by name, of which the one nearest to a model can be asked for.
    ``outputs``: classes; 1 for an answer that is a number.
    ``vocabulary``: how many tokens there are, 0 among them; none where inputs are numbers.
    ``about``: the docstring of what makes it, for those who choose a task.
    """

    axis: str
    sizes: tuple[int, ...]
    draw: Callable[..., Problems]
    best: Callable[[Tensor], Tensor]
    blind: Callable[[Tensor], Tensor] = lambda inputs: torch.zeros_like(inputs[..., 0])
    others: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    _: KW_ONLY
    outputs: int
    vocabulary: int = 0
    about: str = ""

    def answers(self, outputs: Float[Tensor, "batch length outputs"]) -> Shaped[Tensor, "batch length"]:
        """Return what a model answers: the likeliest class, or the number."""
        return outputs[..., 0] if self.outputs == 1 else outputs.argmax(-1)

    def loss(self, outputs: Float[Tensor, "batch length outputs"], problems: Problems) -> Float[Tensor, ""]:
        """Compute the mean squared error, or cross-entropy, at the positions that count."""
        counted, right = outputs[problems.counts], problems.targets[problems.counts]
        return F.mse_loss(counted[:, 0], right) if self.outputs == 1 else F.cross_entropy(counted, right)

    def score(self, answers: Shaped[Tensor, "batch length"], problems: Problems) -> float:
        """Compute the share of right classes, or, of numbers, the share of their square that is explained, where it
        counts: 1 - sum (answer - target)^2 / sum target^2.
        """
        counted, right = answers[problems.counts], problems.targets[problems.counts]
        if self.outputs > 1:
            return (counted == right).double().mean().item()
        return 1 - ((counted - right).square().sum() / right.square().sum()).item()

    def nearest(self, answers: Shaped[Tensor, "batch length"], problems: Problems) -> str:
        """Return which of the algorithms answers most as a model does; "-" where there are none but best and blind."""
        if not self.others:
            return "-"
        known = {"best": self.best, "blind": self.blind, **self.others}
        return min(known, key=lambda name: (known[name](problems.inputs) - answers)[problems.counts].square().mean())


class Examples(IterableDataset):
    """Problems of a ``task`` without end, ``batch`` at a time: of one ``size``, or, for None, those of training; from a
    ``seed`` the same, whatever the number of a loader's workers.
    """

    def __init__(self, task: Task, batch: int, *, size: int | None = None, seed: int = 0):
        self.task, self.batch, self.size, self.seed = task, batch, size, seed

    def __iter__(self) -> Iterator[Problems]:
        worker = get_worker_info()
        for step in count(worker.id, worker.num_workers) if worker else count():
            yield self.task.draw(self.batch, batch_generator(self.seed, step, torch.device("cpu")), self.size)


def tasks(scale: str = "course") -> dict[str, Task]:
    """Return all tasks at a scale, by name, in the order of the topics. Raises ValueError for another scale."""
    if scale not in SCALES:
        raise ValueError(f"scale = {scale!r}: must be one of {', '.join(SCALES)}")
    made = {name: make for module in rooms("task") for name, make in vars(module).items() if name.endswith("_task")}
    return {name.removesuffix("_task"): replace(make(scale), about=_said(make)) for name, make in made.items()}


def _said(make: Callable[[str], Task]) -> str:
    """Return a docstring, which ``python -OO`` leaves in the source alone."""
    if make.__doc__:
        return make.__doc__
    [written] = ast.parse(inspect.getsource(make)).body
    return (isinstance(written, ast.FunctionDef) and ast.get_docstring(written)) or ""


def any_of(sizes: tuple[int, ...], generator: torch.Generator) -> int:
    """Draw one of the sizes, for a batch of training."""
    return sizes[int(torch.randint(len(sizes), (), generator=generator, device=generator.device))]
