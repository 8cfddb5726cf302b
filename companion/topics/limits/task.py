"""Pointers to follow, and words whose state is to be carried on, as tasks."""

from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from companion.core.task import Problems, Task, any_of
from companion.topics.limits.baselines import follow, running_products
from companion.topics.limits.data import coins, letters_and_states, rings

HOPS, PLACES = (1, 2, 3), 8
TRAINED = 8  # letters of a word in training; others are tested too
LENGTHS = (4, 8, 16, 32)
SENT = torch.tensor([[0, 1, 2], [0, 1, 2], [1, 0, 2], [1, 2, 0]])  # where each token sends each of three points


def hops_task(scale: str) -> Task:  # noqa: ARG001 - the same sizes at every scale
    """Follow 8 pointers, which lead once round all places, from each place."""
    return Task("hops", HOPS, _hops, _followed, _next, outputs=PLACES, vocabulary=1 + 2 * PLACES + len(HOPS))


def parity_task(scale: str) -> Task:  # noqa: ARG001
    """Say after every bit whether the ones so far are odd in number; 8 bits in training."""
    draw = partial(_words, _bits_and_parity)
    return Task("bits", LENGTHS, draw, lambda inputs: (inputs[..., 0] == 3).cumsum(1) % 2, outputs=2, vocabulary=4)


def s3_task(scale: str) -> Task:  # noqa: ARG001
    """Say after every letter how three points are permuted by all so far; 8 letters in training."""
    draw = partial(_words, partial(letters_and_states, points=3))
    return Task("letters", LENGTHS, draw, _permuted, outputs=6, vocabulary=4)


def _hops(batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
    """Positions (place, where it points, -), then questions (place, -, how many hops)."""
    maps, hops = rings(batch, PLACES, generator=generator), size or any_of(HOPS, generator)
    starts = torch.rand(maps.shape, generator=generator, device=maps.device).argsort(1)
    places, empty = torch.arange(PLACES, device=maps.device).expand_as(maps), torch.zeros_like(maps)
    told = torch.stack([1 + places, 1 + PLACES + maps, empty], -1)
    asked = torch.stack([1 + starts, empty, empty + 2 * PLACES + hops], -1)
    inputs, ends = torch.cat([told, asked], 1), follow(maps, hops).gather(1, starts)
    return Problems(inputs, torch.cat([maps, ends], 1), inputs[..., 2] > 0)


def _followed(inputs: Int[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    ends, maps, hops = inputs[..., 0] - 1, inputs[:, :PLACES, 1] - PLACES - 1, inputs[..., 2] - 2 * PLACES
    for hop in HOPS:
        ends = torch.where(hop <= hops, maps.gather(1, ends), ends)
    return ends


def _next(inputs: Int[Tensor, "batch length 3"]) -> Int[Tensor, "batch length"]:
    return inputs[..., 0] % PLACES  # any place but the one that is asked about


def _words(letters_and_states, batch: int, generator: torch.Generator, size: int | None = None) -> Problems:
    """A token that begins, then the letters: in training the state counts after every one of them, else the last."""
    drawn = letters_and_states(batch, size or TRAINED, generator=generator)
    letters, states = (F.pad(each, (1, 0), value=-1) for each in drawn)
    counts = torch.zeros_like(letters, dtype=torch.bool)
    counts[:, -1 if size else 1 :] = True
    return Problems(2 + letters[..., None], states.clamp_min(0), counts)


def _bits_and_parity(batch: int, length: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    bits = coins(batch, length, generator=generator)
    return bits, bits.cumsum(1) % 2


def _permuted(inputs: Int[Tensor, "batch length 1"]) -> Int[Tensor, "batch length"]:
    """The state is the permutation's rank, in the order of the alphabet."""
    first, second, third = running_products(SENT.to(inputs.device)[inputs[..., 0]]).unbind(-1)
    return 2 * first + (second > third)
