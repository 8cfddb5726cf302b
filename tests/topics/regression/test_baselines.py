"""The solvers against plain loops in NumPy, SciPy and scikit-learn, in float64; closed forms against recurrences."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
import torch
from hypothesis.strategies import integers, lists
from laws import holds
from sklearn.linear_model import LinearRegression

from companion.topics.regression.baselines import (
    conjugate_gradient,
    gradient_descent,
    gradient_descent_plus_plus,
    least_squares,
    moments,
    newton,
    online_gradient_descent,
    predict,
    ridge_states,
)
from companion.topics.regression.data import prompts

STEPS = [0, 1, 2, 5, 11, 23]


def sample(n=13, d=5, kappa=1.0, noise=0.0, batch=4):
    return prompts(batch, n, d, kappa=kappa, noise=noise, generator=n + d, dtype=torch.float64)


def each_prefix(xs, ys, solve):
    """``solve(X, y)`` on every prefix of every prompt, one after the other; 0 before the first example."""
    ws = np.zeros(xs.shape)
    for index in np.ndindex(*ys.shape):
        batch, t = index
        if t:
            ws[index] = solve(xs[batch, :t].numpy(), ys[batch, :t].numpy())
    return torch.from_numpy(ws)


def newton_by_hand(k):
    def solve(X, y):
        S = X.T @ X
        M = S / np.sqrt(np.sum((S @ S.T) ** 2))
        for _ in range(k):
            M = 2 * M - M @ S @ M
        return M @ X.T @ y

    return solve


def descent_by_hand(steps, lr):
    def solve(X, y):
        w = np.zeros(X.shape[1])
        for _ in range(steps):
            w -= lr * (X.T @ (X @ w - y))
        return w

    return solve


@pytest.mark.parametrize(
    "d, n, kappa, noise", [(1, 4, 1, 0), (3, 2, 1, 0), (5, 13, 1, 0), (5, 13, 1, 0.3), (6, 20, 100, 0), (20, 41, 1, 0)]
)
def test_least_squares_is_of_minimum_norm_on_every_prefix(d, n, kappa, noise):
    xs, ys, _ = sample(n, d, kappa, noise)
    expected = each_prefix(xs, ys, lambda X, y: np.linalg.lstsq(X, y, rcond=None)[0])
    torch.testing.assert_close(least_squares(xs, ys), expected, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(
        expected, each_prefix(xs, ys, lambda X, y: scipy.linalg.pinv(X) @ y), rtol=1e-7, atol=1e-7
    )


def test_least_squares_agrees_with_scikit_learn_once_examples_suffice():
    xs, ys, _ = sample(noise=0.5)
    for batch in range(len(xs)):
        fit = LinearRegression(fit_intercept=False).fit(xs[batch, :-1], ys[batch, :-1])
        np.testing.assert_allclose(least_squares(xs, ys)[batch, -1], fit.coef_, rtol=1e-9)


@holds(rows=lists(lists(integers(-2, 2), min_size=4, max_size=4), min_size=1, max_size=7))
def test_each_prefix_of_any_rank_is_solved_alone(rows):
    """Inputs that come again or are 0, and labels that no weights explain: two prompts, each the other's reverse."""
    prompt = torch.tensor([rows, rows[::-1]]).double()
    xs, ys = prompt[..., :3], prompt[..., 3]
    S, b = moments(xs, ys)
    torch.testing.assert_close(b, each_prefix(xs, ys, lambda X, y: X.T @ y))
    for i in range(3):
        torch.testing.assert_close(S[..., i], each_prefix(xs, ys, lambda X, y, i=i: X.T @ X[:, i]))
    expected = each_prefix(xs, ys, lambda X, y: np.linalg.lstsq(X, y, rcond=None)[0])
    for ws in (least_squares(xs, ys), newton(xs, ys, [50])[0]):  # where Newton's iteration ends
        torch.testing.assert_close(ws, expected, rtol=1e-7, atol=1e-7)


def test_ridge_states_are_ridge_regression_before_each_prediction():
    xs, ys, _ = prompts(3, 6, 4, generator=1, dtype=torch.float64)
    ws, inverses = ridge_states(xs, ys, 0.3)
    assert not ws[:, 0].any()
    for t in range(6):
        S = xs[:, :t].mT @ xs[:, :t] + 0.3 * torch.eye(4, dtype=torch.float64)
        torch.testing.assert_close(inverses[:, t], torch.linalg.inv(S))
        torch.testing.assert_close(ws[:, t], torch.linalg.solve(S, (xs[:, :t] * ys[:, :t, None]).sum(1)))
    with pytest.raises(ValueError, match=r"ridge = 0"):
        ridge_states(xs, ys, 0)


@pytest.mark.parametrize("d, kappa, noise", [(1, 1, 0), (5, 1, 0), (5, 1, 0.3), (6, 100, 0)])
def test_newton_is_its_recurrence(d, kappa, noise):
    xs, ys, _ = sample(d=d, kappa=kappa, noise=noise)
    closed = newton(xs, ys, STEPS)
    for ws, k in zip(closed, STEPS, strict=True):
        torch.testing.assert_close(ws, each_prefix(xs, ys, newton_by_hand(k)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("d, kappa, lr", [(1, 1, 0.01), (5, 1, 0.01), (6, 100, 1e-4)])
def test_gradient_descent_is_its_recurrence(d, kappa, lr):
    xs, ys, _ = sample(d=d, kappa=kappa)
    steps = [0, 1, 7, 200]
    closed = gradient_descent(xs, ys, steps, lr=lr)
    for ws, s in zip(closed, steps, strict=True):
        torch.testing.assert_close(ws, each_prefix(xs, ys, descent_by_hand(s, lr)), rtol=0, atol=1e-10)


def test_gradient_descent_diverges_beyond_its_step_size():
    xs, ys, _ = sample(n=40)
    assert gradient_descent(xs, ys, [200], lr=0.2).abs().max() > 1e6


def conjugate_gradient_by_scipy(steps):
    def solve(X, y):
        if len(X) < X.shape[1]:  # SciPy divides 0 by 0 once it has arrived
            return np.zeros(X.shape[1])
        return scipy.sparse.linalg.cg(X.T @ X, X.T @ y, rtol=0, atol=0, maxiter=steps)[0]

    return solve


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
@pytest.mark.parametrize("kappa", [1, 100])
def test_conjugate_gradient_is_scipys(kappa, steps):
    xs, ys, _ = sample(kappa=kappa)
    expected = each_prefix(xs, ys, conjugate_gradient_by_scipy(steps))[:, 5:]
    torch.testing.assert_close(conjugate_gradient(xs, ys, [steps])[0][:, 5:], expected, rtol=1e-6, atol=1e-7)


def test_conjugate_gradient_ends_with_the_distinct_eigenvalues_and_stays():
    xs, ys, ws = sample(n=11, d=5)
    u, _, v = torch.linalg.svd(xs[:, :-1], full_matrices=False)
    xs = torch.cat([u * torch.tensor([3.0, 3.0, 3.0, 1.0, 1.0]).double() @ v, xs[:, -1:]], dim=1)
    ys = torch.einsum("bnd,bd->bn", xs, ws)
    one, two, many = conjugate_gradient(xs, ys, [1, 2, 30])[:, :, -1]
    assert (one - ws).abs().max() > 0.01
    torch.testing.assert_close(two, ws)
    torch.testing.assert_close(many, ws)


@pytest.mark.parametrize("kappa", [1, 100])
def test_gd_plus_plus_is_its_recurrence_on_the_inputs(kappa):
    """x <- (I - gamma S) x, then a gradient step on the moved inputs, one prefix at a time."""
    xs, ys, _ = sample(kappa=kappa)
    query, examples, labels = xs[:, -1], xs[:, :-1], ys[:, :-1]
    left, asked, answers = labels.clone(), query, [torch.zeros_like(labels[:, 0])]
    for _ in range(4):
        S = examples.mT @ examples
        largest = torch.linalg.eigvalsh(S)[:, -1, None]
        weights = torch.einsum("bnd,bn->bd", examples, left) / largest
        left = left - (examples @ weights[..., None])[..., 0]
        answers.append(answers[-1] + (asked * weights).sum(-1))
        move = torch.eye(5) - S / (3 * largest[..., None])
        examples, asked = examples @ move, (move @ asked[..., None])[..., 0]
    found = predict(gradient_descent_plus_plus(xs, ys, range(5)), xs)[:, :, -1]
    torch.testing.assert_close(found, torch.stack(answers), rtol=1e-9, atol=1e-9)


def test_fractions_of_a_step_lie_between_whole_ones():
    xs, ys, ws = sample(n=30)
    for solver, steps in ((newton, [4, 4.5, 5]), (gradient_descent, [4, 4.5, 5])):
        errors = [(w[:, -1] - ws).square().sum().item() for w in solver(xs, ys, steps)]
        assert errors[0] > errors[1] > errors[2]


def test_online_gradient_descent_fits_the_newest_example():
    xs, ys, _ = sample()

    def online(X, y):
        w = np.zeros(X.shape[1])
        for x, label in zip(X, y, strict=True):
            w += (label - x @ w) * x / (x @ x)
        return w

    ws = online_gradient_descent(xs, ys)
    torch.testing.assert_close(ws, each_prefix(xs, ys, online))
    torch.testing.assert_close((ws[:, 1:] * xs[:, :-1]).sum(-1), ys[:, :-1])


def test_errors_are_those_measured_in_the_published_setting():
    """d = 20, 40 examples: errors over d measured independently of this code, to their sampling noise."""
    xs, ys, _ = prompts(1000, 41, 20, generator=1, dtype=torch.float64)
    last = xs[:, -1:], ys[:, -1]

    def error(ws):
        return ((predict(ws[..., -1:, :], last[0])[..., 0] - last[1]).square().mean(-1) / 20).tolist()

    assert error(newton(xs, ys, [0, 4, 8, 10, 12])) == pytest.approx([0.76, 0.31, 0.050, 0.0076, 2.5e-4], rel=0.2)
    assert error(gradient_descent(xs, ys, [16, 64])) == pytest.approx([0.0225, 3.5e-4], rel=0.2)
    assert error(online_gradient_descent(xs, ys)) == pytest.approx(0.137, rel=0.2)
    solution = (predict(least_squares(xs, ys), xs) - ys).square().mean(0) / 20
    torch.testing.assert_close(solution[:20], 1 - torch.arange(20.0, dtype=torch.float64) / 20, rtol=0.2, atol=0.03)
    assert solution[20:].max() < 1e-8


@pytest.mark.parametrize("solver", [newton, gradient_descent])
@pytest.mark.parametrize("steps", [[], [-1], [3, -2]])
def test_steps_must_be_there_and_not_negative(solver, steps):
    xs, ys, _ = sample()
    with pytest.raises(ValueError, match=r"steps = .*none below 0"):
        solver(xs, ys, steps)


def test_float32_in_float32_out():
    xs, ys, _ = prompts(3, 6, 2)
    assert {newton(xs, ys, [3]).dtype, least_squares(xs, ys).dtype, gradient_descent(xs, ys, [3]).dtype} == {
        torch.float32
    }
