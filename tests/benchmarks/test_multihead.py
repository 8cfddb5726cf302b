"""Learning attention: seconds against d, k, m and n, beside a plain fit of every tuple of the net, in the same run.

``pytest tests/benchmarks/test_multihead.py --benchmark-enable -n0`` prints them; no test asserts a time.
"""

import itertools

import pytest
import torch

from companion.topics.multihead import baselines as algorithm
from companion.topics.multihead.data import sequences, teacher


def best_tuple_by_lstsq(X, Y, hull, points, heads):
    """The plain version of `best_tuple`: a least squares fit for each tuple."""
    best = (float("inf"), None)
    for chosen in itertools.combinations(range(len(points)), heads):
        phi = algorithm.features(X, hull.at(points[list(chosen)])).flatten(1, 2).permute(1, 0, 2).flatten(1)
        left = Y.flatten(0, 1) - phi @ torch.linalg.lstsq(phi, Y.flatten(0, 1)).solution
        best = min(best, ((left.square().sum() / Y.square().sum()).item(), chosen))
    return best


@pytest.mark.parametrize(
    ("d", "k", "heads", "n"),
    [(12, 2, 2, 20_000), (12, 2, 2, 100_000), (12, 3, 2, 20_000), (16, 2, 2, 20_000), (12, 2, 3, 200_000)],
)
def test_learning(benchmark, d, k, heads, n):
    if not benchmark.enabled and n > 20_000:
        pytest.skip("the larger sizes are for a benchmark's run")
    layer, X = teacher(d, heads, generator=1), sequences(n, k, d, generator=2)
    Y = layer(X)
    report = benchmark.pedantic(algorithm.learn, (X, Y), {"heads": heads}, rounds=3 if benchmark.enabled else 1)
    assert report.loss < 1e-2


def test_one_gram_matrix_for_all_tuples(benchmark, ratio):
    layer, X = teacher(12, 2, generator=1), sequences(4000, 2, 12, generator=2)
    Y = layer(X)
    hull = algorithm.Hull(
        layer.thetas.mean(0), (layer.thetas[1] - layer.thetas[0])[None] / (layer.thetas[1] - layer.thetas[0]).norm()
    )
    points = torch.linspace(-3, 3, 41 if benchmark.enabled else 7, dtype=torch.float64)[:, None]
    (found, loss, _), (plain, chosen) = ratio(
        "best tuple",
        lambda: algorithm.best_tuple(X, Y, hull, points, 2),
        lambda: best_tuple_by_lstsq(X, Y, hull, points, 2),
    )
    assert loss == pytest.approx(plain, rel=1e-3)
    assert torch.equal(found, points[list(chosen)])
