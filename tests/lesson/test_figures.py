"""Figures: frames in the right cells, numbers that can be read, alt text, and colours that people with any colour
vision tell apart.
"""

import base64
import io
import itertools

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from companion.lesson.figures import (
    COLORS,
    STYLE,
    Picture,
    heat_map,
    learning_curve,
    mean_and_range,
    png,
    use_house_style,
)

# Machado, Oliveira, Fernandes (2009): severe protanomaly, deuteranomaly, tritanomaly on linear RGB
VISION = {
    "normal": np.eye(3),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritan": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])  # from linear sRGB


def linear(color):
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(light):
    """CIELAB, in which a distance of about 2 can just be seen."""
    x, y, z = np.cbrt((XYZ @ light / XYZ.sum(axis=1)).clip(0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
def test_colours_stay_apart(vision):
    seen = {name: lab((VISION[vision] @ linear(color)).clip(0, 1)) for name, color in COLORS.items()}
    distance = {pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in itertools.combinations(seen, 2)}
    nearest = min(distance, key=distance.get)
    assert distance[nearest] > 12, nearest


def test_the_heat_maps_numbers_stand_out_from_their_cells():
    ax = Figure().subplots()
    with matplotlib.rc_context(STYLE):
        heat_map(ax, np.linspace(0, 1, 101)[None], rows=[0], columns=range(101))
    [mesh] = ax.collections
    for text, color in zip(ax.texts, mesh.cmap(mesh.norm(mesh.get_array()[0])), strict=True):
        light, dark = sorted((XYZ[1] @ linear(shade) for shade in (text.get_color(), color[:3])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 4  # WCAG 2 asks for 3 in large text, 4.5 in small


@pytest.mark.parametrize(
    "best, cells", [(None, set()), ("column", {(0, 1), (1, 0), (2, 1)}), ("row", {(1, 0), (2, 1)})]
)
def test_the_heat_map_frames_the_best_cells_and_writes_every_number(best, cells):
    ax = Figure().subplots()
    heat_map(ax, np.array([[0.1, 0.9, np.nan], [0.5, 0.2, 0.8]]), rows=[5, 6], columns=["a", "b", "c"], best=best)
    assert frames(ax) == cells
    written = {tuple(int(place) for place in text.get_position()): text.get_text() for text in ax.texts}
    assert written == {(0, 0): ".10", (1, 0): ".90", (0, 1): ".50", (1, 1): ".20", (2, 1): ".80"}
    assert [label.get_text() for label in (*ax.get_xticklabels(), *ax.get_yticklabels())] == ["a", "b", "c", "5", "6"]


def test_a_column_without_numbers_gets_no_frame():
    ax = Figure().subplots()
    heat_map(ax, np.array([[np.nan, 0.3], [np.nan, 0.7]]), rows=[1, 2], columns=[1, 2], best="column")
    assert frames(ax) == {(1, 1)}


def frames(ax):
    return {(round(patch.get_x()), round(patch.get_y())) for patch in ax.patches if isinstance(patch, Rectangle)}


@pytest.mark.parametrize(
    "value, text",
    [(0, ".00"), (0.999, "1.00"), (-0.25, "-.25"), (9.996, "10.00"), (10.05, "10"), (120.5, "120"), (-30, "-30")],
)
def test_a_number_loses_its_leading_zero_alone(value, text):
    ax = Figure().subplots()
    heat_map(ax, np.array([[value]]), rows=[1], columns=[1])
    assert ax.texts[0].get_text() == text


def test_a_scale_may_be_given():
    ax = Figure().subplots()
    heat_map(ax, np.array([[0.4, 0.6]]), rows=[1], columns=[1, 2], low=-1, high=1)
    assert ax.collections[0].get_clim() == (-1, 1)


# -- Pictures


@pytest.fixture
def picture():
    figure, ax = plt.subplots()
    ax.plot([1, 2])
    return Picture(figure, 'A line, "rising" & <thin>.'), figure.number


def test_a_picture_has_alt_text_and_closes_its_figure(picture):
    picture, number = picture
    data, metadata = InteractiveShell.instance().display_formatter.format(picture)  # what a notebook keeps
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == data["text/plain"] == 'A line, "rising" & <thin>.'
    assert not plt.fignum_exists(number)


def test_a_figure_has_paper_of_its_own():
    with matplotlib.rc_context():
        use_house_style()
        figure, _ = plt.subplots(facecolor="none")
        pixels = plt.imread(io.BytesIO(png(figure)))
        plt.close(figure)
    assert (pixels[0, 0] == 1).all()  # white, and nothing shines through


def test_a_learning_curve_shows_the_floor():
    ax = Figure().subplots()
    learning_curve(ax, [(1, 1.0), (2, 0.5)], label="model", color="black", floor=0.25)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["model", "least squares"]
    assert ax.get_yscale() == "log"
    assert ax.lines[0].get_xydata().tolist() == [[1, 1], [2, 0.5]] and set(ax.lines[1].get_ydata()) == {0.25}


def test_a_learning_curve_does_without_a_floor():
    ax = Figure().subplots()
    learning_curve(ax, [(1, 1.0), (2, 0.5)], label="model", color="black")
    assert len(ax.lines) == 1


def test_lines_that_name_no_colour_take_the_palette():
    with matplotlib.rc_context(STYLE):
        ax = Figure().subplots()
        drawn = [ax.plot([0, 1])[0].get_color() for _ in COLORS]
    assert drawn == list(COLORS.values())


def test_a_band_reaches_from_the_least_run_to_the_largest():
    runs = np.array([[1.0, 2.0, 4.0], [100.0, 2.0, 8.0], [1.0, 5.0, 0.0]])
    ax = Figure().subplots()
    mean_and_range(ax, [1, 2, 4], runs, label="three seeds", color=COLORS["newton"], marker="o")
    [line], [band] = ax.lines, ax.collections
    np.testing.assert_allclose(line.get_xydata(), np.stack([[1, 2, 4], runs.mean(0)], axis=1))
    edges = band.get_paths()[0].vertices
    for x, least, largest in zip([1, 2, 4], runs.min(0), runs.max(0), strict=True):
        at = edges[edges[:, 0] == x, 1]
        assert (at.min(), at.max()) == (least, largest)
    assert ax.get_legend_handles_labels()[1] == ["three seeds"]
    assert (line.get_color(), line.get_marker()) == (COLORS["newton"], "o")


def test_a_mean_is_not_taken_of_logarithms():
    ax = Figure().subplots()
    ax.set_yscale("log")
    with pytest.raises(ValueError, match="y-axis is log; must be linear"):
        mean_and_range(ax, [1, 2], np.ones((2, 2)), label="runs", color="black")
