"""Recurrences do what their symbols say, and a linear learner of worked steps needs the right ones."""

import pytest
import torch
from hypothesis.strategies import integers, lists
from laws import holds
from refusals import refusals

from companion.topics.limits.baselines import LinearSteps, follow, running_products
from companion.topics.limits.data import coins


@holds(maps=lists(lists(integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=6), k=integers(0, 9))
def test_products_and_hops_are_plain_loops(maps, k):
    """Of two words, each the other's reverse, whose symbols are these maps; and of each map alone."""
    batch = torch.tensor([maps, maps[::-1]])
    for word, states in zip(batch.tolist(), running_products(batch).tolist(), strict=True):
        points = range(4)
        for symbol, state in zip(word, states, strict=True):
            points = [symbol[x] for x in points]
            assert state == points
    for pointers, found in zip(maps, follow(batch[0], k).tolist(), strict=True):
        places = range(4)
        for _ in range(k):
            places = [pointers[x] for x in places]
        assert found == [*places]


test_hops_back_are_refused = refusals((lambda: follow(torch.zeros(1, 4).long(), -1), "k = -1"))


def worked(bits, k, *, ands):
    running, tokens = bits[:, 0], []
    for j in range(1, k):
        both, running = running & bits[:, j], running ^ bits[:, j]
        tokens += [both, running] if ands else [running]
    return torch.stack(tokens, 1)


@pytest.mark.parametrize("ands", [True, False])
def test_and_makes_parity_linear_and_nothing_else_does(ands):
    seen, fresh = coins(500, 12, generator=3), coins(1000, 12, generator=4)
    learner = LinearSteps(seen, worked(seen, 6, ands=ands))
    said = learner(fresh)
    assert said.shape == (1000, 10 if ands else 5)
    right = (said[:, -1] == fresh[:, :6].sum(1) % 2).double().mean()
    assert right > 0.99 if ands else 0.35 < right < 0.65


def test_a_step_reads_the_input_and_what_was_said_before_it_alone():
    seen = coins(50, 4, generator=5)
    learner = LinearSteps(seen, worked(seen, 3, ands=True))
    weights = (learner.weights * learner.earlier).detach()
    assert weights.shape == (4, 7)
    assert not weights[0, 4:].any() and not weights[1, 5:].any() and weights[3, :6].any()
