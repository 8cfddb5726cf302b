r"""Classical algorithms for linear regression, on every prefix of every prompt at once.

Each takes prompts ``xs`` (batch, n, d) and ``ys`` (batch, n) and gives, for every t = 0 .. n - 1, the weights that it
would use to predict y_t from the t examples before it; `predict` turns weights into predictions. Before any example the
weights are 0.

With S = X^T X and b = X^T y of a prefix, one eigendecomposition S = V diag(lambda) V^T gives every step of both
iterations exactly:

    Iterative Newton   M_k b = V f(lambda) V^T b,  f = (1 - (1 - alpha lambda^2)^(2^k)) / lambda
    gradient descent   w_s   = V f(lambda) V^T b,  f = (1 - (1 - lr lambda)^s) / lambda

Source: Fu, Chen, Jia, Sharan (2024), arXiv:2310.17086, section 3; the closed forms are worked out here (the expansion
printed in the paper's appendix differs).
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import positive

# Below this share of a vector's squared length, what sticks out of the span of earlier inputs is rounding (float64).
DEPENDENT = 1e-12


def predict(ws: Float[Tensor, "*steps batch n d"], xs: Float[Tensor, "batch n d"]) -> Float[Tensor, "*steps batch n"]:
    """Compute the prediction w_t^T x_t of every prefix."""
    return (ws * xs).sum(dim=-1)


def least_squares(xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
    """Ordinary least squares, w = S^+ b: of minimum norm while there are fewer examples than dimensions.

    Recursive least squares started with Greville's (1960) updates of the pseudo-inverse, in float64. Two d x d matrices
    are carried along: ``outside`` projects onto what no input has reached yet, ``inverse`` is S^+.
    """
    _check(xs, ys)
    batch, n, d = xs.shape
    outside = torch.eye(d, dtype=torch.float64, device=xs.device).repeat(batch, 1, 1)
    inverse = torch.zeros_like(outside)
    w = outside.new_zeros(batch, d)
    ws = []
    for x, y in zip(xs.double().unbind(1), ys.double().unbind(1), strict=True):
        ws.append(w)
        new = torch.bmm(outside, x[..., None])[..., 0]  # (batch, d): the part of x that points in a new direction
        known = torch.bmm(inverse, x[..., None])[..., 0]
        squared = (new * x).sum(-1, keepdim=True)
        is_new = squared > DEPENDENT * x.square().sum(-1, keepdim=True)
        spread = 1 + (known * x).sum(-1, keepdim=True)
        gain = torch.where(is_new, new / squared, known / spread)
        w = w + gain * (y[:, None] - (w * x).sum(-1, keepdim=True))
        if is_new.any():
            outside -= torch.where(is_new, new, 0)[..., None] * gain[:, None, :]
        change = (known - spread / 2 * gain)[..., None] * gain[:, None, :]
        inverse -= change
        inverse -= change.mT
    return torch.stack(ws, dim=1).to(xs.dtype)


def ridge_states(
    xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"], ridge: float
) -> tuple[Float[Tensor, "batch n d"], Float[Tensor, "batch n d d"]]:
    """Compute what recursive least squares keeps before each prediction: w = P b, and P = (S + ridge I)^-1.

    Before any example w = 0 and P = I / ridge. Raises ValueError for a ``ridge`` that is not positive.
    """
    positive(ridge=ridge)
    S, b = moments(xs, ys)
    P = torch.linalg.inv(S + ridge * torch.eye(xs.shape[-1], dtype=xs.dtype, device=xs.device))
    return (P @ b[..., None])[..., 0], P


def newton(
    xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"], steps: Sequence[float]
) -> Float[Tensor, "steps batch n d"]:
    """Iterative Newton's M_k b for each k of ``steps``: M_0 = alpha S, M_{k+1} = 2 M_k - M_k S M_k, alpha = 1 / |S
    S^T|_F. It converges where alpha lambda_max(S)^2 < 2. Fractions of a step are interpolated by the closed form.

    Departure: the paper prints alpha = 2 / |S S^T|_2, at which the largest direction never converges; its code uses
    this one.
    """
    eigenvalues, _, _ = spectrum = _spectrum(xs, ys, steps)
    alpha = 1 / eigenvalues.pow(4).sum(-1, keepdim=True).sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    # log1p and expm1 keep the digits of directions that have hardly begun to converge; rounding must not push alpha
    # lambda^2 past 1
    log_left = torch.log1p(-(alpha * eigenvalues.square()).clamp(0, 1))
    return _filtered(spectrum, xs, steps, lambda k: -torch.expm1(2.0**k * log_left))


def gradient_descent(
    xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"], steps: Sequence[float], lr: float = 0.01
) -> Float[Tensor, "steps batch n d"]:
    """Gradient descent on |X w - y|^2 / 2 from 0 after each number of ``steps``: w_{s+1} = w_s - lr (S w_s - b).

    The sum over examples is not divided by their number, as in the paper's code; it converges where lr lambda_max(S) <
    2. Fractions of a step are interpolated by the closed form, where lr lambda_max(S) < 1.

    ``xs``, ``ys``: the prompts.
    ``steps``: after which numbers of steps; fractions are allowed.
    ``lr``: the size of a step.
    """
    eigenvalues, _, _ = spectrum = _spectrum(xs, ys, steps)
    return _filtered(spectrum, xs, steps, lambda s: 1 - (1 - lr * eigenvalues).pow(s))


def conjugate_gradient(
    xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"], steps: Sequence[int]
) -> Float[Tensor, "steps batch n d"]:
    """Conjugate gradient on S w = b from 0, after each number of ``steps`` (Hestenes and Stiefel 1952).

    A first-order method: one product with S a step. Step k is the best point that k gradients span, so that it ends, up
    to rounding, after as many steps as S has distinct eigenvalues. In float64.
    """
    _check(xs, ys, steps)
    S, b = moments(xs.double(), ys.double())
    w, residual, direction = torch.zeros_like(b), b, b
    squared = residual.square().sum(-1, keepdim=True)
    # a direction this short is rounding: the iteration has ended there
    smallest = DEPENDENT**2 * squared.clamp_min(torch.finfo(torch.float64).tiny)
    ws = {0: w}
    for k in range(1, max(steps) + 1):
        image = (S @ direction[..., None])[..., 0]
        unfinished = squared > smallest
        length = torch.where(unfinished, squared / (direction * image).sum(-1, keepdim=True), 0)
        w, residual = w + length * direction, residual - length * image
        before, squared = squared, residual.square().sum(-1, keepdim=True)
        direction = torch.where(unfinished, residual + squared / before * direction, 0)
        ws[k] = w
    return torch.stack([ws[k] for k in steps]).to(xs.dtype)


def gradient_descent_plus_plus(
    xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"], steps: Sequence[int]
) -> Float[Tensor, "steps batch n d"]:
    """GD++ (von Oswald et al. 2023, arXiv:2212.07677, section 3): each layer also transforms the inputs it has read.

    Layer l takes a gradient step on the inputs x_l, then x_{l+1} = (I - gamma_l S_l) x_l, which shortens the long
    directions most. Eigenvalue by eigenvalue: left <- left (1 - eta lambda), lambda <- lambda (1 - gamma lambda)^2.
    The source trains both rates; here eta = 1 / lambda_max and gamma = 1 / (3 lambda_max), anew in each layer and
    prefix: the largest gamma that keeps the eigenvalues' order.
    """
    eigenvalues, _, _ = spectrum = _spectrum(xs, ys, steps)
    left, shares = torch.ones_like(eigenvalues), []
    for _ in range(max(steps) + 1):
        shares.append(1 - left)
        relative = eigenvalues / eigenvalues.amax(-1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        left = left * (1 - relative)
        eigenvalues = eigenvalues * (1 - relative / 3).square()
    return _filtered(spectrum, xs, steps, lambda k: shares[k])


def online_gradient_descent(xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
    """Take one step an example, from 0: w <- w + (y - w^T x) x / |x|^2 fits the newest example and forgets older
    ones.
    """
    _check(xs, ys)
    # an input of 0 teaches nothing
    directions = xs / xs.square().sum(-1, keepdim=True).clamp_min(torch.finfo(xs.dtype).tiny)
    w = torch.zeros_like(xs[:, 0])
    ws = []
    for x, y, direction in zip(xs.unbind(1), ys.unbind(1), directions.unbind(1), strict=True):
        ws.append(w)
        w = torch.addcmul(w, (y - torch.linalg.vecdot(w, x))[:, None], direction)
    return torch.stack(ws, dim=1)


def _check(xs: Tensor, ys: Tensor, steps: Sequence[float] = (0,)) -> None:
    if xs.shape[:-1] != ys.shape:
        raise ValueError(
            f"ys of shape {tuple(ys.shape)}: must be {tuple(xs.shape[:-1])}, one label for each input of xs"
        )
    if not steps or min(steps) < 0:
        raise ValueError(f"steps = {steps!r}: must be at least one number, none below 0")


def moments(
    xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]
) -> tuple[Float[Tensor, "batch n d d"], Float[Tensor, "batch n d"]]:
    """Compute S = X^T X and b = X^T y of the examples before each position."""
    _check(xs, ys)
    examples, labels = xs[:, :-1], ys[:, :-1]
    S = torch.zeros(*xs.shape, xs.shape[-1], dtype=xs.dtype, device=xs.device)
    b = torch.zeros_like(xs)
    S[:, 1:] = (examples[..., :, None] * examples[..., None, :]).cumsum(dim=1)
    b[:, 1:] = (examples * labels[..., None]).cumsum(dim=1)
    return S, b


def _spectrum(xs: Tensor, ys: Tensor, steps: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues of S, coordinates of b in its eigenbasis, and the eigenbasis, in float64."""
    _check(xs, ys, steps)
    S, b = moments(xs.double(), ys.double())
    eigenvalues, basis = torch.linalg.eigh(S)
    return eigenvalues, (basis.mT @ b[..., None])[..., 0], basis


def _filtered(
    spectrum: tuple[Tensor, Tensor, Tensor], xs: Tensor, steps: Sequence[float], progress: Callable[[float], Tensor]
) -> Tensor:
    """V diag(progress(step) / lambda) V^T b: ``progress``, 0 to 1, is the share of each direction solved by a step."""
    eigenvalues, b, basis = spectrum
    seen = eigenvalues > DEPENDENT * eigenvalues.amax(-1, keepdim=True)
    solved = torch.where(seen, b / eigenvalues, 0)
    coefficients = torch.stack([progress(step) * solved for step in steps], dim=-1)  # (batch, n, d, steps)
    return (basis @ coefficients).movedim(-1, 0).to(xs.dtype)
