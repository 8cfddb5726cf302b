"""Trigger bigrams as a task: what follows a trigger is the sequence's own, and is asked for where it has been seen."""

import torch

from companion.core.task import Problems, Task, any_of
from companion.topics.bigrams.baselines import follower
from companion.topics.bigrams.data import Bigrams, trigger_sequences

LENGTHS = {"smoke": (16,), "course": (16, 32), "paper": (64, 128, 256)}


def bigrams_task(scale: str) -> Task:
    """Continue a text of 65 characters, five of which have successors that are new in every sequence."""
    table, lengths = Bigrams.shakespeare(), LENGTHS[scale]
    N = table.N

    def draw(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
        drawn = trigger_sequences(batch, size or any_of(lengths, generator), table, generator=generator)
        here = 1 + drawn.tokens[:, :-1]
        before = here.roll(1, 1)
        before[:, 0] = 0
        return Problems(torch.stack([before, here], -1), drawn.tokens[:, 1:], drawn.known)

    return Task("length", lengths, draw, lambda inputs: follower(inputs[..., 1] - 1), outputs=N, vocabulary=1 + N)
