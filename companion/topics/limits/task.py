"""Pointers to follow, and words whose state is to be carried on, as tasks."""

from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task, any_of, task
from companion.topics.limits.data import coins, letters_and_states, rings

HOPS, PLACES = (1, 2, 3), 8
TRAINED = 8  # letters of a word in training; others are tested too
LENGTHS = (4, 8, 16, 32)
TURN = torch.tensor([[1, 0, 2], [1, 2, 0]])  # where the two letters send each of three points


@task
def hops_task(scale: str) -> Task:  # noqa: ARG001 - the same sizes at every scale
    """Make the task: 8 pointers, which lead once round all places, and every place to begin at."""
    return Task(
        "follow 8 pointers from each place, one, two or three times",
        "hops",
        HOPS,
        vocabulary=1 + 2 * PLACES + len(HOPS),
        features=3,
        outputs=PLACES,
        draw=_hops,
        best=_followed,
        blind=lambda inputs: inputs[..., 0] % PLACES,  # any place but the one that is asked about
    )


@task
def parity_task(scale: str) -> Task:  # noqa: ARG001
    """Make the task: whether the bits so far are odd in number, for words of 8 bits and, in tests, up to 32."""
    return Task(
        f"say after every bit whether the ones so far are odd in number; trained on {TRAINED} bits",
        "bits",
        LENGTHS,
        vocabulary=4,
        features=1,
        outputs=2,
        draw=partial(_words, _bits_and_parity),
        best=lambda inputs: (inputs[..., 0] == 3).cumsum(1) % 2,
    )


@task
def s3_task(scale: str) -> Task:  # noqa: ARG001
    """Make the task: the permutation of three points after each letter, for words as long as in `parity_task`."""
    return Task(
        f"say after every letter how three points are permuted by all so far; trained on {TRAINED} letters",
        "letters",
        LENGTHS,
        vocabulary=4,
        features=1,
        outputs=6,
        draw=partial(_words, partial(letters_and_states, points=3)),
        best=_permuted,
    )


def _hops(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
    """Positions (place, where it points, -), then questions (place, -, how many hops)."""
    maps, hops = rings(batch, PLACES, generator=generator), size or any_of(HOPS, generator)
    starts = torch.rand(maps.shape, generator=generator, device=maps.device).argsort(1)
    ends = starts
    for _ in range(hops):
        ends = maps.gather(1, ends)
    places, empty = torch.arange(PLACES, device=maps.device).expand_as(maps), torch.zeros_like(maps)
    told = torch.stack([1 + places, 1 + PLACES + maps, empty], -1)
    asked = torch.stack([1 + starts, empty, empty + 2 * PLACES + hops], -1)
    inputs = torch.cat([told, asked], 1)
    return Problems(inputs, torch.cat([maps, ends], 1), inputs[..., 2] > 0)


def _followed(inputs: Int[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    maps, hops = inputs[:, :PLACES, 1] - PLACES - 1, inputs[..., 2] - 2 * PLACES
    ends = inputs[..., 0] - 1
    for hop in HOPS:
        ends = torch.where(hop <= hops, maps.gather(1, ends), ends)
    return ends


def _bits_and_parity(batch: int, length: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    bits = coins(batch, length, generator=generator)
    return bits, bits.cumsum(1) % 2


def _words(letters_and_states, batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
    """A token that begins, then the letters: in training the state counts after every one of them, else the last."""
    drawn = letters_and_states(batch, size or TRAINED, generator=generator)
    letters, states = (F.pad(each, (1, 0), value=-1) for each in drawn)
    counts = torch.zeros_like(letters, dtype=torch.bool)
    counts[:, -1 if size else 1 :] = True
    return Problems(2 + letters[..., None], states.clamp_min(0), counts)


def _permuted(inputs: Int[Tensor, "batch length 1"]) -> Int[Tensor, "batch length"]:
    """Carry where each of three points is, letter by letter; a state is its rank, in the order of the alphabet."""
    points, ranks = torch.arange(3, device=inputs.device).expand(len(inputs), 3), []
    for letter in inputs[..., 0].T:
        turned = TURN.to(inputs.device)[(letter - 2).clamp_min(0)].gather(1, points)
        points = torch.where((letter > 1)[:, None], turned, points)
        ranks.append(2 * points[:, 0] + (points[:, 1] > points[:, 2]))
    return torch.stack(ranks, 1)
