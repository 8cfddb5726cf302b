"""A figure with sliders: `Explorer`."""

import base64
import html
import os
from collections.abc import Callable
from typing import Any

from companion.core.extras import Extra
from companion.lesson.figures import STYLE, png
from companion.lesson.widgets.frames import MIME, grid

with Extra("lessons"):
    import ipywidgets
    from ipywidgets.widgets.widget_description import DescriptionWidget
    from matplotlib import rc_context
    from matplotlib.figure import Figure

# A slider of ipywidgets has a label and a readout, but its handle, which is what the keyboard moves, has no name for a
# screen reader, and the text of its value may not be what is shown (a logarithmic slider says the exponent). No trait
# of the widget reaches them. So the picture tells them, whenever it is loaded: at first their views may still be made.
NAME_HANDLES = """[0, 300, 1000].forEach(wait => setTimeout(() => {
    const box = this.closest('.widget-vbox');
    for (const slider of box ? box.querySelectorAll('.widget-inline-hbox:has(.noUi-handle)') : []) {
        const name = slider.querySelector('.widget-label').textContent, shown = slider.querySelector('.widget-readout');
        const handles = slider.querySelectorAll('.noUi-handle');
        for (const part of [...handles, shown]) part.setAttribute('aria-label', name);
        shown.setAttribute('role', 'textbox');
        if (handles.length === 1) handles[0].setAttribute('aria-valuetext', shown.textContent);
    }
}, wait))"""


class Explorer:
    """Redraws a figure whenever a control moves; on a static page it is a picture of its first state. Where the
    environment has COURSE_FRAMES, it shows a grid of frames, too, for pages that move it without a kernel.

    ``draw(ax, **values)`` draws the figure for the controls' values; it is an ordinary function, which tests call
    without a kernel. ``alt`` says what is to be seen, for those who cannot see it. A control is any ipywidget that has
    a ``value``:

    >>> Explorer(draw, alt="The error after k steps.", k=ipywidgets.IntSlider(3, 0, 20))
    """

    def __init__(
        self,
        draw: Callable[..., None],
        *,
        alt: str,
        size: tuple[float, float] = (7.5, 4.0),
        **controls: ipywidgets.ValueWidget,
    ):
        if not controls:
            raise ValueError(
                "controls: an explorer needs at least one control, such as k=ipywidgets.IntSlider(3, 0, 20)"
            )
        self.draw, self.alt, self.size, self.controls = draw, alt, size, controls
        for name, control in controls.items():
            if isinstance(control, DescriptionWidget):
                control.description = control.description or name
                if control.style.has_trait("description_width"):
                    control.style.description_width = "initial"  # the whole name, not its first eighty pixels
                    control.layout.width = control.layout.width or "34em"
            control.observe(lambda _: self._redraw(), names="value")
        # An <img> rather than ipywidgets.Image, which has no alt text
        self.picture = ipywidgets.HTML()
        self.box = ipywidgets.VBox([*controls.values(), self.picture])
        self._redraw()

    def _draw(self, values: dict[str, Any]) -> bytes:
        with rc_context(STYLE):
            figure = Figure(figsize=self.size)
            self.draw(figure.subplots(), **values)
            return png(figure)

    def _redraw(self) -> None:
        self.png = self._draw({name: control.value for name, control in self.controls.items()})
        encoded = base64.b64encode(self.png).decode()
        alt, onload = html.escape(self.alt), html.escape(NAME_HANDLES)
        self.picture.value = f'<img alt="{alt}" src="data:image/png;base64,{encoded}" onload="{onload}">'

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = self.box._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        data = {**data, "image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        if os.environ.get("COURSE_FRAMES") and (frames := grid(self._draw, self.controls)):
            data = data | {MIME: frames}
        return data, {**metadata, "image/png": {"alt": self.alt}}
