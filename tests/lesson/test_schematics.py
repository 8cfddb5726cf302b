"""Schematics: every word draws without a warning, no text leaves the sheet or touches another, letters can be read."""

import itertools
import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, Rectangle

from companion.lesson import schematics
from companion.lesson.figures import STYLE, Picture
from companion.lesson.schematics import (
    FIRST,
    OUTPUT,
    SECOND,
    arrow,
    box,
    clock,
    line_of_words,
    note,
    outer_product,
    paper,
    stream,
    tiles,
    tree,
)


@pytest.fixture(autouse=True)
def strict():
    """The house style, every warning an error but of what one library calls in another, nothing left open."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # an old matplotlib calls what a newer pyparsing renamed
        yield
    plt.close("all")


def two_heads():
    ax = paper(15, 9)
    xs = stream(ax, ["Ann", "likes", "Bob", "Ann"], at=(1.5, 0.8), step=3, top=8.6)
    heard = box(ax, (xs[1], 3.4), "after\nAnn", color=FIRST)
    arrow(ax, (xs[0], 2), heard, color=FIRST)
    asks = box(ax, (xs[3], 5.6), "after Ann?", color=SECOND)
    arrow(ax, asks, heard, "looks", color=SECOND, dashed=True)
    arrow(ax, (xs[1], 5.5), box(ax, (xs[3], 7.4), "likes", color=OUTPUT), "moves", color=SECOND, bend=-0.1)
    note(ax, (xs[3] + 1.6, 2.6), "writes", color=FIRST, align="left")
    return ax


def pattern():
    ax = paper(9, 7)
    words = ["it", "is", "raining", "again"]
    tiles(ax, (2.6, 4.4), np.tri(4) / np.arange(1, 5)[:, None], rows=words, columns=words, shown=np.tri(4))
    return ax


def memory():
    ax = paper(8, 5)
    v, u = np.random.default_rng(0).standard_normal((2, 6))
    around = outer_product(ax, (2, 3.6), v, u, color=SECOND)
    note(ax, (around.x1 + 1, 2.4), "$v\\,u^\\top$")
    return ax


def clocks():
    ax = paper(15, 6.5)
    for place, period in enumerate((2, 5, 100)):
        clock(ax, (2.6 + 5 * place, 3.8), 57, period)
    return ax


def search():
    ax = paper(12, 5)
    tree(ax, (1.5, 4.2), ("42?", ("19?", "3", "24"), ("77?", "58", "90")), step=(2.6, 1.6))
    return ax


def sentence():
    ax = paper(12, 3)
    first, *_, last = line_of_words(ax, (0.5, 1), ["who", "likes", "whom", "?"])
    arrow(ax, (last.x0, last.y1), (first.x1, first.y1), "back", bend=0.4)
    return ax


DRAWINGS = [two_heads, pattern, memory, clocks, search, sentence]


def faults(ax):
    """The texts that leave the sheet, and the pairs that touch each other."""
    texts = {text: text.get_window_extent() for text in ax.texts}
    (left, bottom), (right, top) = ax.get_window_extent().get_points()
    outside = [
        text.get_text() for text, at in texts.items() if at.x0 < left or at.y0 < bottom or at.x1 > right or at.y1 > top
    ]
    pairs = itertools.combinations(texts, 2)
    return outside + [(a.get_text(), b.get_text()) for a, b in pairs if texts[a].overlaps(texts[b])]


@pytest.mark.parametrize("draw", DRAWINGS)
def test_it_draws_and_no_text_is_in_the_way(draw):
    ax = draw()
    assert Picture(ax.figure, "A drawing.").png.startswith(b"\x89PNG")
    assert faults(ax) == []


def test_what_is_in_the_way_is_seen():
    ax = paper(6, 3)
    note(ax, (1, 1), "one")
    note(ax, (1.2, 1), "over it")
    note(ax, (5.8, 1), "over the edge")
    assert faults(ax) == ["over the edge", ("one", "over it")]


def test_every_word_is_drawn_with_here():
    words = {name for name, word in vars(schematics).items() if getattr(word, "__module__", "") == schematics.__name__}
    used = {name for draw in DRAWINGS for name in draw.__code__.co_names}
    assert {word for word in words if not word.startswith("_")} <= used


@pytest.mark.parametrize("draw", DRAWINGS)
def test_letters_can_be_read_on_a_page_of_400_pixels(draw):
    ax = draw()
    shrunk = min(1, 400 / (ax.figure.get_figwidth() * ax.figure.dpi))
    letters = [text.get_fontsize() / 72 * ax.figure.dpi * shrunk for text in ax.texts]
    assert min(letters) > 9
    assert min(contrast(text.get_color()) for text in ax.texts) > 4.5


@pytest.mark.parametrize("color", [schematics.INK, FIRST, SECOND, OUTPUT, schematics.STREAM.replace("B", "7")])
def test_text_of_every_actor_stands_out_from_the_paper(color):
    ax = paper(4, 3)
    note(ax, (2, 1), "word", color=color)
    assert contrast(ax.texts[0].get_color()) > 4.5


def contrast(color):
    """WCAG's contrast with white paper, of which small letters need 4.5."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)


def test_a_box_holds_its_text():
    ax = paper(9, 4)
    around = box(ax, (4, 2), "a long text\nin two lines")
    text = ax.texts[0].get_window_extent()
    assert around.get_window_extent().containsx(text.x0) and around.get_window_extent().containsx(text.x1)
    assert around.get_window_extent().containsy(text.y0) and around.get_window_extent().containsy(text.y1)


def test_an_arrow_ends_at_the_edges_of_boxes():
    ax = paper(9, 4)
    one, other = box(ax, (1.5, 2), "one"), box(ax, (7, 2), "other")
    arrow(ax, one, other)
    [drawn] = [patch for patch in ax.patches if type(patch) is FancyArrowPatch]
    ax.figure.canvas.draw()
    path = drawn.get_path().vertices[:-1]  # the last one only closes the arrow's head
    assert path[:, 0].min() > one.get_x() + one.get_width()
    assert path[:, 0].max() < other.get_x()


def test_the_darker_a_cell_the_larger_its_weight_and_the_future_is_not_drawn():
    ax = paper(6, 4)
    tiles(ax, (1, 3), np.array([[1, 0], [-0.25, 0.75]]), shown=np.tri(2))
    drawn = {(cell.get_x(), cell.get_y()): cell.get_facecolor() for cell in ax.patches if isinstance(cell, Rectangle)}
    assert len(drawn) == 3
    light = {place: sum(color[:3]) for place, color in drawn.items()}
    full, negative, most = light[1, 2.2], light[1, 1.4], light[1.8, 1.4]
    assert full < most < negative
    assert len(set(np.round(drawn[1, 1.4][:3], 6))) == 1, "a negative weight is grey"


def test_a_clock_goes_round_once_in_its_period():
    ax = paper(10, 6)
    clock(ax, (5, 3.5), 13, 10)
    [hand] = [patch for patch in ax.patches if type(patch) is FancyArrowPatch]
    tip = np.array(hand._posA_posB[1]) - (5, 3.5)
    assert np.arctan2(*tip) / (2 * np.pi) == pytest.approx(0.3)  # clockwise from the top
    assert "13 mod 10 = 3" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("size", [(0, 3), (17, 3), (5, 0)])
def test_a_sheet_that_nobody_could_read_is_refused(size):
    with pytest.raises(ValueError, match=r"width = .*, height = .*: must be above 0, the width at most 16"):
        paper(*size)
