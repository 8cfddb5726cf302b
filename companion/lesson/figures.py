"""The house style: one palette that survives colour blindness, one heat map, one band around a mean, one way to show a
figure with its alt text.

Figures carry their own white paper, so that they read the same on a dark page and on a light one. Heat map and band are
seaborn's, which is loaded where one is drawn: with pandas and scipy.stats it takes longer than the rest of a lesson's
first cell.
"""

import base64
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from companion.core.defaults import set_back
from companion.core.extras import Extra

with Extra("lessons"):
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.rcsetup import cycler

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

# Okabe and Ito (2008): eight colours that people with any common colour vision tell apart. Who is who is the same in
# every lesson.
COLORS = {
    "transformer": "#0072B2",
    "newton": "#D55E00",
    "gradient descent": "#009E73",
    "least squares": "#000000",
    "online gradient descent": "#CC79A7",
    "control": "#BBBBBB",
    "highlight": "#E69F00",
    "second": "#56B4E9",
}

PAPER, COLORMAP = "white", "cividis"
STYLE: "dict[RcKeyType, object]" = {
    "savefig.facecolor": PAPER,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "text.color": ".15",
    "axes.labelcolor": ".15",
    "axes.edgecolor": ".15",
    "xtick.color": ".15",
    "ytick.color": ".15",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.prop_cycle": cycler(color=list(COLORS.values())),
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "image.cmap": COLORMAP,
}


def use_house_style() -> None:
    """Begin a lesson: figures look like the course's (`style_figures`), and torch computes with its own defaults."""
    style_figures()
    set_back()


def style_figures() -> None:
    """Make every figure from here on look like the course's, whatever this machine's matplotlibrc says."""
    plt.rcdefaults()
    plt.rcParams.update(STYLE)


def png(figure: Figure) -> bytes:
    """Return the figure as a PNG, on the course's paper. It is drawn once; ``savefig`` would draw all twice, the first
    time for the layout, which the canvas settles as well.
    """
    buffer = io.BytesIO()
    figure.set_facecolor(PAPER)
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


class Picture:
    """A finished figure, a cell's last expression, with the ``alt`` text that stands for it where it cannot be seen."""

    def __init__(self, figure: Figure, alt: str):
        self.alt, self.png = alt, png(figure)
        plt.close(figure)  # or the notebook would show it a second time, without the text

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}, {
            "image/png": {"alt": self.alt}
        }


def heat_map(
    ax: Axes,
    values: np.ndarray,
    *,
    rows: Iterable[object],
    columns: Iterable[object],
    best: str | None = None,
    low: float | None = None,
    high: float | None = None,
) -> None:
    """Draw a matrix as colours with its numbers written in, by seaborn: cell (i, j) reaches from j to j + 1 in x and
    from i to i + 1 in y.

    ``ax``: where it is drawn.
    ``values``: the matrix.
    ``rows``, ``columns``: their labels.
    ``best``: 'column' or 'row', of each of which the largest is framed; None for no frames.
    ``low``, ``high``: the ends of the colours; those of the values unless told.
    """
    with Extra("lessons"):
        import seaborn as sns  # noqa: PLC0415 - heavy: see above

    values = np.asarray(values, dtype=float)
    # two digits behind the point, or none from 10 on: a cell has room for four characters
    numbers = [
        [re.sub(r"^(-?)0\.", r"\1.", f"{value:.{2 if abs(value) < 10 else 0}f}") for value in row] for row in values
    ]
    sns.heatmap(
        values,
        ax=ax,
        vmin=low,
        vmax=high,
        cmap=COLORMAP,
        cbar=False,
        annot=np.array(numbers, dtype=object),
        fmt="",
        annot_kws={"fontsize": min(9.0, 180 / max(values.shape))},
        xticklabels=[str(column) for column in columns],
        yticklabels=[str(row) for row in rows],
    )
    ax.tick_params(axis="y", rotation=0)
    ax.grid(False)
    [mesh] = ax.collections
    written, dark = np.argwhere(np.isfinite(values)), np.asarray(mesh.norm(values)) < 0.5
    for text, (i, j) in zip(ax.texts, written, strict=True):  # seaborn's own choice of ink is too faint on middle tones
        text.set_color("white" if dark[i, j] else "black")
    if best is not None:
        axis = 0 if best == "column" else 1
        filled = np.where(np.isfinite(values), values, -np.inf)
        for k, at in enumerate(filled.argmax(axis=axis)):
            x, y = (k, at) if best == "column" else (at, k)
            if not np.isfinite(values[y, x]):  # a column (row) without any number has no best one
                continue
            ax.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.2))


def mean_and_range(
    ax: Axes,
    x: Iterable[float],
    runs: Float[Tensor, "runs points"] | np.ndarray,
    *,
    label: str,
    color: str,
    **line: Any,
) -> None:
    """Draw the mean over runs as a line and, from the least to the largest run, a band, by seaborn.

    Raises ValueError for a y-axis that is logarithmic already: there seaborn would average logarithms. Make it so
    afterwards.

    ``ax``: where it is drawn.
    ``x``: of each point.
    ``runs``: a row for each run.
    ``label``, ``color``: of the line; the band has the same colour, paler.
    ``line``: what else the line has, such as a marker.
    """
    with Extra("lessons"):
        import seaborn as sns  # noqa: PLC0415 - heavy: see above

    if ax.get_yscale() != "linear":
        raise ValueError(
            f"ax: its y-axis is {ax.get_yscale()}; must be linear here. Draw the mean first, then set the scale"
        )
    values = np.asarray(runs, dtype=float)
    sns.lineplot(
        x=np.tile([*x], len(values)),
        y=values.ravel(),
        errorbar=("pi", 100),
        ax=ax,
        label=label,
        color=color,
        legend=False,
        **line,
    )


def learning_curve(
    ax: Axes, curve: Sequence[tuple[int, float]], *, label: str, color: str, floor: float | None = None
) -> None:
    """Draw loss against step, on a logarithmic scale, above the ``floor`` that no learner can beat.

    ``ax``: where it is drawn.
    ``curve``: pairs (step, loss).
    ``label``, ``color``: of the line.
    ``floor``: a loss, drawn as a line; None for no line.
    """
    steps, losses = zip(*curve, strict=True)
    ax.plot(steps, losses, color=color, label=label)
    if floor is not None:
        ax.axhline(floor, color=COLORS["least squares"], linestyle="--", label="least squares")
    ax.set(xlabel="training step", ylabel="loss", yscale="log")
    ax.legend()
