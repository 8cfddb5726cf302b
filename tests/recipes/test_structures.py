"""The shipped sketch says what lesson 08 says of it."""

import pytest
import torch

from companion.baselines.sketches import count_min, count_sketch
from companion.recipes import recipe, shipped
from companion.recipes.structures import error_per_arrival
from companion.samplers.structures import counts, zipf_streams


def error(estimates, true):
    """Mean over arrivals of |estimate - count|."""
    return ((estimates - true).abs() * true).sum().item() / true.sum().item()


def test_the_error_is_a_mean_over_arrivals():
    plan = recipe("structures-stream", "smoke")
    model = plan.model(seed=1)
    stream, true = plan.draw(5, torch.Generator().manual_seed(1))
    estimates = model(stream)
    each = [(estimates[row, item] - true[row, item]).abs() for row in range(5) for item in stream[row]]
    torch.testing.assert_close(error_per_arrival(model, stream, true), sum(each) / len(each))


@pytest.mark.parametrize("trained", range(3))
def test_the_shipped_sketch_beats_the_classical_ones_at_equal_memory(trained):
    model, _ = shipped("structures-stream", seed=trained)
    stream = zipf_streams(300, 100, 100, generator=50_000 + trained)
    true = counts(stream, 100)
    with torch.no_grad():
        learned = error(model(stream), true)
    assert learned < 0.72
    for rows in (1, 2, 4, 8):
        assert learned < 0.6 * error(count_min(stream, 100, 32, rows=rows, conservative=True, generator=1), true)
        assert learned < 0.4 * error(count_sketch(stream, 100, 32, rows=rows, generator=1), true)


def test_learned_cells_are_shared_more_evenly_than_random_ones_and_better():
    stream = zipf_streams(300, 100, 100, generator=60_000)
    true = counts(stream, 100)
    (learned, _), (frozen, _) = shipped("structures-stream"), shipped("structures-stream-frozen")
    load = [model.places.argmax(-1).flatten().bincount(minlength=32).float().std() for model in (learned, frozen)]
    assert load[0] < 0.6 * load[1]
    with torch.no_grad():
        assert error(learned(stream), true) < 0.9 * error(frozen(stream), true)


@pytest.mark.parametrize("trained", range(3))
def test_the_shipped_sketch_updates_conservatively_and_by_less_than_one(trained):
    model, _ = shipped("structures-stream", seed=trained)
    least, above = torch.meshgrid(torch.linspace(0, 3, 7), torch.linspace(1, 6, 11), indexing="ij")  # heavier items: each seed its own way
    with torch.no_grad():
        one = model.added(torch.stack([least, least + above], -1))
        other = model.added(torch.stack([least + above, least], -1))
    lower, higher = torch.stack([one[..., 0], other[..., 1]]), torch.stack([one[..., 1], other[..., 0]])
    assert higher.mean() < 0.03
    assert 0.4 < lower.mean() < 0.9
