"""Trigger bigrams as a task: what follows a trigger is the sequence's own, and is asked for where it has been seen."""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task, any_of, task
from companion.topics.bigrams.data import Bigrams, trigger_sequences

LENGTHS = {"smoke": (16,), "course": (16, 32), "paper": (64, 128, 256)}


@task
def bigrams_task(scale: str) -> Task:
    """Make the task, over the 65 characters of the tiny Shakespeare text, with its 5 most frequent as triggers."""
    table, lengths = Bigrams.shakespeare(), LENGTHS[scale]

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        drawn = trigger_sequences(batch, size or any_of(lengths, generator), table, generator=generator)
        here = 1 + drawn.tokens[:, :-1]
        before = here.roll(1, 1)
        before[:, 0] = 0
        return Problems(torch.stack([before, here], -1), drawn.tokens[:, 1:], drawn.known)

    def best(inputs: Int[Tensor, "batch length 2"]) -> Int[Tensor, "batch length"]:
        before, here = inputs.unbind(-1)
        followed = ((before[:, None] == here[:, :, None]) * here[:, None]).tril()  # (batch, position, earlier one)
        last = (followed > 0).long() * torch.arange(1, len(here[0]) + 1, device=here.device)
        return followed.gather(-1, last.argmax(-1, keepdim=True))[..., 0].clamp_min(1) - 1

    return Task(
        "continue a text whose triggers have successors that are new in every sequence",
        "length",
        lengths,
        vocabulary=1 + table.N,
        features=2,
        outputs=table.N,
        draw=draw,
        best=best,
    )
