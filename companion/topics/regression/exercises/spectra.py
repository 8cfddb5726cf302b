"""The exercises of lesson 02 that tell algorithms apart: Newton's share, conjugate gradient, the rate test, the
measured filter, and gradient descent as the circuits of linear attention.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["conjugate_gradient", "descent_circuits", "growth_r2", "measured_filter", "newton_share"]


# -- newton_share


def _draw_share(generator: Generator) -> dict:
    # at most 3 steps from a small alpha: nothing has arrived yet, so that one step more or less shows
    eigenvalues = 1 + 4 * torch.rand(draw_size(generator, 3, 6), generator=generator, dtype=torch.float64)
    return {"eigenvalues": eigenvalues, "alpha": 0.005, "steps": draw_size(generator, 2, 3)}


def _newton_share(eigenvalues: Tensor, alpha: float, steps: int) -> Tensor:
    left = 1 - alpha * eigenvalues**2
    for _ in range(steps):
        left = left**2
    return 1 - left


newton_share = Exercise(
    name="newton_share",
    answer=_newton_share,
    draw=_draw_share,
    mistakes={
        "this is what is left to do; the share that is done is 1 minus that": lambda eigenvalues, alpha, steps: (
            (1 - alpha * eigenvalues**2) ** 2**steps
        ),
        "the power is that of gradient descent; what is left squares itself at every step, so the power is 2^steps": (
            lambda eigenvalues, alpha, steps: 1 - (1 - alpha * eigenvalues**2) ** steps
        ),
        "the power is 2 * steps; squaring again and again gives 2 ** steps": lambda eigenvalues, alpha, steps: (
            1 - (1 - alpha * eigenvalues**2) ** (2 * steps)
        ),
        "M_0 is alpha S, so that S M_0 has the eigenvalue squared: this starts from alpha times the identity": (
            lambda eigenvalues, alpha, steps: 1 - (1 - alpha * eigenvalues) ** 2**steps
        ),
        "one step too many: M_0 itself, before any step, has solved the share alpha lambda^2": (
            lambda eigenvalues, alpha, steps: 1 - (1 - alpha * eigenvalues**2) ** 2 ** (steps + 1)
        ),
        "one step too few: after k steps the power is 2^k": lambda eigenvalues, alpha, steps: (
            1 - (1 - alpha * eigenvalues**2) ** 2 ** (steps - 1)
        ),
        "this is the eigenvalue of M_k; the share is that of S M_k, lambda times as large": (
            lambda eigenvalues, alpha, steps: (1 - (1 - alpha * eigenvalues**2) ** 2**steps) / eigenvalues
        ),
        "alpha is squared as well; M_0 = alpha S has it once": lambda eigenvalues, alpha, steps: (
            1 - (1 - (alpha * eigenvalues) ** 2) ** 2**steps
        ),
    },
    tolerance=1e-9,
)


# -- conjugate_gradient


def _draw_system(generator: Generator) -> dict:
    d = draw_size(generator, 5, 7)
    x = draw_normal(generator, 2 * d, d)
    # fewer steps than dimensions, so that the answer is not yet S^-1 b; more than two, so that one is not "one too few"
    return {"S": x.T @ x, "b": draw_normal(generator, d), "steps": draw_size(generator, 3, 4)}


def _conjugate_gradient(S: Tensor, b: Tensor, steps: int) -> Tensor:
    w, residual, direction = torch.zeros_like(b), b, b
    for _ in range(steps):
        image = S @ direction
        length = (residual @ residual) / (direction @ image)
        w = w + length * direction
        new = residual - length * image
        direction = new + (new @ new) / (residual @ residual) * direction
        residual = new
    return w


def _gradients(
    S: Tensor,
    b: Tensor,
    steps: int,
    length: Callable[[Tensor, Tensor, Tensor], Tensor],
    turn: Callable[[Tensor, Tensor], Tensor | float],
    start: float = 0.0,
) -> Tensor:
    """`_conjugate_gradient` with other rules: ``length(residual, direction, image)`` of a step, and
    ``turn(new, residual)``, how much of the last direction is kept.
    """
    w = start * b
    residual = b - S @ w
    direction = residual
    for _ in range(steps):
        image = S @ direction
        step = length(residual, direction, image)
        w, new = w + step * direction, residual - step * image
        direction, residual = new + turn(new, residual) * direction, new
    return w


def _exact(residual: Tensor, direction: Tensor, image: Tensor) -> Tensor:
    return (residual @ residual) / (direction @ image)


def _kept(new: Tensor, residual: Tensor) -> Tensor:
    return (new @ new) / (residual @ residual)


conjugate_gradient = Exercise(
    name="conjugate_gradient",
    answer=_conjugate_gradient,
    draw=_draw_system,
    mistakes={
        "each direction is the residual: that is steepest descent. Keep |new|^2 / |old|^2 of the last direction": (
            lambda S, b, steps: _gradients(
                S, b, steps, lambda r, p, image: (r @ r) / (r @ image), lambda new, residual: 0.0
            )
        ),
        "the fraction of the last direction that is kept is upside down: |new|^2 / |old|^2": lambda S, b, steps: (
            _gradients(S, b, steps, _exact, lambda new, residual: 1 / _kept(new, residual))
        ),
        "the fraction of the last direction that is kept is a ratio of squared lengths, not of lengths": (
            lambda S, b, steps: _gradients(S, b, steps, _exact, lambda new, residual: _kept(new, residual).sqrt())
        ),
        "the last direction is subtracted from the new residual; add it": lambda S, b, steps: _gradients(
            S, b, steps, _exact, lambda new, residual: -_kept(new, residual)
        ),
        "the whole last direction is kept; keep |new|^2 / |old|^2 of it": lambda S, b, steps: _gradients(
            S, b, steps, _exact, lambda new, residual: 1.0
        ),
        "the step divides by |direction|^2; it must divide by direction . S direction": lambda S, b, steps: _gradients(
            S, b, steps, lambda r, p, image: (r @ r) / (p @ p), _kept
        ),
        "the step divides by the residual's r . S r; it is the direction that is walked along": lambda S, b, steps: (
            _gradients(S, b, steps, lambda r, p, image: (r @ r) / (r @ S @ r), _kept)
        ),
        "the iteration starts at b; it must start at 0": lambda S, b, steps: _gradients(
            S, b, steps, _exact, _kept, 1.0
        ),
        "this is where the iteration ends, S^-1 b; the number of steps must matter": lambda S, b, steps: (
            torch.linalg.solve(S, b)
        ),
        "one step too many": lambda S, b, steps: _conjugate_gradient(S, b, steps + 1),
        "one step too few": lambda S, b, steps: _conjugate_gradient(S, b, steps - 1),
    },
)


# -- growth_r2


def _draw_growth(generator: Generator) -> dict:
    count = draw_size(generator, 5, 8)
    layers = torch.arange(1, count + 1, dtype=torch.float64)
    return {"layers": layers, "steps": torch.exp2(0.8 * layers + 0.7 * draw_normal(generator, count))}


def _growth_r2(layers: Tensor, steps: Tensor) -> Tensor:
    features = torch.stack([torch.ones_like(layers), layers], dim=1)
    explained = []
    for target in (steps, steps.log2()):
        fitted = features @ torch.linalg.lstsq(features, target[:, None]).solution[:, 0]
        left = (target - fitted).square().sum()
        explained.append(1 - left / (target - target.mean()).square().sum())
    return torch.stack(explained)


def _fits(layers: Tensor, *targets: Tensor) -> Tensor:
    """The share of variance that a straight line explains of each target."""
    return torch.stack([_correlation(layers, target).square() for target in targets])


def _correlation(layers: Tensor, target: Tensor) -> Tensor:
    dx, dy = layers - layers.mean(), target - target.mean()
    return (dx @ dy) / (dx.norm() * dy.norm())


def _uncentred(layers: Tensor, target: Tensor) -> Tensor:
    slope = (layers @ target) / (layers @ layers)
    return 1 - (target - slope * layers).square().sum() / (target - target.mean()).square().sum()


growth_r2 = Exercise(
    name="growth_r2",
    answer=_growth_r2,
    draw=_draw_growth,
    mistakes={
        "the line's share comes first, the exponential's second; here they are exchanged": lambda layers, steps: _fits(
            layers, steps.log2(), steps
        ),
        "both are fits to the steps themselves; for the exponential fit a line to log2(steps)": (
            lambda layers, steps: _fits(layers, steps, steps)
        ),
        "the logarithm is taken of the layers; a line through log2(steps) is an exponential in the layer": (
            lambda layers, steps: torch.stack(
                [_correlation(layers, steps), _correlation(layers.log2(), steps)]
            ).square()
        ),
        "these are correlations; the share of variance is their square": lambda layers, steps: torch.stack(
            [_correlation(layers, steps), _correlation(layers, steps.log2())]
        ),
        "this is the share left unexplained; R^2 is 1 minus that": lambda layers, steps: (
            1 - _fits(layers, steps, steps.log2())
        ),
        "the lines pass through the origin: fit an intercept, too": lambda layers, steps: torch.stack(
            [_uncentred(layers, steps), _uncentred(layers, steps.log2())]
        ),
        "the exponential's residuals are taken in steps; compare log2(steps) with its line, both logarithms": (
            lambda layers, steps: torch.stack([_fits(layers, steps)[0], _in_steps(layers, steps)])
        ),
    },
    tolerance=1e-8,
)


def _in_steps(layers: Tensor, steps: Tensor) -> Tensor:
    features = torch.stack([torch.ones_like(layers), layers], dim=1)
    fitted = torch.exp2(features @ torch.linalg.lstsq(features, steps.log2()[:, None]).solution[:, 0])
    return 1 - (steps - fitted).square().sum() / (steps - steps.mean()).square().sum()


# -- measured_filter


def _draw_filter(generator: Generator) -> dict:
    prompts, d = draw_size(generator, 30, 40), draw_size(generator, 3, 5)
    x = draw_normal(generator, prompts, 3 * d, d)
    S = x.mT @ x
    # a few bins in the middle, so that some eigenvalues lie below the first edge and above the last
    edges = torch.quantile(
        torch.linalg.eigvalsh(S).flatten(), torch.linspace(0.1, 0.9, draw_size(generator, 4, 5)).double()
    )
    solutions = draw_normal(generator, prompts, d)
    ws = 0.02 * (S @ solutions[..., None])[..., 0] + 0.2 * draw_normal(generator, prompts, d)
    return {"ws": ws, "solutions": solutions, "S": S, "edges": edges}


def _measured_filter(ws: Tensor, solutions: Tensor, S: Tensor, edges: Tensor) -> Tensor:
    eigenvalues, V = torch.linalg.eigh(S)
    reached = (V.mT @ ws[..., None])[..., 0]
    whole = (V.mT @ solutions[..., None])[..., 0]
    shares = []
    for low, high in pairwise(edges):
        inside = (eigenvalues >= low) & (eigenvalues < high)
        shares.append((reached * whole)[inside].sum() / (whole * whole)[inside].sum())
    return torch.stack(shares)


def _binned(eigenvalues: Tensor, edges: Tensor, reached: Tensor, whole: Tensor, share: Callable) -> Tensor:
    inside = [(eigenvalues >= low) & (eigenvalues < high) for low, high in pairwise(edges)]
    return torch.stack([share(reached[chosen], whole[chosen]) for chosen in inside])


def _slope(reached: Tensor, whole: Tensor) -> Tensor:
    return (reached @ whole) / (whole @ whole)


def _filter_wrong(share: Callable, turned: tuple[bool, bool] = (True, True), transposed: bool = True) -> Callable:
    """`_measured_filter` with another share in a bin, without one of its rotations, or with V for V^T."""

    def wrong(ws: Tensor, solutions: Tensor, S: Tensor, edges: Tensor) -> Tensor:
        eigenvalues, V = torch.linalg.eigh(S)
        turn = V.mT if transposed else V
        pair = [
            torch.einsum("bij,bj->bi", turn, values) if rotate else values
            for values, rotate in zip((ws, solutions), turned, strict=True)
        ]
        return _binned(eigenvalues, edges, *pair, share)

    return wrong


measured_filter = Exercise(
    name="measured_filter",
    answer=_measured_filter,
    draw=_draw_filter,
    mistakes={
        "this is the mean of the ratios; a direction with a tiny solution counts as much as any. Divide the sums": (
            _filter_wrong(lambda reached, whole: (reached / whole).mean())
        ),
        "nothing is rotated into the eigenbasis: take V^T ws and V^T solutions": _filter_wrong(_slope, (False, False)),
        "the solutions are not rotated into the eigenbasis": _filter_wrong(_slope, (True, False)),
        "the weights are not rotated into the eigenbasis": _filter_wrong(_slope, (False, True)),
        "V where V^T belongs: eigh gives one eigenvector a column, so that V^T w has the coordinates": (
            _filter_wrong(_slope, transposed=False)
        ),
        "the sum of the products is not divided by that of the squared solutions": _filter_wrong(
            lambda reached, whole: reached @ whole
        ),
        "this is the other regression: divide by the squared solutions, not by the squared weights": _filter_wrong(
            lambda reached, whole: (reached @ whole) / (reached @ reached)
        ),
        "this is the cosine of the two; the share is the slope, divided by the squared solutions": _filter_wrong(
            lambda reached, whole: (reached @ whole) / (reached.norm() * whole.norm())
        ),
        "the signs are lost: a ratio of lengths grows with noise. Multiply reached by whole before the sum": (
            _filter_wrong(lambda reached, whole: reached.norm() / whole.norm())
        ),
        "absolute values are summed, and the signs are lost: multiply reached by whole before the sum": _filter_wrong(
            lambda reached, whole: reached.abs().sum() / whole.abs().sum()
        ),
        "this is the share still to go; 1 minus that is what is reached": _filter_wrong(
            lambda reached, whole: 1 - _slope(reached, whole)
        ),
    },
    tolerance=1e-8,
)


# -- descent_circuits


def _draw_circuits(generator: Generator) -> dict:
    return {
        "d": draw_size(generator, 2, 6),
        "lr": 0.013 * draw_size(generator, 1, 5),
        "gamma": 0.0017 * draw_size(generator, 1, 5),
        "length": draw_size(generator, 11, 23),
    }


def _descent_circuits(d: int, lr: float, gamma: float, length: int) -> Tensor:
    query_key, value_output = torch.zeros(d + 1, d + 1), torch.zeros(d + 1, d + 1)
    query_key[:d, :d] = torch.eye(d)
    value_output[:d, :d] = -gamma * length * torch.eye(d)
    value_output[d, d] = -lr * length
    return torch.stack([query_key, value_output])


def _circuits(d: int, x_score: float, y_score: float, x_value: float, y_value: float) -> Tensor:
    """Both circuits diagonal, with one number for the inputs' block and one for the label."""
    return torch.stack([torch.tensor([x] * d + [y]).diag() for x, y in ((x_score, y_score), (x_value, y_value))])


descent_circuits = Exercise(
    name="descent_circuits",
    answer=_descent_circuits,
    draw=_draw_circuits,
    mistakes={
        "the labels enter the scores: query_key must read the inputs alone, so that its last entry is 0": (
            lambda d, lr, gamma, length: _circuits(d, 1.0, 1.0, -gamma * length, -lr * length)
        ),
        "the step goes uphill: a layer subtracts, so that both entries of value_output are negative": (
            lambda d, lr, gamma, length: _circuits(d, 1.0, 0.0, gamma * length, lr * length)
        ),
        "attention divides the sum by the length; multiply it back in": lambda d, lr, gamma, length: _circuits(
            d, 1.0, 0.0, -gamma, -lr
        ),
        "the length divides once more; attention's own division has to be undone, so multiply by it": (
            lambda d, lr, gamma, length: _circuits(d, 1.0, 0.0, -gamma / length, -lr / length)
        ),
        "lr and gamma are exchanged: lr moves the label, gamma the inputs": lambda d, lr, gamma, length: _circuits(
            d, 1.0, 0.0, -lr * length, -gamma * length
        ),
        "the inputs do not move: gamma is missing from the inputs' block of value_output": (
            lambda d, lr, gamma, length: _circuits(d, 1.0, 0.0, 0.0, -lr * length)
        ),
        "the label does not move: lr is missing from the last entry of value_output": (
            lambda d, lr, gamma, length: _circuits(d, 1.0, 0.0, -gamma * length, 0.0)
        ),
        "value_output comes first here; the order is query_key, then value_output": lambda d, lr, gamma, length: (
            _circuits(d, 1.0, 0.0, -gamma * length, -lr * length).flip(0)
        ),
        "the stream is already added to by the layer; value_output holds the change alone, without the identity": (
            lambda d, lr, gamma, length: _circuits(d, 1.0, 0.0, 1 - gamma * length, 1 - lr * length)
        ),
    },
)
