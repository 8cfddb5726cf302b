"""Lesson 02's probes on an in-context regressor that others trained: its errors beside
those of classical algorithms, what each layer knows and resembles, and the rates, beside conjugate gradient's.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.extras import Extra
from companion.core.readouts import apply_readouts, fit_readouts
from companion.topics.regression.baselines import conjugate_gradient, gradient_descent, least_squares, newton, predict
from companion.topics.regression.data import Prompts, prompts
from companion.topics.regression.model import InContextRegressor
from companion.topics.regression.probes import (
    DESCENT_STEPS,
    NEWTON_STEPS,
    Match,
    best_match,
    growth_rate,
    similarity_of_errors,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FITTED, ASKED, AT_ONCE = 512, 128, 32  # prompts for the readouts, prompts for everything else, prompts in one pass
STEP_SIZE = 0.01  # of gradient descent, as in Fu et al.'s code
WITHIN = 1.03  # a layer has stopped improving where its error is within 3 % of the last one's
SHOWN = 10  # rows of the table of errors


class Known(NamedTuple):
    """What the classical algorithms predict for the prompts, at every step of their grids."""

    newton: Float[Tensor, "steps batch n"]
    descent: Float[Tensor, "steps batch n"]


class Compared(NamedTuple):
    """The similarity of each row's errors to both algorithms', and the best steps."""

    similarity: tuple[Float[Tensor, "rows steps"], Float[Tensor, "rows steps"]]
    newton: Match
    descent: Match


@torch.no_grad()
def examine(model: InContextRegressor, *, name: str, kappa: float = 1.0, drawn: bool = True) -> "Figure | None":
    """Print errors, layers and rates, and return the maps of similarity: layers across, the best step of each marked.

    Raises ValueError for a ``kappa`` that is not finite or less than 1.

    ``model``: a regressor with `streams`, on the CPU.
    ``name``: what it is called in the first line.
    ``kappa``: the condition number of the inputs that it is asked about.
    ``drawn``: whether the maps are made.
    """
    size = model.config
    fitted, sample = (
        prompts(count, size.n, size.d, kappa=kappa, generator=seed) for seed, count in ((1, FITTED), (0, ASKED))
    )
    print(
        f"{name}: {size.layers} layers of {size.heads} heads, width {size.width}; d = {size.d}, "
        f"{size.n - 1} examples and a query"
    )
    layers = apply_readouts(fit_readouts(_streams(model, fitted), fitted.ys), _streams(model, sample))
    output = torch.cat([model(xs, ys) for xs, ys in _pieces(sample)])
    known = _classical(sample, kappa)
    compared = _compare(layers[1:], sample, known)
    print(_errors_report(output, sample, known))
    print(_layers_report(layers, sample, compared))
    print(_rates_report(layers, sample, known, compared))
    return _picture(compared) if drawn else None


def _pieces(sample: Prompts) -> list[tuple[Tensor, Tensor]]:
    """The prompts, few at a time: the streams of all of them at once would not fit a small machine."""
    return list(zip(sample.xs.split(AT_ONCE), sample.ys.split(AT_ONCE), strict=True))


def _streams(model: InContextRegressor, sample: Prompts) -> Float[Tensor, "depth batch n width"]:
    """The residual streams where predictions are made."""
    return torch.cat([model.streams(xs, ys) for xs, ys in _pieces(sample)], dim=1)


def _classical(sample: Prompts, kappa: float) -> Known:
    """Both algorithms at all steps; descent's step size is Fu et al.'s, for the inputs' scale, where that is stable."""
    xs, ys = sample.xs, sample.ys
    largest = torch.linalg.matrix_norm(xs[:, :-1].double(), ord=2).max().item() ** 2
    lr = min(STEP_SIZE / kappa, 1 / largest)
    ws = newton(xs, ys, NEWTON_STEPS), gradient_descent(xs, ys, DESCENT_STEPS, lr=lr)
    return Known(*(predict(w, xs) for w in ws))


def _compare(rows: Float[Tensor, "rows batch n"], sample: Prompts, known: Known) -> Compared:
    """The best steps for each layer, or each iterate of another algorithm."""
    both = tuple(similarity_of_errors(rows, steps, sample.ys) for steps in known)
    return Compared(both, best_match(both[0], NEWTON_STEPS), best_match(both[1], DESCENT_STEPS))


def _error(answers: Float[Tensor, "*rows batch n"], sample: Prompts) -> Float[Tensor, "*rows n"]:
    """Squared error over mean squared label: 1 for an answer of 0."""
    return (answers - sample.ys).square().mean(-2) / sample.ys.square().mean()


def _errors_report(output: Float[Tensor, "batch n"], sample: Prompts, known: Known) -> str:
    """Errors by the number of examples: the model's, least squares', and those of the steps that resemble it most."""
    match = _compare(output[None], sample, known)
    k, s = match.newton.step[0], match.descent.step[0]
    curves = torch.stack(
        [
            _error(output, sample),
            _error(predict(least_squares(sample.xs, sample.ys), sample.xs), sample),
            _error(known.newton[NEWTON_STEPS.index(k)], sample),
            _error(known.descent[DESCENT_STEPS.index(s)], sample),
        ],
        dim=1,
    )
    names = ("model", "least squares", f"Newton, {k:g}", f"descent, {s}")
    lines = [
        "\nSquared error over squared label, by the number of examples; both algorithms after the steps most like it",
        f"{'examples':>9} " + " ".join(f"{name:>15}" for name in names),
    ]
    last = len(curves) - 1
    lines += [
        f"{t:9} " + " ".join(f"{value:15.5f}" for value in curves[t])
        for t in np.unique(np.linspace(0, last, SHOWN).round().astype(int))
    ]
    lines.append(f"{'mean':>9} " + " ".join(f"{value:15.5f}" for value in curves.mean(0)))
    lines.append(
        f"The output resembles Newton by {match.newton.similarity[0]:.3f}, descent by {match.descent.similarity[0]:.3f}"
    )
    return "\n".join(lines)


def _layers_report(layers: Float[Tensor, "depth batch n"], sample: Prompts, compared: Compared) -> str:
    """What the readout of each layer gets wrong, and which step of each algorithm errs most alike."""
    errors = _error(layers, sample).mean(-1).tolist()
    lines = [
        "\nA readout of each layer: its error, and the steps that err most like it",
        f"{'layer':>9} {'error':>8} {'Newton step':>12} {'similarity':>11} {'descent step':>13} {'similarity':>11}",
        f"{0:9} {errors[0]:8.4f}",
    ]
    rows = zip(errors[1:], *compared.newton[:2], *compared.descent[:2], strict=True)
    lines += [
        f"{layer:9} {wrong:8.4f} {k:12g} {like_newton:11.3f} {s:13} {like_descent:11.3f}"
        for layer, (wrong, k, like_newton, s, like_descent) in enumerate(rows, 1)
    ]
    return "\n".join(lines)


def _rates_report(layers: Float[Tensor, "depth batch n"], sample: Prompts, known: Known, compared: Compared) -> str:
    """Do the matched steps grow along a line or exponentially, over the layers that improve? And conjugate gradient's?

    ``layers``: what each layer predicts.
    ``sample``: the prompts.
    ``known``: what the classical algorithms predict.
    ``compared``: the layers beside them.
    """
    errors = _error(layers, sample).mean(-1)
    last = max(3, int((errors[1:] <= WITHIN * errors[-1]).nonzero()[0]) + 1)
    if last >= len(layers):
        return f"\nHow the steps grow: {len(layers) - 1} layers are too few to tell"
    iterates = predict(conjugate_gradient(sample.xs, sample.ys, range(1, last + 1)), sample.xs)
    control = _compare(iterates, sample, known)
    lines = [
        f"\nHow the steps grow over layers 1 to {last}, the first within 3 % of the last one's error: R^2",
        f"{'':20} {'Newton: line':>13} {'exponential':>12} {'descent: line':>14} {'exponential':>12}",
    ]
    for name, match in (("model", compared), ("conjugate gradient", control)):
        shares = [share for steps in (match.newton, match.descent) for share in _r2(steps.step[:last])]
        lines.append(f"{name:>20} {shares[0]:>13} {shares[1]:>12} {shares[2]:>14} {shares[3]:>12}")
    lines.append("What conjugate gradient passes, too, does not tell a model's layers from it (lesson 02, section 6)")
    return "\n".join(lines)


def _r2(steps: list[float]) -> tuple[str, str]:
    """How well a line and an exponential fit, as text; "-" where all layers match the same step, and nothing grows.

    Half a step of the grid stands for none, whose logarithm has no place on a line.
    """
    if len(set(steps)) == 1:
        return "-", "-"
    fit = growth_rate(list(range(1, len(steps) + 1)), [max(step, NEWTON_STEPS[1] / 2) for step in steps])
    return f"{fit.linear_r2:.3f}", f"{fit.exponential_r2:.3f}"


def _picture(compared: Compared) -> "Figure":
    """Draw both maps of similarity, layers across, with the best step of each layer marked."""
    with Extra("lessons"):
        from matplotlib.figure import Figure  # noqa: PLC0415

        from companion.lesson.figures import style_figures  # noqa: PLC0415
    style_figures()
    figure = Figure(figsize=(10.5, 4.2), dpi=150)
    for ax, values, match, steps, marked, name in zip(
        figure.subplots(1, 2),
        compared.similarity,
        (compared.newton, compared.descent),
        (NEWTON_STEPS, DESCENT_STEPS),
        (range(0, 26, 5), [4**k for k in range(9)]),
        ("Newton step", "gradient descent step"),
        strict=True,
    ):
        drawn = ax.imshow(values.T.numpy(), aspect="auto", origin="lower", cmap="cividis", vmin=0.4, vmax=1)
        rows = [steps.index(step) for step in match.step]
        ax.plot(range(len(rows)), rows, "o", markerfacecolor="none", markeredgecolor="red")
        ax.set_xticks(range(len(rows)), range(1, len(rows) + 1))
        ax.set_yticks([steps.index(step) for step in marked], marked)
        ax.set(title=f"Like which {name}?", xlabel="layer", ylabel=name)
        ax.grid(False)
    figure.colorbar(drawn, ax=figure.axes, label="similarity of errors")
    return figure
