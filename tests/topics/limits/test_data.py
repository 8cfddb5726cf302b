"""Words, coins and pointers are what they say, groups multiply as they should, and bad sizes are named."""

import math

import pytest
import torch
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


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_symbol_is_a_permutation_and_every_one_comes(n):
    drawn = words(400 * n, 3, n, generator=1)
    assert torch.equal(drawn.sort(-1).values, torch.arange(n).expand_as(drawn))
    assert len(drawn.flatten(0, 1).unique(dim=0)) == math.factorial(n)


def test_coins_fall_as_often_as_told():
    assert coins(4000, 10, 0.2, generator=1).double().mean().item() == pytest.approx(0.2, abs=0.01)
    assert coins(5, 7, 1.0, generator=1).all() and not coins(5, 7, 0.0, generator=1).any()


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
    if n == 5:
        assert len(maps.unique(dim=0)) == 24  # (n - 1)! rings, all of them


def test_crowded_pointers_are_uniform_and_meet():
    drawn = crowded_pointers(4000, 4, generator=2)
    assert drawn.flatten().bincount().double().div(16_000).tolist() == pytest.approx([0.25] * 4, abs=0.02)
    ringed = (drawn.sort(1).values == torch.arange(4)).all(1).double().mean().item()
    assert ringed == pytest.approx(24 / 256, abs=0.02)  # few are permutations
    with pytest.raises(ValueError, match="batch"):
        crowded_pointers(0, 4, generator=0)


def test_hops_asked_are_a_token_before_the_pointers():
    maps = rings(3, 4, generator=1)
    assert torch.equal(hops_asked(maps, torch.tensor([1, 2, 6])), torch.cat([torch.tensor([[4], [5], [9]]), maps], 1))
    assert torch.equal(hops_asked(maps, 2)[:, 0], torch.full((3,), 5))


def test_no_two_neighbours_are_alike_and_all_others_come():
    drawn = unlike_neighbours(4000, 3, 4, generator=1)
    assert (drawn[:, 1:] != drawn[:, :-1]).all()
    assert len(drawn.unique(dim=0)) == 4 * 3 * 3
    assert drawn[:, 0].bincount().double().div(4000).tolist() == pytest.approx([0.25] * 4, abs=0.03)


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


def test_pointers_are_permutations():
    drawn = pointers(50, 9, generator=3)
    assert torch.equal(drawn.sort(1).values, torch.arange(9).expand(50, 9))


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
