"""The explorer: it draws at once, redraws when a control moves, and is a picture with alt text where nothing runs."""

import base64

import ipywidgets
import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib import rcParams

from companion.lesson.widgets.explorer import Explorer

ALT = 'A line of slope "k" < 9.'


def line(ax, k, width=1.0):
    ax.plot([0, 1], [0, k], linewidth=width)


@pytest.fixture
def drawn():
    """The values that the figure was drawn for, one after the other."""
    return []


@pytest.fixture
def explorer(drawn):
    def draw(ax, **values):
        drawn.append(values)
        line(ax, **values)

    return Explorer(
        draw, alt=ALT, k=ipywidgets.IntSlider(2, 0, 8), width=ipywidgets.FloatSlider(1.5, description="line width")
    )


def test_it_draws_at_once(explorer, drawn):
    assert drawn == [{"k": 2, "width": 1.5}]
    assert base64.b64encode(explorer.png).decode() in explorer.picture.value


@pytest.mark.parametrize("control, value", [("k", 5), ("width", 3.0)])
def test_it_redraws_when_a_control_moves(explorer, drawn, control, value):
    before = explorer.picture.value
    explorer.controls[control].value = value
    assert drawn[1:] == [{"k": 2, "width": 1.5} | {control: value}]
    assert explorer.picture.value != before
    assert base64.b64encode(explorer.png).decode() in explorer.picture.value


def test_it_does_not_redraw_for_nothing(explorer, drawn):
    explorer.controls["k"].value = 2
    explorer.controls["k"].max = 20
    assert len(drawn) == 1


def test_it_shows_its_controls_by_name_above_the_picture(explorer):
    assert explorer.box.children == (explorer.controls["k"], explorer.controls["width"], explorer.picture)
    assert [control.description for control in explorer.controls.values()] == ["k", "line width"]


def test_a_static_page_gets_the_picture_and_its_alt_text(explorer):
    data, metadata = InteractiveShell.instance().display_formatter.format(explorer)  # what a notebook keeps
    assert base64.b64decode(data["image/png"]) == explorer.png
    assert explorer.png.startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"] == ALT
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.box.model_id


def test_the_picture_of_a_page_is_that_of_the_controls(explorer):
    before = explorer._repr_mimebundle_()[0]["image/png"]
    explorer.controls["k"].value = 7
    assert explorer._repr_mimebundle_()[0]["image/png"] != before


def test_alt_text_is_escaped(explorer):
    assert 'alt="A line of slope &quot;k&quot; &lt; 9."' in explorer.picture.value


def test_it_leaves_nothing_behind(explorer):
    before = dict(rcParams), plt.get_fignums()
    explorer.controls["k"].value = 3
    assert (dict(rcParams), plt.get_fignums()) == before


def test_a_mistake_in_draw_is_seen_at_once():
    with pytest.raises(ZeroDivisionError):
        Explorer(lambda ax, k: 1 / 0, alt=ALT, k=ipywidgets.IntSlider())


def test_a_mistake_in_draw_is_seen_when_a_control_moves_and_the_picture_stays():
    explorer = Explorer(lambda ax, k: line(ax, 1 / k), alt=ALT, k=ipywidgets.IntSlider(1))
    before = explorer.picture.value
    with pytest.raises(ZeroDivisionError):
        explorer.controls["k"].value = 0
    assert explorer.picture.value == before
    explorer.controls["k"].value = 2
    assert explorer.picture.value != before


def test_draw_must_take_every_control():
    with pytest.raises(TypeError, match="steps"):
        Explorer(line, alt=ALT, steps=ipywidgets.IntSlider())


def test_it_needs_a_control():
    with pytest.raises(ValueError, match=r"controls: an explorer needs at least one control, such as k="):
        Explorer(line, alt=ALT)
