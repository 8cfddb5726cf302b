"""How close two ways of predicting are: by their errors, or by the weights that they behave as if they had.

Fu, Chen, Jia, Sharan (2024), arXiv:2310.17086, section 4 (there "SimE" and "SimW").
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from companion.core.readouts import apply_readouts
from companion.topics.regression.data import shifted_prompts

NEWTON_STEPS = [k / 4 for k in range(101)]  # the grids of the rate test; both are finer than a doubling
DESCENT_STEPS = sorted({round(2 ** (k / 4)) for k in range(65)})


def similarity_of_errors(
    first: Float[Tensor, "rows batch n"], second: Float[Tensor, "columns batch n"], ys: Float[Tensor, "batch n"]
) -> Float[Tensor, "rows columns"]:
    """Compute the mean over prompts of the cosine between two predictors' residuals, for every pair.

    A residual vector runs over the prefixes of one prompt; the empty prefix, where every algorithm says 0, is left out.
    """
    a, b = (F.normalize((ys - predictions)[..., 1:].double(), dim=-1) for predictions in (first, second))
    return (torch.einsum("rbn,cbn->rc", a, b) / ys.shape[0]).to(ys.dtype)


def induced_weights(
    predictor: Callable[[Tensor, Tensor], Tensor],
    xs: Float[Tensor, "batch n d"],
    ys: Float[Tensor, "batch n"],
    *,
    queries: int | None = None,
    seed: int = 0,
    after: Sequence[int] | None = None,
    chunk: int = 32,
) -> Float[Tensor, "rows batch prefixes d"]:
    """Fit the weights that a predictor acts as if it had after each prefix.

    After a prefix the predictor is asked about fresh inputs, of the size of those in the prompts, and least squares
    fits its answers.

    ``predictor``: ``predictor(xs, ys)`` gives predictions (rows, batch, n).
    ``xs``, ``ys``: the prompts.
    ``queries``: how many inputs it is asked about, at least d; 4 d unless told.
    ``seed``: of those inputs.
    ``after``: how many examples the prefixes have, each at most n - 1; all of 0 .. n - 1 unless told.
    ``chunk``: prompts asked about at a time, which bounds the memory.
    """
    _, n, d = xs.shape
    queries = 4 * d if queries is None else queries
    if queries < d:
        raise ValueError(f"queries = {queries}: at least d = {d} are needed to determine the weights")
    after = range(n) if after is None else after
    if not all(0 <= t < n for t in after):
        raise ValueError(f"after = {list(after)}: each must be at least 0 and at most n - 1 = {n - 1}")
    generator = torch.Generator(device=xs.device).manual_seed(seed)
    asked = torch.randn(queries, d, generator=generator, device=xs.device, dtype=xs.dtype) * xs.square().mean().sqrt()
    inverse = torch.linalg.pinv(asked)  # (d, queries)
    weights = []
    for t in after:
        answers = []
        for few_xs, few_ys in zip(xs.split(chunk), ys.split(chunk), strict=True):
            prompts = few_xs[:, None, : t + 1].repeat(1, queries, 1, 1)
            prompts[:, :, t] = asked
            labels = few_ys[:, None, : t + 1].repeat(1, queries, 1)
            predicted = predictor(prompts.flatten(0, 1), labels.flatten(0, 1))[..., t]
            answers.append(predicted.unflatten(-1, (len(few_xs), queries)))
        weights.append(torch.cat(answers, dim=1) @ inverse.mT)
    return torch.stack(weights, dim=2)


def readout_predictor(model, readouts: Float[Tensor, "depth width_and_one"]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that gives what each layer of an in-context regressor predicts through its readout: ``(xs,
    ys)`` to (depth, batch, n).

    ``readouts`` are `fit_readouts`' of the same model; depth counts the stream before the first layer.
    """
    return lambda xs, ys: apply_readouts(readouts, model.streams(xs, ys))


def errors_by_gap(
    predictor: Callable[[Tensor, Tensor], Tensor], xs: Float[Tensor, "batch n d"], ys: Float[Tensor, "batch n"]
) -> Float[Tensor, "n batch"]:
    """Measure what is left of old examples: after all n of them, the g-th from the end is asked for again; row g - 1 is
    its squared error.

    ``predictor(xs, ys)`` gives predictions (batch, n + 1) for the n examples and the question after them. Errors are
    divided by d. Source: Fu et al. (2024), section 4.5, figure 5 and appendix A.6, with prompts of n = 20 examples.
    """
    n, d = xs.shape[1:]
    unknown = torch.zeros_like(ys[:, :1])
    errors = []
    for gap in range(1, n + 1):
        asked = torch.cat([xs, xs[:, n - gap, None]], dim=1)
        answer = predictor(asked, torch.cat([ys, unknown], dim=1))[:, -1]
        errors.append((answer - ys[:, n - gap]).square() / d)
    return torch.stack(errors)


@torch.no_grad()
def errors_when_shifted(model, shift: str, *, count: int, seed: int = 0) -> list[float]:
    """Measure the squared error over d of `shifted_prompts`, with d and with 2 d examples; with d / 2 and d - 1 where
    the query is orthogonal to them.

    ``model``: gives predictions (batch, n), and has a ``config.d``.
    ``shift``: one of `SHIFTS`.
    ``count``: how many prompts.
    ``seed``: of the prompts.
    """
    d = model.config.d
    sizes = (d // 2, d - 1) if shift == "query orthogonal" else (d, 2 * d)
    errors = []
    for examples in sizes:
        generator = torch.Generator(model.read_in.weight.device).manual_seed(30_000 + seed)
        xs, ys, _ = shifted_prompts(shift, count, examples, d, generator=generator)
        errors.append(((model(xs, ys) - ys)[:, -1].square().mean() / d).item())
    return errors


def order_sensitivity(
    predictor: Callable[[Tensor, Tensor], Tensor],
    xs: Float[Tensor, "batch n d"],
    ys: Float[Tensor, "batch n"],
    *,
    seed: int = 0,
) -> float:
    """Measure how much the last prediction depends on the order of the examples before it, which carries no
    information.

    The mean squared difference between the predictions for two orders, over the mean squared label: 0 for least
    squares.

    ``predictor``: ``predictor(xs, ys)`` gives predictions (batch, n).
    ``xs``, ``ys``: the prompts.
    ``seed``: of the other order.
    """
    generator = torch.Generator(device=xs.device).manual_seed(seed)
    order = torch.rand(xs.shape[0], xs.shape[1] - 1, generator=generator, device=xs.device).argsort(dim=1)
    last = torch.full_like(order[:, :1], xs.shape[1] - 1)
    order = torch.cat([order, last], dim=1)
    shuffled = predictor(xs.gather(1, order[..., None].expand_as(xs)), ys.gather(1, order))
    return ((shuffled - predictor(xs, ys))[:, -1].square().mean() / ys.square().mean()).item()


class Match(NamedTuple):
    """The best step for each row, its similarity, and the steps within ``tie`` of it (first and last)."""

    step: list[float]
    similarity: list[float]
    ties: list[tuple[float, float]]


def best_match(similarity: Float[Tensor, "rows columns"], steps: list[float], tie: float = 0.0005) -> Match:
    """Find the step of an algorithm that each row resembles most, and the range of steps that tie with it.

    ``similarity`` has a column for each of ``steps``; two that differ by at most ``tie`` are the same to three digits.
    Raises ValueError where there are other than one step a column.
    """
    if similarity.shape[1] != len(steps):
        raise ValueError(
            f"steps: has {len(steps)} entries; must have {similarity.shape[1]}, one for each column of similarity"
        )
    best, index = similarity.max(dim=1)
    tied = [
        [steps[i] for i in torch.nonzero(row >= top - tie).flatten().tolist()]
        for row, top in zip(similarity, best, strict=True)
    ]
    return Match([steps[i] for i in index.tolist()], best.tolist(), [(min(group), max(group)) for group in tied])


class Rate(NamedTuple):
    """R^2 of steps = a + slope * layer and of log2(steps) = a + slope2 * layer."""

    slope: float
    linear_r2: float
    log2_slope: float
    exponential_r2: float


def growth_rate(layers: list[int], steps: list[float]) -> Rate:
    """Does the matched step grow linearly or exponentially with the layer? Steps must be positive, over three layers or
    more.
    """
    if len(layers) != len(steps) or len(steps) < 3 or min(steps) <= 0:
        said = f"layers = {layers}, steps = {steps}"
        raise ValueError(f"{said}: must be equally many, at least three, and every step above 0")
    x, y = torch.tensor(layers, dtype=torch.float64), torch.tensor(steps, dtype=torch.float64)
    fits = []
    for target in (y, y.log2()):
        dx, dy = x - x.mean(), target - target.mean()
        slope = (dx @ dy) / (dx @ dx)
        left = (dy - slope * dx).square().sum() / dy.square().sum().clamp_min(1e-300)
        fits += [slope.item(), 1 - left.item()]
    return Rate(*fits)
