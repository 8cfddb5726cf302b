"""The picture of a circuit: layers upwards, a column for each head and one for the MLPs, wires as arrows."""

from companion.core.circuits import Part
from companion.core.extras import Extra
from companion.lesson.figures import COLORS, Picture, style_figures
from companion.pretrained.circuits.parts import Circuit, part_name

with Extra("lessons"):
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

SIDES = {"queries": COLORS["newton"], "keys": COLORS["transformer"], "values": COLORS["gradient descent"]}


def circuit_picture(circuit: Circuit, *, layers: int, heads: int, title: str = "") -> Picture:
    """Draw a ``circuit`` in a model of so many ``layers`` and ``heads`` a layer, under a ``title``."""
    with plt.rc_context():
        style_figures()
        return Picture(_drawn(circuit, layers, heads, title), alt=f"{title}: {', '.join(circuit.names)}")


def _drawn(circuit: Circuit, layers: int, heads: int, title: str) -> Figure:
    figure = Figure(figsize=(2.5 + 0.5 * heads, 1.5 + 0.21 * max(8, layers)))
    ax = figure.subplots()

    def place(part: Part) -> tuple[float, float]:
        return (heads + 0.5 if part.head is None else part.head, part.layer)

    everywhere = [place(Part(layer, head)) for layer in range(layers) for head in (*range(heads), None)]
    ax.plot(*zip(*everywhere, strict=True), ".", color=COLORS["control"], markersize=3)
    near = 0.11 * max(1, layers / 12)
    for part in circuit.parts:
        x, y = place(part)
        marker, color = ("s", COLORS["highlight"]) if part.head is None else ("o", COLORS["second"])
        ax.plot(x, y, marker, color=color, markersize=8)
        ax.annotate(part_name(part), (x, y), (x + 0.22, y + near), fontsize=7)
    for wire in circuit.wires:
        arrow = {"arrowstyle": "-|>", "color": SIDES[wire.side], "connectionstyle": "arc3,rad=0.12", "shrinkB": 4}
        ax.annotate("", place(wire.reader), place(wire.writer), arrowprops=arrow)
    there = [side for side in SIDES if any(wire.side == side for wire in circuit.wires)]
    if there:
        handles = [Line2D([], [], color=SIDES[side], label=f"by {side}") for side in there]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    ax.set_xticks([*range(heads), heads + 0.5], [*map(str, range(heads)), "MLP"])
    ax.set_yticks(range(0, layers, 1 if layers < 13 else 5))
    ax.set(title=title, xlabel="head", ylabel="layer", xlim=(-0.6, heads + 1.3), ylim=(-0.8, layers - 0.2))
    ax.grid(False)
    return figure
