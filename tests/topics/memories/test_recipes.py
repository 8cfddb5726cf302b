"""What training adds: an MLP holds what a matrix cannot; the optimiser decides which tokens are stored how strongly."""

import numpy as np
import pytest
import torch
from refusals import refusals
from stopping import train_until

from companion.core.recipe import recipe
from companion.topics.memories.by_hand import read, write
from companion.topics.memories.data import embeddings, zipf
from companion.topics.memories.probes import accuracy
from companion.topics.memories.recipes import converged_accuracy, optimise, trained_accuracy


def right(model):
    z = torch.arange(model.config.facts)
    with torch.no_grad():
        return accuracy(model(z), z)


@pytest.mark.weekly  # lesson 05 trains both each time that it is tested, with another seed
@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.types_unchecked
def test_an_mlp_holds_the_facts_that_are_too_many_for_a_matrix(seed):
    mlp = train_until(lambda model: right(model) > 0.97, recipe("memories-mlp"), seed=seed, device="cpu", every=50)
    assert right(mlp) > 0.97
    assert right(recipe("memories-linear").train(seed=seed, device="cpu")[0]) < 0.1


@pytest.mark.parametrize(("d", "N"), [(16, 50), (24, 90)])
def test_training_holds_more_than_one_step(d, N):
    U, V = (embeddings(N, d, runs=(5,), generator=seed) for seed in (7, 8))
    assert trained_accuracy(N, d, runs=5, seed=9) > 0.95
    assert accuracy(read(write(U, V, torch.arange(N)), U, V), torch.arange(N)) < 0.8


@pytest.mark.parametrize("seed", [0, 1])
def test_a_matrix_of_as_many_numbers_as_the_mlp_holds_most_facts_and_an_overfull_one_few(seed):
    assert converged_accuracy(1024, 90, seed=seed) > 0.5  # of ten seeds seven give 1, and three 0.65 to 0.77
    assert converged_accuracy(1024, 96, seed=seed) > 0.99
    assert converged_accuracy(1024, 64, seed=seed) < 0.3
    assert converged_accuracy(1024, 32, seed=seed) < 0.1


def strength_slope(strengths, p):
    """The power of the frequency that the mean strength of the thirty most frequent tokens goes with."""
    return np.polyfit(np.log(p[:30].numpy()), np.log(strengths.mean(0)[:30].numpy()), 1)[0]


@pytest.mark.parametrize("seed", [3, 4])
def test_the_optimiser_decides_what_is_stored(seed):
    p = zipf(60, 1.5)
    slow, fast = optimise(p, 120, lrs=[0.01, 100.0], seed=seed)
    assert strength_slope(slow, p) > 0.9
    assert strength_slope(fast, p) < 0.2
    once = optimise(p, 120, lrs=[1.0], batch=20_000, steps=1, seed=seed)
    assert strength_slope(once[0], p) == pytest.approx(1, abs=0.15)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: trained_accuracy(0, 4), "N = 0"),
    (lambda: trained_accuracy(4, 0), "d = 0"),
    (lambda: trained_accuracy(4, 4, runs=0), "runs = 0"),
    (lambda: trained_accuracy(4, 4, steps=0), "steps = 0"),
    (lambda: converged_accuracy(0, 4), "N = 0"),
    (lambda: converged_accuracy(4, 0), "d = 0"),
    (lambda: optimise(zipf(4, 2.0), 4, lrs=[]), "lrs = 0: must be positive"),
    (lambda: optimise(zipf(4, 2.0), 4, lrs=[-1.0]), "lrs = -1.0"),
    (lambda: optimise(zipf(4, 2.0), 0, lrs=[1.0]), "d = 0"),
    (lambda: optimise(zipf(4, 2.0), 4, lrs=[1.0], batch=0), "batch = 0"),
    (lambda: optimise(zipf(4, 2.0), 4, lrs=[1.0], steps=0), "steps = 0"),
    (lambda: optimise(zipf(4, 2.0), 4, lrs=[1.0], repeats=0), "repeats = 0"),
)
