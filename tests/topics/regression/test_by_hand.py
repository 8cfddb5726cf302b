"""The hand-built Newton transformer against the recurrence, written down again here in NumPy."""

import numpy as np
import pytest
import torch
from refusals import refusals

from companion.topics.regression.by_hand import NewtonTransformer, newton_predictions
from companion.topics.regression.data import prompts


def problem(d, n, seed=0):
    xs, ys, _ = prompts(8, n + 1, d, generator=seed, dtype=torch.float64)
    S = xs[:, :-1].mT @ xs[:, :-1]
    return xs, ys[:, :-1], (1 / torch.linalg.matrix_norm(S @ S)).min().item()


def newton_by_hand(X, y, query, k, alpha):
    S = X.T @ X
    M = alpha * S
    for _ in range(k):
        M = 2 * M - M @ S @ M
    return query @ M @ X.T @ y


@pytest.mark.parametrize("d, n", [(1, 2), (5, 20), (20, 40)])
@pytest.mark.parametrize("k", [0, 1, 2, 7, 14, 20])
def test_k_plus_eight_layers_output_the_k_step_newton_prediction(d, n, k):
    xs, ys, alpha = problem(d, n, seed=k)
    network = NewtonTransformer(d, n, k, alpha)
    expected = [newton_by_hand(x[:-1], y, x[-1], k, alpha) for x, y in zip(xs.numpy(), ys.numpy(), strict=True)]
    assert len(network.layers) == k + 8
    assert network.width == 4 * d + 3
    np.testing.assert_allclose(network(xs, ys), expected, rtol=0, atol=1e-6)


def test_the_last_stream_is_the_prompt_with_its_label_filled_in():
    xs, ys, alpha = problem(3, 9)
    network = NewtonTransformer(3, 9, 4, alpha)
    last = network.streams(xs, ys)[-1]
    torch.testing.assert_close(last[:, :-1, network.blocks["y"]][..., 0], ys)
    torch.testing.assert_close(last[:, -1, network.blocks["a"]], xs[:, -1])


def test_the_printed_signs_give_something_else():
    xs, ys, alpha = problem(5, 20)
    network = NewtonTransformer(5, 20, 3, alpha)
    right = network(xs, ys)
    for layer in network.layers[3:6]:
        layer.heads[1].ov = layer.heads[0].ov
    assert (network(xs, ys) - right).abs().max() > 0.1


test_bad_sizes_are_named = refusals(
    (lambda: NewtonTransformer(0, 5, 1, 0.1), "d = 0"),
    (lambda: NewtonTransformer(3, 0, 1, 0.1), "n = 0"),
    (lambda: NewtonTransformer(3, 5, -1, 0.1), "k = -1"),
    (lambda: NewtonTransformer(3, 5, 1, 0.0), "alpha = 0.0"),
    (
        lambda: NewtonTransformer(3, 8, 1, 0.1)(*problem(3, 9)[:2]),
        r"must be \(batch, 9, 3\), 8 examples and the query, and \(batch, 8\)",
    ),
)


def test_predictions_after_each_newton_layer_are_the_recurrences():
    xs, ys, _ = prompts(3, 6, 2, generator=4, dtype=torch.float64)
    answers = newton_predictions(xs, ys, 3)
    assert answers.shape == (3, 3, 6) and not answers[:, :, 0].any()
    for t in (1, 4, 5):
        S = xs[:, :t].mT @ xs[:, :t]
        M = (1 / torch.linalg.matrix_norm(S @ S)).min() * S
        for k in range(3):
            M = 2 * M - M @ S @ M
            expected = torch.einsum("bd,bde,bje,bj->b", xs[:, t], M, xs[:, :t], ys[:, :t])
            torch.testing.assert_close(answers[k, :, t], expected, rtol=1e-9, atol=1e-9)
