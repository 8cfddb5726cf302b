"""How far each layer of a bench has come, from floor to ceiling, as numbers and in words."""

from collections.abc import Sequence

import numpy as np

from companion.core.measuring import Row

LITTLE = 0.1  # of the way from floor to ceiling; less is near the floor


def from_floor(rows: Sequence[Row]) -> dict[tuple[str, int, str], dict[str, list[float]]]:
    """Return how far each layer has come from floor, 0, to ceiling, 1, in every seed: by task, size and axis."""
    found: dict[tuple[str, int, str], dict[str, list[float]]] = {}
    for row in rows:
        share = (row["score"] - row["floor"]) / (row["ceiling"] - row["floor"])
        found.setdefault((row["task"], row["size"], row["axis"]), {}).setdefault(row["layer"], []).append(share)
    return dict(sorted(found.items()))


def reading(rows: Sequence[Row]) -> list[str]:
    """Return the same as lines of text: how far each layer has come, 0 to 1, as the mean of its seeds [least, most]."""
    lines = []
    for place, by_layer in from_floor(rows).items():
        said = [
            f"{layer} {np.mean(seeds):.2f} [{min(seeds):.2f}, {max(seeds):.2f}]"
            + " (near the floor)" * bool(np.mean(seeds) < LITTLE)
            for layer, seeds in by_layer.items()
        ]
        lines.append(f"{row_name(*place)}: {'; '.join(said)}")
    return lines


def row_name(task: str, size: int, axis: str) -> str:
    """Return what a row of the picture is called: its task, what is varied if that is something else, and the size."""
    return f"{task} {size}" if task == axis else f"{task}, {axis} {size}"
