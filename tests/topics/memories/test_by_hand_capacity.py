"""What lesson 05 shows about memories from explicit weights, at other sizes and with other seeds than its own."""

import numpy as np
import pytest
import torch

from companion.topics.memories.baselines import nearest
from companion.topics.memories.by_hand import (
    dense_update,
    gradient,
    mlp_logits,
    random_factors,
    read,
    softmax_update,
    write,
)
from companion.topics.memories.data import embeddings, sign_patterns, tokens, zipf
from companion.topics.memories.probes import accuracy, capacity, power_law, weighted_error


def generator(seed):
    return torch.Generator().manual_seed(777_000 + seed)


def slope(measure, sizes, start, repeats=3, **options):
    """The power law of the capacities at these sizes; measure(N, size, generator) is an accuracy."""
    found = [
        [
            capacity(lambda N, size=size, repeat=repeat: measure(N, size, generator(repeat)), start=start, **options)
            for repeat in range(repeats)
        ]
        for size in sizes
    ]
    return power_law(sizes, found).slope


def linear(N, d, g, answers=None, rank=None):
    f, runs = torch.arange(N) % (answers or N), (min(max(1, 1500 // N), 24),)
    U, V = embeddings(N, d, runs=runs, generator=g), embeddings(answers or N, d, runs=runs, generator=g)
    W = write(U, V, f)
    if rank is not None:
        left, right = random_factors(W, rank, generator=g)
        W = left.mT @ right
    return accuracy(read(W, U, V), f)


def test_noise_falls_as_one_over_the_root_of_d():
    widths, noise = [48, 192, 768], []
    for d in widths:
        pairs = [[embeddings(10, d, generator=generator(100 * d + 2 * k + side)) for side in (0, 1)] for k in range(12)]
        noise.append(
            [
                (read(write(U, V, torch.arange(10)), U, V) - torch.eye(10)).square().mean().sqrt().item()
                for U, V in pairs
            ]
        )
    assert power_law(widths, noise).slope == pytest.approx(-0.5, abs=0.08)


def test_a_maximal_step_keeps_its_size_and_a_lazy_one_does_not():
    widths, sizes = [100, 400, 900], {1.0: [], 0.5: []}
    for d in widths:
        g = generator(d)
        W0, U, V = embeddings(d, d, generator=g), embeddings(10, d, generator=g), embeddings(10, d, generator=g)
        assert (U @ W0.mT).norm(dim=1).mean().item() == pytest.approx(1, abs=0.1)
        for power, values in sizes.items():
            answers = V if power == 1.0 else d**0.5 * V
            G = -gradient(W0, U, answers, torch.eye(10) / 10)
            values.append((U @ G.mT / read(G, U, answers).diagonal().mean()).norm(dim=1).tolist())
    assert power_law(widths, sizes[1.0]).slope == pytest.approx(0, abs=0.1)
    assert power_law(widths, sizes[0.5]).slope == pytest.approx(-0.5, abs=0.1)


def test_capacity_is_d_squared_for_own_answers_and_d_for_shared_ones():
    assert slope(linear, [24, 48, 96, 144], 3) == pytest.approx(2.05, abs=0.25)
    assert slope(lambda N, d, g: linear(N, d, g, answers=2), [24, 96, 384], 3) == pytest.approx(1.03, abs=0.15)


def test_a_bottleneck_holds_about_its_rank_times_d():
    assert slope(lambda N, m, g: linear(N, 96, g, rank=m), [16, 40, 96], 3) == pytest.approx(1.0, abs=0.25)


def hermite_accuracy(N, m, g, degree):
    runs = (max(1, 400 // N),)
    U, V = (embeddings(N, 24, runs=runs, unit=True, generator=g) for _ in range(2))
    return accuracy(mlp_logits(U, V, torch.arange(N), m, degree, generator=g), torch.arange(N))


def test_an_mlp_holds_as_many_as_its_width_times_d_until_its_degree_is_too_low():
    assert slope(lambda N, m, g: hermite_accuracy(N, m, g, 3), [48, 160, 500], 4) == pytest.approx(1.0, abs=0.2)
    assert slope(lambda N, m, g: hermite_accuracy(N, m, g, 1), [250, 1000], 4) < 0.25


@pytest.mark.parametrize(("power", "sizes"), [(2, [48, 96, 192]), (3, [20, 36, 56]), (4, [14, 20, 36])])
def test_dense_memories_hold_d_to_the_power_less_one(power, sizes):
    def stable(N, d, g):
        draws = [sign_patterns(N, d, generator=g) for _ in range(max(1, 100 // N))]
        return float(np.mean([(dense_update(X, X[:80], power) == X[:80]).float().mean().item() for X in draws]))

    assert slope(stable, sizes, 3, level=0.98) == pytest.approx(power - 1, abs=0.35)


def test_hopfields_network_collapses():
    def overlap(load, d=2000):
        X = sign_patterns(round(load * d), d, generator=generator(5))
        states = X[:40]
        for _ in range(25):
            states = dense_update(X, states, 2)
        return (states * X[:40]).mean().item()

    assert overlap(0.12) > 0.97
    assert overlap(0.19) < 0.65


def test_lookups_hold_exponentially_many():
    d, N = 30, 50_000
    X, V = (embeddings(N, d, unit=True, generator=generator(k)) for k in (6, 7))
    right = torch.arange(100)
    queries = X[:100] + 0.5 / d**0.5 * torch.randn(100, d, generator=generator(8))
    assert (nearest(X, queries) == right).all()
    found = softmax_update(d**0.5 * X, d**0.5 * queries, 1.0)
    assert (torch.cosine_similarity(found, X[:100]) > 0.9).float().mean() > 0.98


def test_what_is_stored_of_zipf_data_decides_the_exponent():
    p, N, widths = zipf(600, 2.0), 600, [32, 80, 200, 500]
    f, errors = torch.arange(N) % 4, {"counts": [], "seen": [], "threshold": []}
    for d in widths:
        for name, found in errors.items():
            found.append([])
            for repeat in range(10):
                g = generator(20 * d + repeat)
                counts = tokens(p, 10_000, generator=g)[0].bincount(minlength=N).float()
                least = counts.sort(descending=True).values[d // 8 - 1].clamp_min(1) if name == "threshold" else 1
                q = counts if name == "counts" else (counts >= least).float()
                U, V = embeddings(N, d, generator=g), embeddings(4, d, generator=g)
                found[-1].append(weighted_error(read(write(U, V, f, q), U, V), f, p).item())
    assert power_law(widths, errors["counts"]).slope == pytest.approx(-0.25, abs=0.15)
    assert power_law(widths, errors["threshold"]).slope == pytest.approx(-1, abs=0.2)
    assert np.mean(errors["seen"][-1]) < 2 * (p * (1 - p) ** 10_000).sum().item()  # what nobody has seen
    assert np.mean(errors["seen"][0]) > np.mean(errors["counts"][0])
