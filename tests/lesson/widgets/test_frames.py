"""An explorer as a grid of frames: which values it takes, and what it leaves as it stands."""

import base64
import io
import random
from math import prod

import ipywidgets
import pytest
from PIL import Image

from companion.lesson.widgets import frames
from companion.lesson.widgets.explorer import Explorer


def picture(values) -> bytes:
    """A picture whose colour tells the values."""
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), tuple(int(20 * value) for value in (*values.values(), 0, 0, 0))[:3]).save(buffer, "png")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("control", "labels"),
    [
        (ipywidgets.IntSlider(2, 0, 3), ["0", "1", "2", "3"]),
        (ipywidgets.FloatSlider(0.5, min=0, max=1, step=0.5), ["0", "0.5", "1"]),
        (ipywidgets.Checkbox(True), ["no", "yes"]),
        (ipywidgets.Dropdown(options=["a", "b"]), ["a", "b"]),
        (ipywidgets.Dropdown(options=[("A", 1), ("B", 2)]), ["A", "B"]),
        (ipywidgets.SelectionSlider(options=(0.1, 1), value=1), ["0.1", "1"]),
        (ipywidgets.Text("a rose"), ["a rose"]),
        (ipywidgets.Combobox(value="a rose", options=["a rose", "the cat"]), ["a rose", "the cat"]),
    ],
)
def test_what_a_control_can_be_set_to(control, labels):
    found = frames.values(control)
    assert [label for label, _ in found] == labels
    for _, value in found:
        control.value = value  # raises for what it cannot be set to


@pytest.mark.parametrize(
    ("counts", "limit", "sizes"),
    [([100], 60, [60]), ([5], 60, [5]), ([100, 100], 60, [8, 7]), ([2, 100], 60, [2, 30]), ([9, 9, 9], 1, [1, 1, 1])],
)
def test_a_grid_is_spread_over_the_controls(counts, limit, sizes):
    assert frames.grid_sizes(counts, limit) == sizes
    assert prod(sizes) <= limit


def test_values_are_thinned_evenly_and_the_present_one_stays():
    choices = [(str(value), value) for value in range(101)]
    assert [value for _, value in frames.thinned(choices, 5, 50)] == [0, 25, 50, 75, 100]
    assert [value for _, value in frames.thinned(choices, 3, 40)] == [0, 40, 100]
    assert frames.thinned(choices, 1, 7) == [("7", 7)]


def test_the_last_control_changes_fastest_and_what_cannot_be_moved_stays():
    controls = {
        "red": ipywidgets.IntSlider(1, 0, 1, description="the red"),
        "green": ipywidgets.IntSlider(2, 0, 2),
        "word": ipywidgets.Text("typed"),
    }
    grid = frames.grid(lambda values: picture({name: values[name] for name in ("red", "green")}), controls)
    assert grid["controls"] == [
        {"label": "the red", "values": ["0", "1"], "start": 1, "menu": False},
        {"label": "green", "values": ["0", "1", "2"], "start": 2, "menu": False},
    ]
    colours = [
        Image.open(io.BytesIO(base64.b64decode(frame))).convert("RGB").getpixel((0, 0)) for frame in grid["frames"]
    ]
    assert colours == [(20 * red, 20 * green, 0) for red in range(2) for green in range(3)]
    assert frames.grid(picture, {"word": ipywidgets.Text("typed")}) == {}


@pytest.mark.parametrize(
    ("control", "menu"),
    [
        (ipywidgets.FloatSlider(0.5), False),
        (ipywidgets.SelectionSlider(options=(0.1, 1), value=1), False),
        (ipywidgets.Dropdown(options=["a", "b"]), True),
        (ipywidgets.Combobox(value="a", options=["a", "b"]), True),
        (ipywidgets.Checkbox(True), True),
    ],
)
def test_what_has_no_order_is_a_menu(control, menu):
    [shown] = frames.grid(lambda values: picture({}), {"it": control})["controls"]
    assert shown["menu"] == menu


def test_a_grid_is_no_larger_than_a_page_can_bear(monkeypatch):
    monkeypatch.setattr(frames, "BYTES", 10 * len(frames.small(picture({"k": 1}))))
    grid = frames.grid(picture, {"k": ipywidgets.IntSlider(1, 0, 12)})
    assert len(grid["frames"]) == 10


def test_nor_is_it_where_later_frames_are_larger_than_the_first(monkeypatch):
    def noise(values) -> bytes:
        side, buffer = 8 + 8 * values["k"], io.BytesIO()
        Image.frombytes("L", (side, side), random.Random(0).randbytes(side * side)).save(buffer, "png")
        return buffer.getvalue()

    monkeypatch.setattr(frames, "BYTES", 25 * len(frames.small(noise({"k": 0}))))
    made = [base64.b64decode(frame) for frame in frames.grid(noise, {"k": ipywidgets.IntSlider(0, 0, 6)})["frames"]]
    assert 1 < len(made) < 7
    assert sum(map(len, made)) <= frames.BYTES


def test_an_explorer_shows_frames_where_they_are_wanted_alone(monkeypatch):
    explorer = Explorer(lambda ax, k: ax.plot([0, k]), alt="A line.", k=ipywidgets.IntSlider(1, 0, 2))
    assert frames.MIME not in explorer._repr_mimebundle_()[0]
    monkeypatch.setenv("COURSE_FRAMES", "1")
    before = explorer.png
    assert len(explorer._repr_mimebundle_()[0][frames.MIME]["frames"]) == 3
    assert (explorer.png, explorer.controls["k"].value) == (before, 1), "it stands where it stood"
