r"""Provably learning a multi-head attention layer F(X) = sum_i softmax(X Theta_i X^T) X W_i from examples, without
gradient descent.

After Chen and Li (2024), arXiv:2402.04084, whose algorithm has six stages: (1) a crude estimate of sum W from one
gradient step; (2) rows on which all heads happen to share their attention pattern, certified by a small regression
residual, give linear constraints on every Theta_i; (3, 4) the estimates refine each other; (5) a net over what the
constraints leave open, the affine hull of the Theta_i; (6) every m-tuple of the net, W by least squares, and validation
on examples that were held out.

What is ours: the residual quantiles in place of the paper's thresholds, stages 2 to 4 merged into one alternation, log
ratios of all patterns at once in place of a convex body, and a descent over the hull's coordinates (variable
projection) at the end.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from companion.topics.multihead.data import Teacher
from companion.topics.multihead.model import relative_loss

QUANTILES = (0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.003, 0.002)
MOST_LOSS = 0.01  # of the labels' square that an answer may leave unexplained, whatever the certificate promises
MOST_TUPLES = 5_000_000  # of net points: 41 choose 2 and 49 choose 3 are few, four heads have 177 million
SMALLEST_WEIGHT = 0.05  # of a pattern that is kept: logarithms of smaller ones are mostly noise


class NotCertifiedError(ValueError):
    """No row can be trusted, or what the trusted rows say is not borne out: the layer is outside of what the algorithm
    can learn.
    """


class Hull(NamedTuple):
    """The affine set base + sum_e lambda_e directions[e] in which all Theta_i lie; the directions are orthonormal."""

    base: Float[Tensor, "d d"]
    directions: Float[Tensor, "free d d"]

    def at(self, coordinates: Float[Tensor, "*points free"]) -> Float[Tensor, "*points d d"]:
        """Return the matrices with these coordinates."""
        return self.base + torch.einsum("...e,eij->...ij", coordinates, self.directions)

    def distance(self, theta: Float[Tensor, "d d"]) -> float:
        """Measure how far a matrix lies from the hull, in Frobenius norm."""
        off = theta - self.base
        return (off - torch.einsum("eij,ekl,kl->ij", self.directions, self.directions, off)).norm().item()


@dataclass(frozen=True)
class Report:
    """What `learn` found: two matrices a head, how well the best-certified rows fit, the held-out loss."""

    thetas: Float[Tensor, "heads d d"]
    ws: Float[Tensor, "heads d d"]
    promised: float
    hull: Hull
    tuples: int
    loss: float


def features(X: Float[Tensor, "n k d"], theta: Float[Tensor, "*points d d"]) -> Float[Tensor, "*points n k d"]:
    """softmax(X Theta X^T) X: what a head that looks by Theta can move, one matrix (k, d) for every Theta and sequence.

    The layer's answer is linear in them: F(X) = sum_i features(X, Theta_i) W_i.
    """
    return torch.einsum("nkd,...de,nle->...nkl", X, theta, X).softmax(dim=-1) @ X


def first_step(X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"]) -> Float[Tensor, "d d"]:
    """Stage 1: the mean of X^T J Y / k, which is one gradient step in W from Theta = W = 0 (J is all ones; the Hessian
    there is I).

    On Boolean sequences its mean is sum_i (I + (1 - 1/k) (Theta_i - (2/k) diag Theta_i)) W_i + O(|Theta|^2) (our
    derivation; without the diagonal for Gaussian ones): a bias that more samples do not remove.
    """
    return torch.einsum("nkd,nle->de", X, Y) / (X.shape[0] * X.shape[1])


def certificate(
    X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"], sum_w: Float[Tensor, "d d"]
) -> tuple[Float[Tensor, "n k k"], Float[Tensor, "n k"]]:
    """Stage 2: for every row r, the p of sum 1 that fits y_r = p^T X sum_w best, and what is left, over the typical
    length of a row.

    If all heads share the pattern p there, y_r is exactly p^T X sum W; a small residual is the certificate that they
    do. It takes k well below d: k - 1 free weights fit d numbers, and at k = d nearly every y_r.
    """
    k = X.shape[1]
    Z = X @ sum_w
    D, R = Z[:, :-1] - Z[:, -1:], Y - Z[:, -1:]
    gram = D @ D.mT
    ridge = 1e-12 * (1 + gram.diagonal(dim1=1, dim2=2).sum(1))[:, None, None] * torch.eye(k - 1).to(X)
    first = torch.linalg.solve(gram + ridge, D @ R.mT).mT
    p = torch.cat([first, 1 - first.sum(-1, keepdim=True)], dim=-1)
    return p, (Y - p @ Z).norm(dim=-1) / Y.square().sum(-1).mean().sqrt()


def constraints(
    X: Float[Tensor, "n k d"], p: Float[Tensor, "n k k"], kept: Bool[Tensor, "n k"]
) -> tuple[Float[Tensor, "rows d2"], Float[Tensor, "rows"], Float[Tensor, "rows"]]:
    """Return the linear constraints that the trusted rows put on every Theta_i: <x_r (x_a - x_k)^T, Theta_i> = log(p_a
    / p_k).

    ``p`` holds a pattern for every row, ``kept`` says which are trusted; each gives k - 1 constraints, a < k. Returns
    the rows x_r (x_a - x_k)^T, flat (d2 = d^2), the right-hand sides, and a weight p_a p_k for each: the logarithm of
    a small share is less certain.
    """
    n, r = kept.nonzero(as_tuple=True)
    to_last, pattern = X[n, :-1] - X[n, -1:], p[n, r]
    rows = (X[n, r][:, None, :, None] * to_last[:, :, None, :]).flatten(0, 1).flatten(1)
    return rows, (pattern[:, :-1] / pattern[:, -1:]).log().flatten(), (pattern[:, :-1] * pattern[:, -1:]).flatten()


def fit_hull(
    rows: Float[Tensor, "rows d2"], logs: Float[Tensor, "rows"], weights: Float[Tensor, "rows"], heads: int
) -> Hull:
    """Fit the Theta that meet the constraints: what heads differ in, heads - 1 directions, is what the constraints see
    least of.

    Directions are the bottom heads - 1 eigenvectors of A^T A, the base point is weighted least squares on the others.

    ``rows``: A, the constraints on the d^2 entries of Theta, one a row.
    ``logs``: their right-hand sides, log ratios of attention weights.
    ``weights``: how much each counts (all three as `constraints` gives them).
    ``heads``: how many Theta there are.
    """
    d = round(rows.shape[1] ** 0.5)
    weighted = rows * weights[:, None]
    eigenvalues, basis = torch.linalg.eigh(weighted.mT @ rows)
    seen = basis[:, heads - 1 :]
    base = seen @ ((seen.mT @ (weighted.mT @ logs)) / eigenvalues[heads - 1 :].clamp_min(1e-12 * eigenvalues[-1]))
    return Hull(base.view(d, d), basis[:, : heads - 1].mT.reshape(heads - 1, d, d))


def refine(
    X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"], heads: int
) -> tuple[list[Tensor], list[int], list[float], Hull]:
    """Stages 2 to 4: keep the best-certified rows, fit the hull to them, refit sum W on them, and again with fewer and
    better rows.

    Returns the estimates of sum W, how many rows were kept, the largest residual among them, and the last hull. Raises
    NotCertifiedError if no row has a pattern that can be trusted.
    """
    d = X.shape[2]
    sums, counts, residuals = [first_step(X, Y)], [], []
    for quantile in QUANTILES:
        p, residual = certificate(X, Y, sums[-1])
        candidates = residual.where(p.amin(-1) > SMALLEST_WEIGHT, torch.inf)
        wanted = max(round(quantile * residual.numel()), 4 * d * d)
        available = int(candidates.isfinite().sum())
        if available < 2 * d * d:
            rank = int(torch.linalg.matrix_rank(Y.flatten(0, 1)))
            raise NotCertifiedError(
                f"only {available} rows of {residual.numel()} pass the certificate, {2 * d * d} are needed"
                + (f"; the labels span {rank} of {d} dimensions, so that sum W has no full rank" if rank < d else "")
            )
        threshold = candidates.flatten().kthvalue(min(wanted, available)).values
        kept = candidates <= threshold
        hull = fit_hull(*constraints(X, p, kept), heads)
        n, r = kept.nonzero(as_tuple=True)
        sums.append(torch.linalg.lstsq(features(X[n], hull.base)[torch.arange(len(n)), r], Y[n, r]).solution)
        counts.append(int(kept.sum()))
        residuals.append(threshold.item())
    return sums, counts, residuals, hull


def hull_net(hull: Hull, heads: int) -> Float[Tensor, "points free"]:
    """Stage 5: a net over the hull's free = heads - 1 coordinates, a ball of radius 3 sqrt(heads) |base|.

    That is three times as far as random heads lie apart. 41 points on a line for two heads, 9 on an axis for more.
    """
    return _unit_ball(heads - 1).to(hull.base) * 3 * heads**0.5 * hull.base.norm()


def _unit_ball(free: int) -> Float[Tensor, "points free"]:
    """The points of a cubic grid, 41 or 9 on an axis, that lie in the unit ball."""
    line = torch.linspace(-1, 1, 41 if free == 1 else 9, dtype=torch.float64)
    points = torch.cartesian_prod(*[line] * free).view(-1, free) if free else torch.zeros(1, 0)
    return points[points.norm(dim=1) <= 1.01]


def best_tuple(
    X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"], hull: Hull, points: Float[Tensor, "points free"], heads: int
) -> tuple[Float[Tensor, "heads free"], float, int]:
    """Stage 6: every tuple of net points with its best W, all from one Gram matrix.

    With features phi_a, the loss of a tuple is |Y|^2 - <C, G^{-1} C> for its blocks of G_ab = sum phi_a^T phi_b and C_a
    = sum phi_a^T Y. Returns the best tuple's points, its loss over |Y|^2, and how many tuples there were.

    ``X``, ``Y``: sequences and their labels.
    ``hull``: the affine set that all Theta lie in.
    ``points``: the net's coordinates in it, as `hull_net` gives them.
    ``heads``: how many points make a tuple; their order does not matter.
    """
    many, d = len(points), X.shape[2]
    G, C = X.new_zeros(many * d, many * d), X.new_zeros(many * d, d)
    for x, y in zip(X.split(1000), Y.split(1000), strict=True):  # all features at once would fill the memory
        phi = features(x, hull.at(points)).flatten(1, 2).permute(1, 0, 2).reshape(-1, many * d)
        G, C = G + phi.mT @ phi, C + phi.mT @ y.flatten(0, 1)
    G, C = G.view(many, d, many, d), C.view(many, d, d)
    tuples = torch.tensor(list(itertools.combinations(range(many), heads)))
    ridge, losses = 1e-9 * torch.einsum("aiai->", G) / (many * d) * torch.eye(heads * d).to(X), []
    for part in tuples.split(1024):
        blocks = (
            G[part[:, :, None], :, part[:, None, :]].permute(0, 1, 3, 2, 4).reshape(len(part), heads * d, heads * d)
        )
        right = C[part].reshape(len(part), heads * d, d)
        losses.append((torch.linalg.solve(blocks + ridge, right) * right).sum((1, 2)))
    gain, best = torch.cat(losses).max(dim=0)
    return points[tuples[best]], 1 - (gain / Y.square().sum()).item(), len(tuples)


def solve_ws(
    X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"], thetas: Float[Tensor, "heads d d"]
) -> Float[Tensor, "heads d d"]:
    """Solve for the W_i that minimise |sum_i features(X, Theta_i) W_i - Y|^2 for given Theta, by least squares.

    From the normal equations, with a ridge of 1e-12 of their mean diagonal, so that equal heads do not stop it.
    """
    heads, d = thetas.shape[:2]
    phi = features(X, thetas).flatten(1, 2).permute(1, 0, 2).reshape(-1, heads * d)
    gram = phi.mT @ phi
    ridge = 1e-12 * gram.diagonal().mean() * torch.eye(heads * d).to(X)
    return torch.linalg.solve(gram + ridge, phi.mT @ Y.flatten(0, 1)).view(heads, d, d)


def descend(objective: Callable[[Tensor], Tensor], start: Tensor, steps: int = 40) -> Tensor:
    """Return the coordinates (heads, free) to which at most ``steps`` steps of L-BFGS on log ``objective`` lead from a
    start.

    The objective solves for W at every point itself, so that only the hull's coordinates are left (variable
    projection, Golub and Pereyra 1973).
    """
    coordinates = start.clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS([coordinates], max_iter=steps, line_search_fn="strong_wolfe", tolerance_change=1e-12)

    def closure():
        optimizer.zero_grad()
        value = objective(coordinates).log()
        value.backward()
        return value

    optimizer.step(closure)
    return coordinates.detach()


def fit_layer(X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"], *, heads: int) -> Report:
    """Run all six stages on X and Y in units of their own size, so that neither's scale matters, and judge nothing. A
    tenth of the examples, at least 500, is held out for the loss that is reported.

    Raises ValueError for tensors of other types or shapes, heads < 1, k < 2, non-finite numbers, labels that are all 0,
    too few examples (beside those held out n k >= 20 d^2 are needed), or a net of more than `MOST_TUPLES` tuples; and
    NotCertifiedError for k >= d and when too few rows pass the certificate.
    """
    held = check_examples(X, Y, heads)
    unit_x, unit_y = (values.square().mean().sqrt() for values in (X, Y))
    X, Y = X / unit_x, Y / unit_y
    X, Y, X_held, Y_held = X[:-held], Y[:-held], X[-held:], Y[-held:]
    _, _, residuals, hull = refine(X, Y, heads)
    few = slice(0, 8000)  # enough for a few coordinates
    points, _, tuples = best_tuple(X[few], Y[few], hull, hull_net(hull, heads), heads)
    if heads > 1:
        points = descend(
            lambda at: relative_loss(Teacher(hull.at(at), solve_ws(X[few], Y[few], hull.at(at))), X[few], Y[few]),
            points,
        )
    thetas = hull.at(points)
    ws = solve_ws(X[:50_000], Y[:50_000], thetas)
    loss = relative_loss(Teacher(thetas, ws), X_held, Y_held).item()
    of_w, of_theta = unit_y / unit_x, unit_x**-2
    hull = Hull(hull.base * of_theta, hull.directions)
    return Report(thetas * of_theta, ws * of_w, min(residuals), hull, tuples, loss)


def learn(X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"], *, heads: int) -> Report:
    """Return what `fit_layer` finds, if it explains the held-out examples about as well as the certified rows promised,
    5 promised^2 + 1e-4, and in any case but for `MOST_LOSS` of them: a certificate that promises little must not
    lower the bar that it is measured by. So labels with much noise are refused, like labels of another kind.

    Raises what `fit_layer` raises, and NotCertifiedError when the layer that the certified rows determine does not
    meet the bar (a degenerate sum W, other heads than were asked for, no such layer at all).
    """
    report = fit_layer(X, Y, heads=heads)
    bar = min(5 * report.promised**2 + 1e-4, MOST_LOSS)  # noise alone makes it two to four times promised^2
    if not report.loss < bar:
        raise NotCertifiedError(
            f"the certified rows fit to {report.promised:.2g}, but the layer that they determine has a held-out loss "
            f"of {report.loss:.2g}; must be below {bar:.2g}. Labels of another kind or of another number of heads, "
            "noise, too few sequences, or a sum W without full rank can be the cause"
        )
    return report


def check_examples(X, Y, heads) -> int:
    """Return the number of examples to hold out, a tenth and at least 500.

    Raises what `fit_layer` raises before it computes: ValueError for types, shapes, numbers and sizes that are refused,
    NotCertifiedError for k >= d.
    """
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise ValueError(f"heads = {heads!r}: must be a whole number, at least 1")
    for name, values in (("X", X), ("Y", Y)):
        if not isinstance(values, Tensor) or values.dtype not in (torch.float32, torch.float64):
            form = values.dtype if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(f"{name} of type {form}: must be a tensor of dtype torch.float64 or torch.float32")
        if values.ndim != 3 or not values.isfinite().all():
            raise ValueError(f"{name} of shape {tuple(values.shape)}: must be (n, k, d), every entry finite")
    if X.shape != Y.shape or X.dtype != Y.dtype:
        raise ValueError(
            f"X of shape {tuple(X.shape)} and {X.dtype}, Y of shape {tuple(Y.shape)} and {Y.dtype}: must be the same"
        )
    n, k, d = X.shape
    if k < 2:
        raise ValueError(f"k = {k}: must be at least 2; a single token attends to itself")
    if k >= d:
        raise NotCertifiedError(
            f"k = {k}, d = {d}: the certificate needs fewer tokens than dimensions; with k >= d nearly every row passes"
        )
    held, needed = max(n // 10, 500), -(-20 * d * d // k)
    if n - held < needed:
        raise ValueError(
            f"n = {n}: at least {needed} sequences of {k} tokens are needed for d = {d}, beside {held} held out"
        )
    few = min(heads, 4)  # the net of more heads is larger yet, and four have too many tuples already
    tuples = math.comb(len(_unit_ball(few - 1)), few)
    if tuples > MOST_TUPLES:
        raise ValueError(f"heads = {heads}: the net has {tuples:,} tuples or more; at most {MOST_TUPLES:,} are tried")
    if not Y.any():
        raise ValueError("Y: every label is 0; there is nothing to learn")
    return held


def one_head(X: Float[Tensor, "n k d"], Y: Float[Tensor, "n k d"]) -> tuple[Float[Tensor, "d d"], Float[Tensor, "d d"]]:
    """Theta and W of a single head, exactly, from noiseless examples (our derivation), for k < d.

    Y = A X W, so V = W^{-1} has Y V u = 0 for every u with X u = 0: linear equations for V, up to a factor, which the
    attention weights' sum of 1 fixes: A = Y V X^+. Their logarithms are linear in Theta; where they leave it open it
    has least norm.

    Raises ValueError for k >= d, or if there are too few equations.
    """
    n, k, d = X.shape
    if k >= d:
        raise ValueError(f"k = {k}, d = {d}: a null space needs fewer tokens than dimensions")
    independent = torch.linalg.matrix_rank(X) == k
    X, Y = X[independent], Y[independent]
    if len(X) * k * (d - k) < d * d:
        raise ValueError(f"n = {n}: at least {-(-d * d // (k * (d - k)))} sequences of independent tokens are needed")
    null = torch.linalg.svd(X).Vh[:, k:]  # (n, d - k, d), rows orthogonal to every token
    equations = torch.einsum("nki,nuj->nkuij", Y, null).reshape(-1, d * d)
    V = torch.linalg.svd(equations, full_matrices=False).Vh[-1].view(d, d)
    A = Y @ V @ torch.linalg.pinv(X)
    scale = A.sum(-1).mean()
    A, V = A / scale, V / scale
    rows, logs, _ = constraints(X, A.clamp_min(1e-300), torch.ones_like(A[..., 0], dtype=torch.bool))
    # on the CPU, since a GPU's least squares want a full rank
    M = torch.linalg.lstsq(rows.cpu(), logs[:, None].cpu(), driver="gelsd").solution.view(d, d)
    return M.to(rows.device), torch.linalg.inv(V)
