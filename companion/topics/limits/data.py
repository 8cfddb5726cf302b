"""Words over a group, bits whose parity is asked for, and pointers to follow: what one pass through a network can or
cannot compute.

A symbol is a permutation of n points, written as the tensor of where each point goes; a word is read from left to
right, and its product is what all its symbols do, one after the other (Liu et al. 2023, arXiv:2210.10749). Parity is n
= 2; S3 and S5 are all permutations of 3 and of 5 points.
"""

from itertools import permutations

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from companion.core.arguments import as_generator, at_least


def words(batch: int, length: int, points: int, *, generator: torch.Generator | int) -> Int[Tensor, "batch length n"]:
    """Words of uniformly random permutations: entry [.., t, x] is where symbol t sends point x.

    ``batch``, ``length``, ``points``: how many words, symbols in each, and points that they permute.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1.
    """
    at_least(batch=(batch, 1), length=(length, 1), points=(points, 1))
    generator = as_generator(generator)
    return torch.rand(batch, length, points, generator=generator, device=generator.device).argsort(-1)


def coins(batch: int, length: int, p: float = 0.5, *, generator: torch.Generator | int) -> Int[Tensor, "batch length"]:
    """Bits that are 1 with probability ``p``.

    ``batch``, ``length``: how many sequences, and bits in each.
    ``p``: the probability of a 1.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1, or a p that is not in [0, 1].
    """
    at_least(batch=(batch, 1), length=(length, 1))
    if not 0 <= p <= 1:
        raise ValueError(f"p = {p!r}: must be 0 to 1")
    generator = as_generator(generator)
    return (torch.rand(batch, length, generator=generator, device=generator.device) < p).long()


def turns_and_flips(
    batch: int, length: int, n: int, *, generator: torch.Generator | int
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """Symbols of a group that is not commutative and yet solvable: x -> turn + flip x (mod n), with turns 0 to n - 1
    and flips 1 or -1. For n = 3 these are all of S3.

    ``batch``, ``length``: how many words, and symbols in each.
    ``n``: how many points the circle has.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1.
    """
    at_least(batch=(batch, 1), length=(length, 1), n=(n, 1))
    generator = as_generator(generator)
    where = {"generator": generator, "device": generator.device}
    turns = torch.randint(n, (batch, length), **where)
    return turns, 1 - 2 * torch.randint(2, (batch, length), **where)


def pointers(batch: int, n: int, *, generator: torch.Generator | int) -> Int[Tensor, "batch n"]:
    """Random permutations: place i points to place ``[i]``. Raises ValueError for a number below 1."""
    return words(batch, 1, n, generator=generator)[:, 0]


def rings(batch: int, n: int, *, generator: torch.Generator | int) -> Int[Tensor, "batch n"]:
    """Pointers that lead once round all places in a random order, so that less than n hops bring nobody back.

    ``batch``, ``n``: how many rings, and places on each.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1.
    """
    order = pointers(batch, n, generator=generator)
    return torch.empty_like(order).scatter_(1, order, order.roll(-1, 1))


def crowded_pointers(batch: int, n: int, *, generator: torch.Generator | int) -> Int[Tensor, "batch n"]:
    """Pointers drawn for every place by itself, so that several places may point to one: who points here is no one
    place. Raises ValueError for a number below 1.
    """
    at_least(batch=(batch, 1), n=(n, 1))
    generator = as_generator(generator)
    return torch.randint(n, (batch, n), generator=generator, device=generator.device)


def hops_asked(maps: Int[Tensor, "batch n"], k: Int[Tensor, "batch"] | int) -> Int[Tensor, "batch n+1"]:
    """Return what a network reads that is to hop k times along pointers: k as the token n + k - 1, and the n
    pointers.
    """
    first = torch.as_tensor(k, device=maps.device).expand(len(maps))[:, None] + maps.shape[1] - 1
    return torch.cat([first, maps], 1)


def unlike_neighbours(
    batch: int, length: int, letters: int, *, generator: torch.Generator | int
) -> Int[Tensor, "batch length"]:
    """Random letters of which no two that are alike stand side by side.

    ``batch``, ``length``, ``letters``: how many sequences, places in each, and different letters.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1, or fewer than two letters.
    """
    at_least(batch=(batch, 1), length=(length, 1), letters=(letters, 2))
    generator = as_generator(generator)
    onwards = torch.randint(1, letters, (batch, length), generator=generator, device=generator.device)
    onwards[:, 0] = torch.randint(letters, (batch,), generator=generator, device=generator.device)
    return onwards.cumsum(1) % letters


def found_pointers(letters: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    """Point every place to the one behind the last earlier place with its letter, as an induction head does; to the
    first place, which no hop ends at otherwise, if there is none.
    """
    places = torch.arange(letters.shape[1], device=letters.device)
    alike = (letters[:, :, None] == letters[:, None]) & (places < places[:, None])
    return (alike * (places + 1)).amax(-1)


def found_hops(
    letters: Int[Tensor, "batch length"], k: Int[Tensor, "batch"], alphabet: int
) -> tuple[Int[Tensor, "batch length+1"], Int[Tensor, "batch length+1"]]:
    """Return what a network reads that is to hop k times along `found_pointers`, and what it should say (Sanford, Hsu,
    Telgarsky 2024, arXiv:2402.09268, section 5).

    It reads k as the token ``alphabet`` + 1 + k, and the letters, 0 to ``alphabet`` - 1. It should say the letter where
    its hops end, ``alphabet`` where they lead nowhere, and anything, marked -1, at the first place.
    """
    pointers, place = found_pointers(letters), torch.arange(letters.shape[1], device=letters.device)
    place = place.expand_as(letters)
    for done in range(int(k.max())):
        place = torch.where((k > done)[:, None], pointers.gather(-1, place), place)
    ends = letters.gather(-1, place).masked_fill((place == 0) & (k > 0)[:, None], alphabet)
    return torch.cat([k[:, None] + alphabet + 1, letters], 1), F.pad(ends, (1, 0), value=-1)


def letters_and_states(
    batch: int, length: int, points: int, *, generator: torch.Generator | int
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """Words of two letters that generate all permutations of the points, and the state after each of them.

    Letter 0 exchanges the first two points, letter 1 moves every point to the next place. A state is the rank of a
    permutation among all of them, in the order of the alphabet: 0 to points! - 1.

    ``batch``, ``length``, ``points``: how many words, letters in each, and points that they permute.
    ``generator``: a seed, or a generator, on whose device the draw is made.

    Raises ValueError for a number below 1, or fewer than two points.
    """
    at_least(points=(points, 2))
    letters = coins(batch, length, generator=generator)
    every = list(permutations(range(points)))
    rank = {state: i for i, state in enumerate(every)}
    swap, turn = (1, 0, *range(2, points)), (*range(1, points), 0)
    after = torch.tensor([[rank[tuple(letter[x] for x in state)] for letter in (swap, turn)] for state in every])
    after = after.to(letters.device)  # (states, 2): first the state, then the letter
    state, states = torch.zeros_like(letters[:, 0]), []  # rank 0 is the identity
    for letter in letters.T:
        state = after[state, letter]
        states.append(state)
    return letters, torch.stack(states, 1)
