"""An explorer's pictures for a page without a kernel: a grid over its controls' values."""

import base64
import io
from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from typing import Any

from companion.core.extras import Extra

with Extra("lessons"):
    import ipywidgets
    from PIL import Image

MIME = "application/vnd.companion.frames+json"
FRAMES, BYTES, CONTROLS, COLOURS = 60, 2**20, 3, 32  # at most, for an explorer; two of them make a lesson's 2 MB


def values(control: ipywidgets.ValueWidget) -> list[tuple[str, Any]]:
    """Return what a control can be set to, each with its label: a slider's steps, a menu's options, what a box for
    typing suggests (`ipywidgets.Combobox`), both of a box to tick; its value alone if nothing is known of the others.
    """
    options, step = getattr(control, "options", None), getattr(control, "step", None)
    if options is not None:
        options = options.items() if isinstance(options, Mapping) else options
        return [option if isinstance(option, tuple) else (str(option), option) for option in options]
    if isinstance(control, ipywidgets.Checkbox):
        return [("no", False), ("yes", True)]
    if step is not None:
        low, high = (getattr(control, end) for end in ("min", "max"))
        found = [low + number * step for number in range(round((high - low) / step) + 1)]
        return [(f"{value:g}", value) for value in found]
    return [(str(control.value), control.value)]


def grid_sizes(counts: list[int], limit: int) -> list[int]:
    """Return how many values of each control a grid of at most ``limit`` frames takes, none more than its
    ``counts``.
    """
    sizes = [1] * len(counts)
    while True:
        able = [
            place
            for place, size in enumerate(sizes)
            if size < counts[place] and prod(sizes) // size * (size + 1) <= limit
        ]
        if not able:
            return sizes
        sizes[min(able, key=lambda place: sizes[place])] += 1


def thinned(choices: list[tuple[str, Any]], size: int, value: Any) -> list[tuple[str, Any]]:
    """Return ``size`` of the ``choices``, evenly apart from the first to the last, the one nearest to ``value`` among
    them.
    """
    here = min(range(len(choices)), key=lambda place: _distance(choices[place][1], value))
    if size == 1:
        return [choices[here]]
    places = [round(number * (len(choices) - 1) / (size - 1)) for number in range(size)]
    if here not in places:
        places[min(range(size), key=lambda number: abs(places[number] - here))] = here
    return [choices[place] for place in sorted(places)]


def _distance(one: Any, other: Any) -> float:
    return abs(one - other) if isinstance(one, int | float) and isinstance(other, int | float) else float(one != other)


def grid(picture: Callable[[dict[str, Any]], bytes], controls: dict[str, ipywidgets.ValueWidget]) -> dict[str, Any]:
    """Return the frames of ``picture`` (values to PNG) over the first three of the ``controls`` that can be moved, the
    others as they stand: ``controls``, each with its label, its values' labels, the place to start at and whether it is
    a ``menu`` (else a slider), and ``frames`` in base64, the last control's values following each other. Empty if
    nothing can be moved.
    """
    moved = {name: choices for name in controls if len(choices := values(controls[name])) > 1}
    moved = dict(list(moved.items())[:CONTROLS])
    if not moved:
        return {}
    axes, frames = _drawn(picture, moved, {name: control.value for name, control in controls.items()})
    return {
        "controls": [_described(name, controls[name], axis) for name, axis in axes.items()],
        "frames": [base64.b64encode(frame).decode() for frame in frames],
    }


def _drawn(
    picture: Callable[[dict[str, Any]], bytes], moved: dict[str, list[tuple[str, Any]]], start: dict[str, Any]
) -> tuple[dict[str, list[tuple[str, Any]]], list[bytes]]:
    """Return the values that each control of a grid takes, of all those in ``moved``, and the grid's frames: as many as
    fit into `FRAMES` and `BYTES`.
    """
    counts, limit = [len(choices) for choices in moved.values()], min(FRAMES, BYTES // len(small(picture(start))))
    while True:
        sizes = zip(moved, grid_sizes(counts, limit), strict=True)
        axes = {name: thinned(moved[name], size, start[name]) for name, size in sizes}
        places = [dict(zip(moved, (value for _, value in place), strict=True)) for place in product(*axes.values())]
        frames = [small(picture(start | place)) for place in places]
        total = sum(map(len, frames))
        if total <= BYTES or len(frames) == 1:
            return axes, frames
        limit = min(len(frames) - 1, limit * BYTES // total)  # others are larger than the first


def _described(name: str, control: ipywidgets.ValueWidget, axis: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return what a page must know of a control that takes the values of an ``axis``."""
    return {
        "label": getattr(control, "description", "") or name,
        "values": [label for label, _ in axis],
        "start": axis.index(thinned(axis, 1, control.value)[0]),
        "menu": not (hasattr(control, "step") or isinstance(control, ipywidgets.SelectionSlider)),
    }


def small(png: bytes) -> bytes:
    """Return the PNG in a few colours, which is a fraction of its size."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS).save(buffer, format="png", optimize=True)
    return buffer.getvalue()
