"""The explorer: it draws at once, redraws when a control moves, and is a picture with alt text where nothing runs."""

import base64

import ipywidgets
import pytest

from companion.widgets import Explorer


def explorer(draw=None, alt='A line of slope "k" < 9.'):
    return Explorer(draw or (lambda ax, k: ax.plot([0, 1], [0, k])), alt=alt, k=ipywidgets.IntSlider(2, 0, 8))


def test_it_redraws_when_a_control_moves():
    drawn = []
    one = explorer(lambda ax, k: drawn.append(k) or ax.plot([0, 1], [0, k]))
    before = one.picture.value
    one.controls["k"].value = 5
    assert drawn == [2, 5]
    assert one.picture.value != before


def test_a_static_page_gets_the_picture_and_its_alt_text():
    one = explorer()
    data, metadata = one._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"] == one.alt
    assert "application/vnd.jupyter.widget-view+json" in data


def test_alt_text_is_escaped():
    assert 'alt="A line of slope &quot;k&quot; &lt; 9."' in explorer().picture.value


def test_a_mistake_in_draw_is_seen_at_once():
    with pytest.raises(ZeroDivisionError):
        explorer(lambda ax, k: 1 / 0)


def test_it_needs_a_control():
    with pytest.raises(ValueError, match="controls: an explorer needs at least one"):
        Explorer(lambda ax: None, alt="nothing")
