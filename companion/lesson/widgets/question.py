"""One question to a learner, and its answer: what `Predictions` asks."""

import html
import math
import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from companion.core.extras import Extra

with Extra("lessons"):
    import ipywidgets

CSS = """<style>
.companion-prediction {border-left: 4px solid var(--jp-brand-color1, #0072B2); padding: 4px 0 4px 14px; margin: 6px 0}
.companion-prediction > .jupyter-widgets.widget-text, .companion-prediction > .jupyter-widgets.widget-textarea,
.companion-prediction > .widget-radio {display: flex; flex-direction: column; align-items: stretch;
  height: auto; width: auto; max-width: 46em}
.companion-prediction .widget-label {width: auto !important; max-width: 100%; height: auto; text-align: left;
  white-space: normal; overflow: visible; line-height: 1.45; margin-bottom: 6px; padding: 0;
  font-size: var(--jp-content-font-size1, 14px)}
.companion-prediction .widget-text input {max-width: 14em; flex: none; height: 30px}
.companion-prediction .widget-radio-box {padding: 0 !important; margin: 0 0 4px 0}
.companion-prediction .widget-radio-box label {display: flex; flex-direction: row-reverse; justify-content: flex-end;
  align-items: center; gap: 8px; height: auto; width: auto; white-space: normal; margin: 0; padding: 0;
  line-height: 1.7; font-size: var(--jp-content-font-size1, 14px); color: var(--jp-ui-font-color1)}
.companion-prediction .widget-radio-box input {position: static; float: none; flex: none; margin: 0}
.companion-prediction input:focus-visible, .companion-prediction textarea:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #0072B2)}
.companion-prediction p {margin: 2px; color: var(--jp-ui-font-color1, inherit); line-height: 1.4}
</style>"""


class Question:
    """One question and its answer, ``value``: what `Predictions` gives back, which the notebook shows.

    With a front end it is a field with the question as its label; on a page without one, the question and the answer
    are text.
    """

    def __init__(
        self,
        id: str,
        kind: str,
        question: str,
        keep: Callable[["Question"], None],
        *,
        low: float = -math.inf,
        high: float = math.inf,
        options: Sequence[str] = (),
    ):
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id):
            raise ValueError(f"id = {id!r}: must be small letters, digits and hyphens, such as 'newton-10'")
        if not question.strip():
            raise ValueError(f"question = {question!r}: must not be empty")
        self.id, self.kind, self.question = id, kind, question
        self.low, self.high, self.options = low, high, tuple(options)
        self.value: float | str | None = None
        self.measured: float | str | None = None
        self.verdict = ""
        self._within: Any = None
        self._because = ""
        self._is_measured_here = False  # by this kernel; what came from the file was measured by one before it
        self._keep = keep
        self.field = self._make_field()
        self.said = ipywidgets.HTML()
        self.box = ipywidgets.VBox([ipywidgets.HTML(CSS), self.field, self.said])
        self.box.add_class("companion-prediction")
        self.tell(self._hint())
        self.field.observe(lambda change: self._answered(change["new"]), names="value")

    @property
    def asked(self) -> str:
        """Return the question with what may be answered, in words."""
        allowed = {"number": f", {self._range()}" if self._range() else "", "choice": f", one of {list(self.options)}"}
        return f"a {self.kind}, {self.question!r}{allowed.get(self.kind, '')}"

    def clean(self, answer: Any) -> float | str | None:
        """Return an answer as it is kept, None for an empty one. Raises ValueError, saying what is allowed."""
        if answer is None or (isinstance(answer, str) and not answer.strip()):
            return None
        if self.kind == "words":
            return str(answer).strip()
        if self.kind == "choice":
            if answer not in self.options:
                raise ValueError(f"{answer!r} is not one of {list(self.options)}")
            return answer
        try:
            number = float(answer.strip().replace("−", "-") if isinstance(answer, str) else answer)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"“{answer}” is not a number: write it like 512, 0.05 or 1e6")
        if not self.low <= number <= self.high:
            raise ValueError(f"{shown(number)} is out of range: {self._range()}")
        return number

    def remember(self, entry: Any) -> None:
        """Take up what was kept, if it answers this very question."""
        if not isinstance(entry, dict) or entry.get("question") != self.question or entry.get("kind") != self.kind:
            return
        try:
            self.value = self.clean(entry.get("prediction"))
        except ValueError:  # the limits or options are others now
            return
        if self.value is not None:
            self.measured, self.verdict = entry.get("measured"), str(entry.get("verdict", ""))
            self._show_kept()

    def measure(self, measured: Any, within: Any, because: str = "") -> None:
        """Take down a measurement, and why it is so, and judge the answer, if there is one."""
        self._check_within(within)
        if self.kind == "choice" and measured not in self.options:
            raise ValueError(f"measured = {measured!r}: must be one of {list(self.options)}")
        if self.kind == "number":
            try:
                measured = float(measured)
            except (TypeError, ValueError):
                raise ValueError(f"measured = {measured!r}: must be a number, as {self.id!r} asks for one") from None
        self.measured = measured if self.kind == "number" else str(measured)
        self._within = ("abs", float(within[1])) if isinstance(within, tuple) else within and float(within)
        self._because, self._is_measured_here = because, True
        self.verdict = self._judge()

    def entry(self) -> dict[str, Any]:
        """Return what is kept of it, with what `review` needs to ask it again."""
        measured = self.measured if not isinstance(self.measured, float) or math.isfinite(self.measured) else None
        kept = {"kind": self.kind, "question": self.question, "prediction": self.value}
        kept |= {"measured": measured, "verdict": self.verdict, "within": self._within}
        return kept | {"options": self.options, "because": self._because}

    def tell(self, line: str) -> None:
        """Write a line under the field, which a screen reader reads out."""
        self.said.value = f'<p role="status" aria-live="polite">{html.escape(line)}</p>'

    def _make_field(self) -> ipywidgets.ValueWidget:
        look = {"description": self.question, "style": {"description_width": "auto"}}
        if self.kind == "choice":
            # no list box: JupyterLab takes the arrow keys for itself. Radio buttons take Tab and the space bar.
            return ipywidgets.RadioButtons(options=self.options, value=None, **look)
        # not continuous: an answer is sent with Enter or when the field is left, not with every key
        field_type = ipywidgets.Text if self.kind == "number" else ipywidgets.Textarea
        return field_type(continuous_update=False, placeholder="your prediction", **look)

    def _answered(self, answer: Any) -> None:
        try:
            value = self.clean(answer)
        except ValueError as error:
            kept = "" if self.value is None else f" (Kept so far: {shown(self.value)})"
            self.tell(f"{error}.{kept}")
            return
        if value == self.value:
            self._show_kept()
            return
        self.value = value
        if not self._is_measured_here:
            self.measured = None
        self.verdict = self._judge()
        self._show_kept()
        self._keep(self)

    def _show_kept(self) -> None:
        if self.value is None:
            self.tell(self._hint())
            return
        self.tell(f"Kept: {shown(self.value)}")
        text = self.value if self.kind != "number" else shown(self.value)
        if self.field.value != text:
            self.field.value = text

    def _hint(self) -> str:
        how = {
            "number": "Type a number and press Enter.",
            "choice": "Choose with a click, or with Tab and the space bar.",
        }
        line = how.get(self.kind, "Write a sentence; it is kept when you leave the field (Tab).")
        return f"{line} {self._range().capitalize()}." if self._range() else line

    def _range(self) -> str:
        low, high = shown(self.low), shown(self.high)
        if self.kind != "number" or (math.isinf(self.low) and math.isinf(self.high)):
            return ""
        if math.isinf(self.high):
            return f"at least {low}"
        return f"at most {high}" if math.isinf(self.low) else f"from {low} to {high}"

    def _check_within(self, within: Any) -> None:
        if within is None:
            return
        if self.kind != "number":
            raise ValueError(
                f"within = {within!r}: must be left out, as {self.id!r} asks for no number but {self.kind}"
            )
        distance = within[1] if isinstance(within, tuple) and len(within) == 2 and within[0] == "abs" else None
        least, given = (0, distance) if isinstance(distance, Real) else (1, within)
        fits = isinstance(given, Real) and float(given) >= least
        if not fits:
            raise ValueError(f"within = {within!r}: must be a factor of at least 1, or ('abs', distance)")

    def _judge(self) -> str:
        """Return ``right``, ``not``, ``shown`` (not judged), or nothing as long as there is nothing to judge."""
        value, measured = self.value, self.measured
        if value is None or measured is None:
            return ""
        if self.kind == "choice":
            return "right" if value == measured else "not"
        if isinstance(value, str) or isinstance(measured, str) or self._within is None:
            return "shown"
        if isinstance(self._within, tuple):
            return "right" if abs(value - measured) <= self._within[1] * (1 + 1e-9) else "not"
        if value * measured <= 0:
            return "right" if value == measured else "not"
        factor = max(value / measured, measured / value)
        return "right" if factor <= self._within * (1 + 1e-9) else "not"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = self.box._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        answer = "no prediction yet" if self.value is None else f"you said {shown(self.value)}"
        options = [f"- {option}" for option in self.options]
        plain = "\n".join([f"Your prediction: {self.question}", *options, f"({answer})"])
        listed = "".join(f"<li>{html.escape(option)}</li>" for option in self.options)
        page = (
            f"<div><p><strong>Your prediction.</strong> {html.escape(self.question)}</p>"
            f"{f'<ul>{listed}</ul>' if listed else ''}<p><em>{html.escape(answer)}</em></p></div>"
        )
        return {**data, "text/html": page, "text/plain": plain}, metadata


def shown(value: Any) -> str:
    """Return a number to four digits, a whole one of up to fifteen digits in full; a text as it is."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return str(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"
