"""Figures: frames in the right cells, alt text, and colours that people with any colour vision tell apart."""

import base64
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from companion.figures import COLORS, Picture, heat_map, learning_curve

# Machado, Oliveira, Fernandes (2009): severe protanomaly, deuteranomaly, tritanomaly on linear RGB
VISION = {
    "normal": np.eye(3),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritan": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}


@pytest.mark.parametrize("vision", VISION)
def test_colours_stay_apart(vision):
    linear = {name: np.array(to_rgb(color)) ** 2.2 for name, color in COLORS.items()}
    seen = {name: (VISION[vision] @ value).clip(0, 1) ** (1 / 2.2) for name, value in linear.items()}
    nearest = min(itertools.combinations(seen.items(), 2), key=lambda pair: np.linalg.norm(pair[0][1] - pair[1][1]))
    assert np.linalg.norm(nearest[0][1] - nearest[1][1]) > 0.1, nearest


@pytest.mark.parametrize("best, cells", [("column", {(0, 1), (1, 0), (2, 1)}), ("row", {(1, 0), (2, 1)})])
def test_the_heat_map_frames_the_best_cells_and_writes_every_number(best, cells):
    ax = Figure().subplots()
    heat_map(ax, np.array([[0.1, 0.9, np.nan], [0.5, 0.2, 0.8]]), rows=[5, 6], columns=[1, 2, 3], best=best)
    frames = {(round(patch.get_x() + 0.5), round(patch.get_y() + 0.5)) for patch in ax.patches if isinstance(patch, Rectangle)}
    assert frames == cells
    assert sorted(text.get_text() for text in ax.texts) == [".10", ".20", ".50", ".80", ".90"]


def test_a_picture_has_alt_text_and_closes_its_figure():
    figure, _ = plt.subplots()
    data, metadata = Picture(figure, "What is to be seen.")._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == data["text/plain"] == "What is to be seen."
    assert not plt.fignum_exists(figure.number)


def test_a_learning_curve_shows_the_floor():
    ax = Figure().subplots()
    learning_curve(ax, [(1, 1.0), (2, 0.5)], label="model", color="black", floor=0.25)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["model", "least squares"]
    assert ax.get_yscale() == "log"
