"""The picture of a bench: how far each layer has come from floor to ceiling."""

from collections.abc import Sequence
from itertools import cycle, pairwise

import numpy as np

from companion.core.extras import Extra
from companion.core.measuring import Row
from companion.lesson.figures import COLORS, Picture, style_figures
from companion.topics.layers.readings import LITTLE, from_floor, reading, row_name

with Extra("lessons"):
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

KNOWN_COLORS = {
    "softmax": COLORS["transformer"],
    "linear": COLORS["second"],
    "gated": COLORS["gradient descent"],
    "delta": COLORS["online gradient descent"],
    "lstm": COLORS["newton"],
}
LEGEND = """from the floor (0, the context ignored) to the ceiling (1, the best algorithm)
marks are means of seeds, lines reach from the least to the most
grey: near the floor; what is below -0.1 is drawn at -0.1"""
MARKERS = dict(zip(KNOWN_COLORS, "os^vD", strict=True))  # so that layers differ without their colors, too
OTHER_MARKERS = "PX*phd"
OTHER_COLORS = ("black", COLORS["highlight"], "#7F3C8D", "#8C564B", "#777777")


@plt.rc_context()
def picture(rows: Sequence[Row], title: str = "") -> Picture:
    """Draw a row for each task and size, from floor to ceiling: a mark for each layer at the mean of its seeds, and a
    line from the least to the most of them.
    """
    found = from_floor(rows)
    layers = list(dict.fromkeys(row["layer"] for row in rows))
    others = cycle(zip(OTHER_COLORS, OTHER_MARKERS, strict=False))
    style_figures()
    figure = Figure(figsize=(8, 1.2 + 0.3 * len(found)))  # pyplot would ask for this machine's window
    ax = figure.subplots()
    for number, layer in enumerate(layers):
        there = [(place, by_layer[layer]) for place, by_layer in enumerate(found.values()) if layer in by_layer]
        low, mean, high = (np.clip([of(seeds) for _, seeds in there], -0.1, 1) for of in (min, np.mean, max))
        y = np.array([place for place, _ in there]) + 0.6 * ((number + 0.5) / len(layers) - 0.5)
        color, marker = (KNOWN_COLORS[layer], MARKERS[layer]) if layer in KNOWN_COLORS else next(others)
        ax.hlines(y, low, high, color=color)
        ax.plot(mean, y, marker, color=color, markersize=5, label=layer)
    for place, ((task, *_), (following, *_)) in enumerate(pairwise(found)):
        if task != following:
            ax.axhline(place + 0.5, color="#999999", linewidth=0.6)
    ax.axvspan(-0.13, LITTLE, color="#eeeeee", zorder=0)
    ax.set(title=title, xlim=(-0.13, 1.03), ylim=(len(found) - 0.5, -0.5), xlabel=LEGEND)
    ax.set_yticks(range(len(found)), [row_name(*place) for place in found])
    ax.grid(False, axis="y")
    figure.legend(loc="outside upper center", ncols=min(6, len(layers)))
    return Picture(figure, alt="\n".join(reading(rows)))
