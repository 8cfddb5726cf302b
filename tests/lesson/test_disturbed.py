"""Disturbed numbers: by one unit in the last place, by a seed, where they are drawn, and nowhere else."""

import math

import pytest
import torch
from torch import nn

from companion.lesson.disturbed import VARIABLE, disturbance, disturbed, given, one_unit_off

DRAWN = {
    "randn": lambda: torch.randn(1000),
    "randn of a generator": lambda: torch.randn(1000, generator=torch.Generator().manual_seed(3)),
    "rand": lambda: torch.rand(1000, dtype=torch.float64),
    "rand_like": lambda: torch.rand_like(torch.empty(1000)),
    "randn_like": lambda: torch.randn_like(torch.empty(1000)),
    "normal": lambda: torch.normal(0.0, 2.0, (1000,)),
    "normal_": lambda: torch.empty(1000).normal_(),
    "uniform_": lambda: torch.empty(1000).uniform_(-1, 1, generator=torch.Generator().manual_seed(3)),
    "exponential_": lambda: torch.empty(1000).exponential_(),
    "an initialiser": lambda: nn.init.kaiming_uniform_(torch.empty(30, 40)),
    "an initialiser that calls another": lambda: nn.init.xavier_normal_(torch.empty(30, 40)),
    "a plain initialiser": lambda: nn.init.normal_(torch.empty(30, 40), std=0.02),
    "of a parameter": lambda: nn.init.uniform_(nn.Parameter(torch.empty(30, 40))),
    "weights of nn.Linear": lambda: nn.Linear(30, 40).weight,
    "biases of nn.Linear": lambda: nn.Linear(40, 1000).bias,
    "nn.Embedding": lambda: nn.Embedding(30, 40).weight,
    "nn.LSTM": lambda: nn.LSTM(20, 20).weight_ih_l0,
}


def units(value, other):
    """How many units in the last place lie between two tensors, entry by entry."""
    whole = {torch.float16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}[value.dtype]
    assert torch.equal(value.sign(), other.sign())
    return other.abs().view(whole) - value.abs().view(whole)


def drawn(name, seed):
    with torch.random.fork_rng(devices=[]), disturbed(seed):
        torch.default_generator.manual_seed(7)
        return DRAWN[name]().detach()


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_is_off_by_exactly_one_unit(name):
    plain, once, other = (drawn(name, seed) for seed in (0, 1, 2))
    off = units(plain, once)
    assert set(off.unique().tolist()) <= {-1, 0, 1}
    assert (off == 0).double().mean() < 0.001, "0 alone, and what would become whole"
    assert 0.4 < (off == 1).double().mean() < 0.6
    assert torch.equal(once, drawn(name, 1)), "a seed says all"
    assert 0.4 < (once != other).double().mean() < 0.6


def test_nothing_is_disturbed_outside_and_the_generator_goes_on_as_it_would():
    torch.manual_seed(0)
    torch.randn(5)
    after = torch.randn(5)
    torch.manual_seed(0)
    with disturbed(1):
        torch.randn(5)
    assert torch.equal(torch.randn(5), after)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_whole_numbers_and_what_is_not_finite_stay(dtype):
    kept = torch.tensor([0, 1, -1, 2, 300, math.inf, -math.inf, math.nan], dtype=dtype)
    assert torch.equal(one_unit_off(kept, 1).nan_to_num(5), kept.nan_to_num(5))
    for other in (torch.arange(5), torch.tensor([True, False])):
        assert torch.equal(one_unit_off(other, 1), other)


def test_what_would_become_whole_stays():
    below = torch.tensor([1.0]).nextafter(torch.tensor([0.0]))
    off = torch.cat([one_unit_off(below, seed) for seed in range(1, 30)])
    assert set(units(below.expand_as(off), off).unique().tolist()) == {-1, 0}


def test_ties_copies_and_symmetries_are_kept():
    value = torch.randn(20, 20)
    symmetric = value + value.mT
    off = one_unit_off(torch.stack([symmetric, -symmetric]), 5)
    assert torch.equal(off[0], off[0].mT) and torch.equal(off[0], -off[1])
    assert torch.equal(one_unit_off(symmetric.mT[3:], 5), off[0][3:]), "wherever it stands"
    assert set(units(symmetric, off[0]).unique().tolist()) == {-1, 1}


def test_what_is_given_is_left_as_it_was_and_keeps_its_gradient():
    value = torch.randn(20, requires_grad=True)
    before = value.detach().clone()
    off = one_unit_off(value, 1)
    assert off.requires_grad and off.is_leaf
    assert torch.equal(value, before) and not torch.equal(off, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_shares_that_are_given_stay_and_whatever_is_no_tensor(dtype):
    shares = torch.tensor([13 / 20, 1 / 49, -2 / 3, 5 / 64, 17 / 3], dtype=dtype)
    measured = torch.randn(50, dtype=dtype, requires_grad=True)
    off = given(torch.cat([shares, measured]), 1)
    assert torch.equal(off[:5], shares)
    assert set(units(measured.detach(), off[5:].detach()).unique().tolist()) == {-1, 1}
    assert given(measured, 1).requires_grad
    assert given(measured, 0) is measured
    assert given(0.65, 1) == 0.65
    assert torch.equal(given(torch.arange(3), 1), torch.arange(3))


def test_the_environment_asks(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert disturbance() == 0
    monkeypatch.setenv(VARIABLE, "7")
    assert disturbance() == 7


def test_a_gradient_passes_what_an_answer_is_given():
    x = torch.tensor([0.1234567, 0.25, math.pi, math.inf, -0.7654321], requires_grad=True)
    moved = given(x.clone(), 1)
    assert torch.equal(moved.detach(), given(x.detach(), 1)) and not torch.equal(moved.detach(), x.detach())
    [gradient] = torch.autograd.grad((2 * moved).sum(), x)
    assert torch.equal(gradient, torch.full_like(x, 2.0))
