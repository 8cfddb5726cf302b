"""Recurrences do what their symbols say, and a linear learner of worked steps needs the right ones."""

import pytest
import torch

from companion.topics.limits.baselines import LinearSteps, follow, running_products
from companion.topics.limits.data import coins, pointers, words


def test_products_are_those_of_matrices():
    drawn = words(6, 7, 4, generator=1)
    matrices = torch.nn.functional.one_hot(drawn, 4).double()  # row x has its 1 where x goes
    product = torch.eye(4, dtype=torch.float64).expand(6, 4, 4)
    for t, states in enumerate(running_products(drawn).unbind(1)):
        product = product @ matrices[:, t]
        assert torch.equal(product.argmax(-1), states)


def test_the_product_of_swaps_is_their_parity():
    bits = coins(20, 9, generator=2)
    swaps = torch.stack([bits, 1 - bits], -1)
    assert torch.equal(running_products(swaps)[..., 0], bits.cumsum(1) % 2)


def test_hops_go_round_a_cycle():
    cycle = (torch.arange(7) + 1)[None] % 7
    for k in (0, 1, 6, 7, 16):
        assert torch.equal(follow(cycle, k)[0], (torch.arange(7) + k) % 7)
    with pytest.raises(ValueError, match="k = -1"):
        follow(pointers(1, 4, generator=0), -1)


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
