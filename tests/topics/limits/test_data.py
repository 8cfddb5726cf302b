"""Words, coins and pointers are what they say, groups multiply as they should, and bad sizes are named."""

import math
from itertools import permutations, product

import pytest
import torch
from laws import laws
from refusals import refusals

from companion.topics.limits.baselines import running_products
from companion.topics.limits.data import (
    coins,
    crowded_pointers,
    found_hops,
    found_pointers,
    hops_asked,
    letters_and_states,
    pointers,
    rings,
    turns_and_flips,
    unlike_neighbours,
    words,
)


def states_law():
    """The law of three letters and of the ranks of what they do: letter 0 exchanges, 1 moves every point."""
    every = sorted(permutations(range(3)))
    for letters in product(range(2), repeat=3):
        state, ranks = (0, 1, 2), []
        for letter in letters:
            state = tuple(((1, 0, 2), (1, 2, 0))[letter][x] for x in state)
            ranks.append(every.index(state))
        yield *letters, *ranks


SYMBOLS, MANY = [*permutations(range(3))], 20_000
test_draws_follow_their_laws = laws(
    (lambda g: words(MANY, 2, 3, generator=g), [first + second for first, second in product(SYMBOLS, repeat=2)]),
    (lambda g: coins(MANY, 3, 0.2, generator=g), {b: 4.0 ** b.count(0) for b in product((0, 1), repeat=3)}),
    (lambda g: torch.cat(turns_and_flips(MANY, 2, 3, generator=g), 1), product(range(3), range(3), (-1, 1), (-1, 1))),
    (lambda g: pointers(MANY, 4, generator=g), permutations(range(4))),
    (
        lambda g: rings(MANY, 4, generator=g),
        [p for p in permutations(range(4)) if len({0, p[0], p[p[0]], p[p[p[0]]]}) == 4],
    ),
    (lambda g: crowded_pointers(MANY, 3, generator=g), product(range(3), repeat=3)),
    (
        lambda g: unlike_neighbours(MANY, 3, 4, generator=g),
        [(a, b, c) for a, b, c in product(range(4), repeat=3) if a != b != c],
    ),
    (lambda g: torch.cat(letters_and_states(MANY, 3, 3, generator=g), 1), states_law()),
)


@pytest.mark.parametrize("n", [3, 5])
def test_products_of_turns_and_flips_are_turns_and_flips(n):
    turns, flips = turns_and_flips(400, 6, n, generator=2)
    assert set(flips.unique().tolist()) == {-1, 1} and set(turns.unique().tolist()) == set(range(n))
    symbols = (turns[..., None] + flips[..., None] * torch.arange(n)) % n
    assert len(symbols.flatten(0, 1).unique(dim=0)) == 2 * n
    assert len(torch.cat([symbols, running_products(symbols)], 1).flatten(0, 1).unique(dim=0)) == 2 * n


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_a_ring_leads_home_after_all_places_and_not_before(n):
    maps, place = rings(200, n, generator=3), torch.arange(n).expand(200, n)
    for hop in range(1, n + 1):
        place = maps.gather(1, place)
        assert (place == torch.arange(n)).all() if hop == n else not (place == torch.arange(n)).any()


def test_hops_asked_are_a_token_before_the_pointers():
    maps = rings(3, 4, generator=1)
    assert torch.equal(hops_asked(maps, torch.tensor([1, 2, 6])), torch.cat([torch.tensor([[4], [5], [9]]), maps], 1))
    assert torch.equal(hops_asked(maps, 2)[:, 0], torch.full((3,), 5))


def test_hops_are_found_one_by_one_as_an_induction_head_finds_them():
    read, k = unlike_neighbours(60, 20, 4, generator=2), torch.arange(60) % 6
    tokens, ends = found_hops(read, k, 4)
    assert torch.equal(tokens, torch.cat([k[:, None] + 5, read], 1)) and (ends[:, 0] == -1).all()
    for letters, found, hops, said in zip(read.tolist(), found_pointers(read).tolist(), k, ends, strict=True):
        earlier = [[j for j in range(i) if letters[j] == letters[i]] for i in range(20)]
        assert found == [1 + each[-1] if each else 0 for each in earlier]
        for place, letter in enumerate(said[1:].tolist()):
            at = place
            for _ in range(hops):
                at = 1 + earlier[at][-1] if at is not None and earlier[at] else None
            assert letter == (4 if at is None else letters[at])


@pytest.mark.parametrize("points", [2, 3, 5])
def test_states_are_the_ranks_of_what_two_letters_have_done_and_all_of_them_come(points):
    letters, states = letters_and_states(40 * math.factorial(points), 30, points, generator=6)
    every = sorted(map(tuple, torch.cartesian_prod(*[torch.arange(points)] * points).tolist()))
    every = [state for state in every if len(set(state)) == points]
    swap, turn = [1, 0, *range(2, points)], [*range(1, points), 0]
    products = running_products(torch.tensor([swap, turn])[letters])
    assert torch.equal(products, torch.tensor(every)[states])
    assert len(states[:, -2:].unique()) == math.factorial(points)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: words(0, 2, 3, generator=0), "batch = 0"),
    (lambda: words(1, 0, 3, generator=0), "length = 0"),
    (lambda: words(1, 2, 0, generator=0), "points = 0"),
    (lambda: coins(1, 2, 1.5, generator=0), "p = 1.5: must be 0 to 1"),
    (lambda: coins(1, 0, generator=0), "length = 0"),
    (lambda: turns_and_flips(1, 1, 0, generator=0), "n = 0"),
    (lambda: letters_and_states(1, 1, 1, generator=0), "points = 1: must be at least 2"),
    (lambda: unlike_neighbours(1, 1, 1, generator=0), "letters = 1: must be at least 2"),
)
