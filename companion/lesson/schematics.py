"""Draw schematics: a dozen marks that show one idea, before the formula that says it. A small vocabulary, on
matplotlib's own patches, for sheets that all have the same unit, so that a word is as large in one as in another.

    ax = paper(8, 4)
    asks, answers = box(ax, (6, 1), "the", color=SECOND), box(ax, (2, 1), "cat")
    arrow(ax, asks, answers, "looks", color=SECOND, bend=0.4, dashed=True)
    Picture(ax.figure, "The word the looks back at the word cat.")

Words stand beside the thing and never in a legend. A dashed arrow looks, a solid one moves something. The colour says
who acts: `FIRST` and `SECOND` are the layers, `OUTPUT` what is said, `STREAM` what nobody has touched.
"""

from collections.abc import Sequence
from math import pi

import numpy as np
from torch import Tensor

from companion.core.extras import Extra
from companion.lesson.figures import COLORS

with Extra("lessons"):
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

INK, STREAM = "#222222", COLORS["control"]
FIRST, SECOND, OUTPUT = COLORS["transformer"], COLORS["newton"], COLORS["gradient descent"]
UNIT, WIDEST = 0.35, 16  # inches; and how many of them leave letters of 8 px or more on a page of 400 px
LETTERS, SMALL = 11, 9.5  # points

Point = tuple[float, float]
Tree = str | tuple  # a leaf's text, or (text, child, child, ...)


def paper(width: float, height: float) -> Axes:
    """Return an empty sheet, ``width`` and ``height`` in units of 0.35 inches, (0, 0) at its lower left.

    Raises ValueError for a sheet that nobody could read on a narrow page.
    """
    if not (0 < width <= WIDEST and height > 0):
        raise ValueError(f"width = {width!r}, height = {height!r}: must be above 0, the width at most {WIDEST}")
    figure = plt.figure(figsize=(width * UNIT, height * UNIT), layout="none")
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return ax


def box(ax: Axes, at: Point, text: str, *, color: str = INK, width: float = 0, height: float = 1) -> FancyBboxPatch:
    """Draw a box around a text, large enough for it, and return the box: an end for arrows.

    ``ax``: the sheet.
    ``at``: the centre.
    ``text``: what stands in it; it may have several lines.
    ``color``: of who acts.
    ``width``, ``height``: the least, so that boxes in a row are alike.
    """
    around = _extent(ax, _write(ax, at, text, color, zorder=4))
    width, height = max(width, around.width + 0.5), max(height, around.height + 0.4)
    corner = (at[0] - width / 2, at[1] - height / 2)
    style = {"boxstyle": "round,pad=0,rounding_size=0.2", "edgecolor": color, "facecolor": _tint(color, 0.08)}
    drawn = FancyBboxPatch(corner, width, height, linewidth=1.4, zorder=3, **style)
    ax.add_patch(drawn)
    return drawn


def note(ax: Axes, at: Point, text: str, *, color: str = INK, align: str = "center") -> None:
    """Write a text on a little paper of its own, so that no line runs through it.

    ``ax``: the sheet.
    ``at``: its centre; half way up its left or right end, as ``align`` says.
    ``text``: it may have several lines.
    ``color``: of what it speaks of.
    ``align``: 'center', or 'left' to begin there, or 'right' to end there.
    """
    _write(ax, at, text, color, size=SMALL, align=align, zorder=5)


def arrow(
    ax: Axes,
    start: Point | FancyBboxPatch,
    end: Point | FancyBboxPatch,
    text: str = "",
    *,
    color: str = INK,
    bend: float = 0.0,
    dashed: bool = False,
) -> None:
    """Draw an arrow from edge to edge.

    ``ax``: the sheet.
    ``start``, ``end``: points, or what `box` returned.
    ``text``: written at the middle of the arrow.
    ``color``: of who looks or moves.
    ``bend``: how far the middle lies off the straight line, as a share of half its length; positive to the right of
        who goes along.
    ``dashed``: for looking; a solid arrow moves something.
    """
    (x, y), (to_x, to_y) = ends = _centre(start), _centre(end)
    drawn = FancyArrowPatch(
        *ends,
        patchA=start if isinstance(start, FancyBboxPatch) else None,
        patchB=end if isinstance(end, FancyBboxPatch) else None,
        connectionstyle=f"arc3,rad={bend}",
        shrinkA=2,
        shrinkB=2,
        arrowstyle="-|>",
        mutation_scale=13,
        color=color,
        linewidth=1.8,
        linestyle=(0, (4, 2)) if dashed else "-",
        capstyle="butt",
        joinstyle="miter",
        zorder=2,
    )
    ax.add_patch(drawn)
    if text:
        middle = (x + to_x) / 2 + bend / 2 * (to_y - y), (y + to_y) / 2 - bend / 2 * (to_x - x)
        note(ax, middle, text, color=color)


def stream(ax: Axes, words: Sequence[str], *, at: Point, step: float, top: float) -> list[float]:
    """Draw the stream of a text, a position a word, each running up to ``top``; return where each one's line stands.

    ``ax``: the sheet.
    ``words``: the text.
    ``at``: the centre of the first word's box.
    ``step``: from one word to the next.
    ``top``: where the lines end.
    """
    places = [at[0] + step * number for number in range(len(words))]
    for x, word in zip(places, words, strict=True):
        box(ax, (x, at[1]), word, width=min(step - 0.4, 2.2))
        line = {"arrowstyle": "-|>", "mutation_scale": 15, "linewidth": 3, "shrinkA": 0}
        ax.add_patch(FancyArrowPatch((x, at[1] + 0.5), (x, top), color=STREAM, zorder=1, **line))
    return places


def line_of_words(ax: Axes, at: Point, words: Sequence[str]) -> list[Bbox]:
    """Write ``words`` one after the other from ``at`` (left, middle) on; return each one's place on the sheet."""
    places, x = [], at[0]
    for word in words:
        places.append(_extent(ax, _write(ax, (x, at[1]), word, INK, align="left", zorder=4)))
        x = places[-1].x1 + 0.4
    return places


def tiles(
    ax: Axes,
    at: Point,
    values: np.ndarray | Tensor,
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    color: str = FIRST,
    cell: float = 0.8,
    shown: np.ndarray | None = None,
) -> Bbox:
    """Draw a matrix as rows of cells, the darker the larger the value, below 0 in grey; return where it lies.

    ``ax``: the sheet.
    ``at``: the upper left corner.
    ``values``: the largest magnitude gets the whole colour.
    ``rows``, ``columns``: labels, left of it and above it.
    ``color``: of the largest value.
    ``cell``: the side of a cell.
    ``shown``: which cells are drawn at all (a causal pattern has none above its diagonal); all unless told.
    """
    values = np.asarray(values, dtype=float)
    shown = np.ones_like(values, dtype=bool) if shown is None else np.asarray(shown)
    (height, width), (x, y), most = values.shape, at, float(np.abs(values).max()) or 1.0
    for i, j in np.argwhere(shown):
        tint = _tint(color if values[i, j] >= 0 else "#777777", float(abs(values[i, j])) / most)
        corner = (x + cell * j, y - cell * (i + 1))
        ax.add_patch(Rectangle(corner, cell, cell, facecolor=tint, edgecolor=_tint(INK, 0.3), linewidth=0.6, zorder=3))
    for i, label in enumerate(rows):
        note(ax, (x - 0.2, y - cell * (i + 0.5)), label, align="right")
    for j, label in enumerate(columns):
        turned = 90 if max(map(len, columns)) * 0.3 > cell else 0
        place = (x + cell * (j + 0.5), y + 0.15)
        ax.text(*place, label, ha="center", va="bottom", rotation=turned, fontsize=SMALL, color=INK)
    return Bbox.from_extents(x, y - cell * height, x + cell * width, y)


def outer_product(ax: Axes, at: Point, v: np.ndarray, u: np.ndarray, *, color: str = FIRST, cell: float = 0.4) -> Bbox:
    """Draw v u^T, a memory of one thing, with its column and its row beside it; return where the matrix lies.

    ``ax``: the sheet.
    ``at``: the upper left corner of the matrix.
    ``v``: the column on its left.
    ``u``: the row above it.
    ``color``: of all three.
    ``cell``: the side of a cell.
    """
    tiles(ax, (at[0] - 1.5 * cell, at[1]), v[:, None], color=color, cell=cell)
    tiles(ax, (at[0], at[1] + 1.5 * cell), u[None], color=color, cell=cell)
    return tiles(ax, at, np.outer(v, u), color=color, cell=cell)


def clock(ax: Axes, at: Point, number: int, period: int, *, color: str = FIRST) -> None:
    """Draw a number as the hand of a clock that goes round once in a period, with at most ten marks on its dial.

    ``ax``: the sheet.
    ``at``: the centre.
    ``number``: what the hand says, modulo the period.
    ``period``: how many make one turn.
    ``color``: of the hand.
    """
    radius = 1.3
    ax.add_patch(Circle(at, radius, edgecolor=INK, facecolor="white", linewidth=1.4, zorder=2))
    for mark in range(marks := min(period, 10)):
        way = _direction(mark / marks)
        ax.plot(*np.transpose([at + 0.88 * radius * way, at + radius * way]), color=INK, linewidth=1, zorder=3)
        note(ax, tuple(at + (radius + 0.42) * way), f"{mark * period / marks:g}")
    arrow(ax, at, tuple(at + 0.92 * radius * _direction(number / period)), color=color)
    note(ax, (at[0], at[1] - radius - 1.3), f"{number} mod {period} = {number % period}", color=color)


def tree(ax: Axes, at: Point, root: Tree, *, step: Point = (2.4, 1.8)) -> FancyBboxPatch:
    """Draw a tree from its root down, and return the root's box.

    ``ax``: the sheet.
    ``at``: where the leftmost leaf stands in x, and the root in y.
    ``root``: a leaf's text, or a tuple of a text and of the trees under it.
    ``step``: from leaf to leaf, and from a row to the one below.
    """
    text, *below = (root,) if isinstance(root, str) else root
    x, boxes = at[0], []
    for child in below:
        boxes.append(tree(ax, (x, at[1] - step[1]), child, step=step))
        x += step[0] * _leaves(child)
    middle = at[0] if not boxes else (_centre(boxes[0])[0] + _centre(boxes[-1])[0]) / 2
    top = box(ax, (middle, at[1]), text)
    for child in boxes:
        arrow(ax, top, child)
    return top


def _leaves(root: Tree) -> int:
    return 1 if isinstance(root, str) else sum(map(_leaves, root[1:])) or 1


def _direction(turn: float) -> np.ndarray:
    """Return the unit vector that lies ``turn`` of a whole turn clockwise from the top."""
    return np.array([np.sin(2 * pi * turn), np.cos(2 * pi * turn)])


def _centre(end: Point | FancyBboxPatch) -> Point:
    if isinstance(end, FancyBboxPatch):
        return end.get_x() + end.get_width() / 2, end.get_y() + end.get_height() / 2
    return end


def _tint(color: str, amount: float) -> tuple[float, ...]:
    """Return the colour that ``amount`` of a colour on white gives."""
    return tuple(1 - amount * (1 - channel) for channel in to_rgb(color))


def _write(
    ax: Axes, at: Point, text: str, color: str, *, size: float = LETTERS, align: str = "center", zorder: int
) -> Text:
    """Write a text in a darker shade of the ``color``, for letters need more contrast than areas do."""
    shade = tuple(0.78 * channel for channel in to_rgb(color))
    under = {"facecolor": "white", "edgecolor": "none", "pad": 1} if zorder > 4 else None
    return ax.text(*at, text, ha=align, va="center", color=shade, fontsize=size, zorder=zorder, bbox=under)


def _extent(ax: Axes, text: Text) -> Bbox:
    return text.get_window_extent().transformed(ax.transData.inverted())
