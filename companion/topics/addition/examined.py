"""Lesson 04's spectra and probes on the number embeddings of a model that others trained; and the transplant: an adder
trained on them.
"""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.extras import Extra
from companion.core.recipe import Recipe
from companion.topics.addition.data import sums
from companion.topics.addition.fourier import periods, relative_spectrum, shuffled_level
from companion.topics.addition.probes import accuracies, modular_probe
from companion.topics.addition.recipes import transplanted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRONGEST = 8
MARKED = (10, 5, 2.5, 2)  # what Zhou et al. find in GPT-2-XL
MODULI = (2, 5, 10, 3, 7)  # the last two are the controls: they do not divide 10


def examine(
    embeddings: Float[Tensor, "numbers width"], *, name: str, scale: str | None = None, drawn: bool = True
) -> "Figure | None":
    """Print the strongest waves, the probes and, where there is a ``scale``, what an adder makes of the embeddings;
    return their spectrum, if it is to be ``drawn``. Raises ValueError where ``scale`` has more answers than there are
    embeddings.

    ``embeddings``: of the numbers 0, 1, .., in this order.
    ``name``: the first line.
    ``scale``: at which an adder is trained on them: smoke, course or paper.
    """
    plans = _transplants(embeddings, scale) if scale else {}
    print(name)
    waves, lengths, level = relative_spectrum(embeddings), periods(len(embeddings)), shuffled_level(embeddings)
    print(_waves_report(waves, lengths, level))
    print(_probes_report(embeddings))
    if plans:
        print(_adders_report(plans))
    return _picture(waves, lengths, level) if drawn else None


def _waves_report(sizes: Float[Tensor, "waves"], lengths: Float[Tensor, "waves"], level: float) -> str:
    """The strongest waves as lines, how many exceed the null ``level``, and at which rank the periods of 10, 5, 2.5 and
    2 are.
    """
    order = sizes.argsort(descending=True)
    lines = [f"\nThe {STRONGEST} strongest of {len(sizes)} waves, beside the median one", f"{'period':>9} {'size':>8}"]
    lines += [f"{lengths[k]:9.2f} {sizes[k]:8.2f}" for k in order[:STRONGEST]]
    lines.append(
        f"Null band: in random order the strongest stays below {level:.2f} (95 % of shuffles); "
        f"{int((sizes > level).sum())} waves exceed it"
    )
    ranks = {period: int((lengths[order] - period).abs().argmin()) + 1 for period in MARKED}
    within = {period: " (in the band)" * bool(sizes[order[rank - 1]] <= level) for period, rank in ranks.items()}
    lines.append(
        "Ranks: " + ", ".join(f"period {period:g} is number {rank}{within[period]}" for period, rank in ranks.items())
    )
    return "\n".join(lines)


def _probes_report(embeddings: Float[Tensor, "numbers width"]) -> str:
    """How often a linear probe names a held-out number mod m: of these embeddings, of them shuffled, by chance."""
    shuffled = embeddings[torch.randperm(len(embeddings), generator=torch.Generator().manual_seed(0))]
    lines = [
        "\nA linear map names a number that it was not fitted on, mod m",
        f"{'m':>9} {'right':>8} {'shuffled':>9} {'chance':>8}",
    ]
    lines += [
        f"{m:9} {modular_probe(embeddings, m):8.2f} {modular_probe(shuffled, m):9.2f} {1 / m:8.2f}" for m in MODULI
    ]
    return "\n".join(lines)


def _transplants(embeddings: Float[Tensor, "numbers width"], scale: str) -> dict[str, Recipe]:
    """An adder on these embeddings, and the control: on the same ones in random order."""
    shuffled = embeddings[torch.randperm(len(embeddings), generator=torch.Generator().manual_seed(0))]
    return {"these": transplanted(embeddings, scale), "shuffled": transplanted(shuffled, scale)}


def _adders_report(plans: dict[str, Recipe]) -> str:
    """Train each, and say how many of the sums kept for testing it gets right."""
    lines = [
        "\nAn adder that learns on these embeddings, frozen",
        f"{'numbers':>9} {'steps':>8} {'right':>8} {'within 2':>9}",
    ]
    for name, plan in plans.items():
        model, _ = plan.train(seed=0)
        _, test = sums(model.config.numbers)
        with torch.no_grad():
            score = accuracies(model(test.operands), test.answers)
        lines.append(f"{name:>9} {plan.schedule.steps:8} {score.exact:8.2f} {score.within_2:9.2f}")
    return "\n".join(lines)


def _picture(sizes: Float[Tensor, "waves"], lengths: Float[Tensor, "waves"], level: float) -> "Figure":
    """Draw the spectrum against the frequency, with the periods of 10, 5, 2.5 and 2 marked, and the null ``level``."""
    with Extra("lessons"):
        from matplotlib.figure import Figure  # noqa: PLC0415

        from companion.lesson.figures import COLORS, style_figures  # noqa: PLC0415
    style_figures()
    figure = Figure(figsize=(8, 3.5), dpi=150)
    ax = figure.subplots()
    ax.plot(1 / lengths, sizes, color=COLORS["transformer"])
    ax.axhline(level, color=COLORS["control"], linestyle="--", label="strongest wave of shuffled rows (95 %)")
    ax.legend()
    for period in MARKED:
        ax.axvline(1 / period, color=COLORS["highlight"], linestyle=":", zorder=0)
    top = ax.secondary_xaxis("top")
    top.set_xticks([1 / period for period in MARKED], [f"period {period:g}" for period in MARKED])
    ax.set(xlabel="frequency (waves per number)", ylabel="size (median wave = 1)", yscale="log")
    ax.set_title(
        f"The strongest wave has period {lengths[sizes.argmax()]:.4g}: {sizes.max():.3g} times the median wave"
    )
    return figure
