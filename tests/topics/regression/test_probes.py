"""Readouts and similarities against scikit-learn and plain loops, and on cases with a known answer."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from refusals import refusals
from scipy.stats import linregress
from sklearn.linear_model import LinearRegression

from companion.core.readouts import apply_readouts, fit_readouts
from companion.topics.regression import baselines
from companion.topics.regression.data import prompts
from companion.topics.regression.model import InContextRegressor, RegressorConfig
from companion.topics.regression.probes import (
    best_match,
    errors_by_gap,
    errors_when_shifted,
    growth_rate,
    induced_weights,
    order_sensitivity,
    readout_predictor,
    similarity_of_errors,
)


def test_readouts_are_scikit_learns_least_squares():
    streams, targets = 1 + torch.randn(3, 40, 6, 5, dtype=torch.float64), torch.randn(40, 6, dtype=torch.float64)
    fresh = torch.randn(3, 7, 6, 5, dtype=torch.float64)
    said = apply_readouts(fit_readouts(streams, targets), fresh)
    for depth in range(3):
        fit = LinearRegression().fit(streams[depth].flatten(0, 1), targets.flatten())
        np.testing.assert_allclose(said[depth].flatten(), fit.predict(fresh[depth].flatten(0, 1)), atol=1e-9)


def test_a_direction_that_a_layer_does_not_use_gets_no_weight():
    streams = torch.randn(1, 50, 4, dtype=torch.float64)
    streams[..., 2] = 0
    assert fit_readouts(streams, streams[0, :, 0])[0].tolist() == pytest.approx([1, 0, 0, 0, 0], abs=1e-9)


def test_similarity_of_errors_is_the_mean_cosine_of_residuals():
    ys, a, b = torch.randn(5, 8), torch.randn(2, 5, 8), torch.randn(3, 5, 8)
    similarity = similarity_of_errors(a, b, ys)
    for i, j in np.ndindex(2, 3):
        cosines = []
        for prompt in range(5):
            u, v = (ys - a[i])[prompt, 1:].numpy(), (ys - b[j])[prompt, 1:].numpy()
            cosines.append(u @ v / np.linalg.norm(u) / np.linalg.norm(v))
        assert similarity[i, j].item() == pytest.approx(np.mean(cosines), abs=1e-6)


def test_an_algorithm_is_its_own_best_match():
    xs, ys, _ = prompts(32, 11, 5, dtype=torch.float64)
    steps = [0, 3, 6, 9]
    predictions = baselines.predict(baselines.newton(xs, ys, steps), xs)
    similarity = similarity_of_errors(predictions, predictions, ys)
    assert similarity.diagonal().tolist() == pytest.approx([1] * 4)
    assert best_match(similarity, steps).step == steps


def test_induced_weights_of_a_linear_predictor_are_its_weights():
    xs, ys, _ = prompts(6, 7, 3, dtype=torch.float64)

    def predictor(xs, ys):
        return baselines.predict(baselines.newton(xs, ys, [2, 5]), xs)

    expected = baselines.newton(xs, ys, [2, 5])
    induced = induced_weights(predictor, xs, ys)
    torch.testing.assert_close(induced, expected, rtol=0, atol=1e-9)


def test_induced_weights_are_the_same_in_pieces_and_after_some_prefixes():
    xs, ys, _ = prompts(5, 7, 3, dtype=torch.float64)

    def predictor(xs, ys):
        return baselines.predict(baselines.gradient_descent(xs, ys, [4], lr=0.05), xs)

    expected = induced_weights(predictor, xs, ys)
    found = induced_weights(predictor, xs, ys, after=[6, 2], chunk=2)
    torch.testing.assert_close(found, expected[:, :, [6, 2]], rtol=0, atol=1e-9)


def test_a_readout_predictor_has_a_row_for_each_layer():
    model = InContextRegressor(RegressorConfig(d=2, n=5, width=8, layers=2, heads=2))
    xs, ys, _ = prompts(16, 5, 2)
    readouts = fit_readouts(model.streams(xs, ys), ys)
    assert readout_predictor(model, readouts)(xs, ys).shape == (3, 16, 5)


def test_ties_are_reported():
    match = best_match(torch.tensor([[0.5, 0.9, 0.9003, 0.2]]), [1, 2, 4, 8])
    assert (match.step, match.ties) == ([4], [(2, 4)])


@pytest.mark.parametrize(
    "steps, linear, exponential",
    [([3, 6, 9, 12], 1, None), ([2, 8, 32, 128], None, 1), ([4, 16, 64, 256, 1024], None, 1)],
)
def test_growth_rate_tells_a_line_from_an_exponential(steps, linear, exponential):
    rate = growth_rate(layers := list(range(1, len(steps) + 1)), steps)
    lines = [linregress(layers, values) for values in (steps, np.log2(steps))]
    assert rate == pytest.approx([value for line in lines for value in (line.slope, line.rvalue**2)])
    if linear:
        assert rate.linear_r2 == pytest.approx(1) and rate.exponential_r2 < 0.98
    if exponential:
        assert rate.exponential_r2 == pytest.approx(1) and rate.linear_r2 < 0.9


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: induced_weights(lambda xs, ys: ys[None], *prompts(2, 4, 3)[:2], queries=2), "queries = 2: at least d = 3"),
    (
        lambda: induced_weights(lambda xs, ys: ys[None], *prompts(5, 7, 3)[:2], after=[7]),
        r"after = \[7\]: each must be at least 0 and at most n - 1 = 6",
    ),
    (lambda: best_match(torch.zeros(1, 4), [1, 2]), "steps: has 2 entries; must have 4, one for each column"),
    (lambda: growth_rate([1, 2], [1, 2]), "must be equally many, at least three"),
    (lambda: growth_rate([1, 2, 3], [0, 1, 2]), "must be equally many, at least three"),
    (lambda: growth_rate([1, 2, 3], [1, 2]), "must be equally many, at least three"),
)


def test_errors_by_gap_ask_for_each_example_again():
    xs, ys, _ = prompts(6, 4, 3, generator=5)

    def last_label_seen_for(asked_xs, asked_ys):
        """A predictor that looks an input up among the examples; nothing of the question's own label may reach it."""
        assert asked_xs.shape == (6, 5, 3)
        assert not asked_ys[:, -1].any()
        found = (asked_xs[:, :-1] == asked_xs[:, -1:]).all(-1)  # (batch, n)
        assert torch.equal(found.sum(-1), torch.ones(6, dtype=torch.long))
        seen.append(found.long().argmax(-1).unique().item())
        return (found * asked_ys[:, :-1]).sum(-1, keepdim=True).expand(-1, 5) + 3

    seen = []
    errors = errors_by_gap(last_label_seen_for, xs, ys)
    assert seen == [3, 2, 1, 0]
    torch.testing.assert_close(errors, torch.full((4, 6), 9 / 3))


def test_least_squares_forgets_nothing_and_online_gradient_descent_all_but_the_last():
    xs, ys, _ = prompts(256, 10, 5, generator=6)
    exact = errors_by_gap(lambda xs, ys: baselines.predict(baselines.least_squares(xs, ys), xs), xs, ys)
    online = errors_by_gap(
        lambda xs, ys: baselines.predict(baselines.online_gradient_descent(xs, ys), xs), xs, ys
    ).mean(1)
    assert exact.max() < 1e-8
    assert online[0] < 1e-10
    assert online[9] > online[3] > online[1] > 1e-3


@pytest.mark.parametrize(("n", "scale", "seed"), [(4, 1.0, 0), (7, 3.0, 5)])
def test_order_sensitivity_is_a_squared_difference_over_the_squared_labels(n, scale, seed):
    """Two orders of each prompt, as the probe's generator draws them, one prompt after the other in NumPy."""
    xs, ys, _ = prompts(6, n, 3, generator=8)
    xs, ys = scale * xs, 0.5 + 2 * scale * ys

    def running_sum(xs, ys):
        """Its last answer leans on the labels seen late, and not on the last one."""
        late = torch.cat([ys[:, :-1], torch.zeros_like(ys[:, :1])], dim=1) * torch.arange(ys.shape[1])
        return (late * xs.sum(-1)).cumsum(1)

    generator = torch.Generator().manual_seed(seed)
    orders = torch.rand(6, n - 1, generator=generator).argsort(dim=1).numpy()
    changes, labels = [], []
    for x, y, order in zip(xs.numpy(), ys.numpy(), orders, strict=True):
        answers = [sum(t * y[i] * x[i].sum() for t, i in enumerate(each)) for each in (range(n - 1), order)]
        changes.append((answers[0] - answers[1]) ** 2)
        labels += [label**2 for label in y]
    expected = np.mean(changes) / np.mean(labels)
    assert expected > 0.1
    assert order_sensitivity(running_sum, xs, ys, seed=seed) == pytest.approx(expected, rel=1e-4)


def test_errors_when_shifted_are_the_last_ones_over_d():
    def errors(shift, count, model):
        model.config, model.read_in = SimpleNamespace(d=3), torch.nn.Linear(1, 1)
        return errors_when_shifted(model, shift, count=count)

    knows_all_but_the_last = lambda xs, ys: torch.cat([ys[:, :-1], 0 * ys[:, -1:]], 1)  # noqa: E731
    assert errors("inputs times 3", 20_000, knows_all_but_the_last) == pytest.approx([9, 9], rel=0.1)
    assert errors("query orthogonal", 4, lambda xs, ys: ys) == [0, 0]


def test_only_what_reads_in_order_is_sensitive_to_it():
    xs, ys, _ = prompts(256, 8, 5, generator=7)
    assert order_sensitivity(lambda xs, ys: baselines.predict(baselines.least_squares(xs, ys), xs), xs, ys) < 1e-8
    assert (
        order_sensitivity(lambda xs, ys: baselines.predict(baselines.online_gradient_descent(xs, ys), xs), xs, ys)
        > 0.01
    )
    assert order_sensitivity(lambda xs, ys: ys, xs, ys) == 0  # the question stays last
