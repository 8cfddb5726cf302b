"""Predictions that are asked for before a measurement, kept, and held beside it: `Predictions`."""

import html
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from companion.core.extras import Extra
from companion.core.files import atomic_write, read_kept
from companion.lesson.attempts import in_lines
from companion.lesson.figures import COLORS
from companion.lesson.widgets.question import Question, shown

with Extra("lessons"):
    from matplotlib.axes import Axes

FORMAT = "predictions of Transformers as Algorithms, 1"
FILE = "predictions.json"
ANSWERED = {"number": "measured", "choice": "the answer:", "words": "one answer:"}
VERDICTS = {"right": "right", "not": "not right", "shown": "not judged", "": "not measured yet"}


class Predictions:
    """The predictions of one lesson, kept in ``predictions.json`` in the folder that the notebook runs in.

    A cell asks with `number`, `choice` or `words` as its last expression. The answer is there as ``predictions[id]``
    (None until it is given), also after the kernel was restarted; `compare` and `mark` hold it beside the measurement,
    `sheet` shows how it went. Nothing waits for an answer: a notebook runs from top to bottom without any.
    """

    def __init__(self, lesson: str):
        if not re.fullmatch(r"[\w-]+", lesson):
            raise ValueError(f"lesson = {lesson!r}: must be a lesson's name, such as '02-in-context-regression'")
        self.lesson, self.path = lesson, Path.cwd() / FILE
        self.questions: dict[str, Question] = {}
        self._kept: dict[str, Any] = {}
        self._unwritten: dict[str, Any] = {}  # what the disk, or another program, has refused so far
        try:
            self._kept = _read(self.path).get(lesson, {})
        except OSError as error:
            print(f"{FILE} cannot be read now ({error.strerror}); nothing is written over it")

    def number(self, id: str, question: str, *, low: float = -math.inf, high: float = math.inf) -> Question:
        """Ask for a number.

        ``id``: names the question in this lesson, in small letters, digits and hyphens.
        ``question``: what is read; plain text.
        ``low``, ``high``: the least and the largest number that is taken.
        """
        if not low < high:
            raise ValueError(f"low = {low!r}, high = {high!r}: low must be less than high")
        return self._ask(Question(id, "number", question, self._keep, low=low, high=high))

    def choice(self, id: str, question: str, options: Sequence[str]) -> Question:
        """Ask for one of the ``options``: at least two texts, all different. ``id`` and ``question`` as in `number`."""
        options = list(options)
        if (
            len(options) < 2
            or len(set(options)) < len(options)
            or not all(isinstance(option, str) and option.strip() for option in options)
        ):
            raise ValueError(f"options = {options!r}: must be at least two texts, none empty and no two the same")
        return self._ask(Question(id, "choice", question, self._keep, options=options))

    def words(self, id: str, question: str) -> Question:
        """Ask for a sentence, which is shown beside the measurement and never judged. Arguments as in `number`."""
        return self._ask(Question(id, "words", question, self._keep))

    def __getitem__(self, id: str) -> float | str | None:
        return self._question(id).value

    def compare(
        self, id: str, measured: Any, *, within: float | tuple[str, float] | None = None, because: str = ""
    ) -> None:
        """Print the question, and the prediction beside what was measured; the measurement alone if there is none.
        What answers a question for a sentence was not measured: it is *one answer*. Nor need an option have been: it is
        *the answer*.

        ``id``: the question's.
        ``measured``: a number for `number`, one of the options for `choice`, anything that prints for `words`.
        ``within``: what is right, for a number: a factor of at least 1, or ``("abs", d)`` for a distance of at most d.
            Without it a number is shown and not judged.
        ``because``: one sentence on why it is so, printed beneath.
        """
        question = self._question(id)
        if because and not re.fullmatch(r"\S.*[.!?]", because, re.DOTALL):
            raise ValueError(f"because = {because!r}: must be a sentence, which ends with a full stop")
        question.measure(measured, within, because)
        # a sentence that the options complete is left open
        asked = question.question if question.question.endswith(("?", ".", "!")) else f"{question.question} ..."
        answer = f"{ANSWERED[question.kind]} {shown(question.measured)}"
        if question.value is None:
            lines = [f"{asked} {answer[0].upper()}{answer[1:]}"]
        else:
            self._keep(question)
            verdict = "" if question.verdict == "shown" else f" ({VERDICTS[question.verdict]})"
            lines = [f"{asked} You said {shown(question.value)}; {answer}{verdict}"]
        print(*map(in_lines, filter(None, [*lines, because])), sep="\n")

    def mark(self, ax: Axes, id: str, *, x: float | None = None, y: float | None = None) -> None:
        """Draw "your prediction" into a figure, if there is one.

        ``ax``: where.
        ``id``: the question's, which must ask for a number.
        ``x``: the place of the mark where the prediction is its height; or
        ``y``: the height of the mark where the prediction is its place.
        """
        question = self._question(id)
        if question.kind != "number":
            raise ValueError(f"id = {id!r}: must be a question for a number; this one asks for a {question.kind}")
        given = [each for each in (x, y) if each is not None]
        if len(given) != 1:
            raise ValueError(f"x = {x!r}, y = {y!r}: exactly one must be given; the other is the prediction")
        if not isinstance(question.value, float):
            return
        place = (given[0], question.value) if y is None else (question.value, given[0])
        # No entry in the legend: the legend may have been drawn before, and the text stands beside the mark
        ax.plot(*place, "*", color=COLORS["highlight"], markeredgecolor="black", markersize=15, zorder=10)
        ax.autoscale_view()  # or the place in the axes would be that before the mark
        across, up = ax.transAxes.inverted().transform(ax.transData.transform(place))
        side = "right" if across > 0.6 else "left"
        offset = (-9 if side == "right" else 9, -15 if up > 0.85 else 7)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
        ax.annotate(
            "your prediction",
            place,
            xytext=offset,
            textcoords="offset points",
            ha=side,
            fontsize="small",
            bbox=box,
            annotation_clip=False,
            zorder=10,
        )

    def sheet(self) -> "Sheet":
        """Return the score sheet of all that was asked: the last expression of a cell."""
        return Sheet(list(self.questions.values()))

    def _ask(self, question: Question) -> Question:
        before = self.questions.get(question.id)
        if before is None:
            question.remember(self._kept.get(question.id))
            self.questions[question.id] = question
            return question
        if before.asked != question.asked:
            raise ValueError(
                f"id = {question.id!r}: was asked before as {before.asked}; ids must be unique in a lesson "
                "(after a change to the question, run the cell that makes Predictions again)"
            )
        return before  # the cell was run again: the same answer, whatever was typed since

    def _question(self, id: str) -> Question:
        if id not in self.questions:
            asked = ", ".join(repr(known) for known in self.questions) or "none so far"
            raise ValueError(
                f"id = {id!r}: must be a question that was asked: {asked}. Run the cell that asks it first"
            )
        return self.questions[id]

    def _keep(self, question: Question) -> None:
        """Write a question's answer into the file, which is read again first, for another notebook may have written
        there.
        """
        self._unwritten[question.id] = question.entry()
        try:
            lessons = _read(self.path)
            self._kept |= lessons.get(self.lesson, {}) | self._unwritten
            lessons[self.lesson] = self._kept  # also where the file is gone, or was broken
            text = json.dumps({"format": FORMAT, "lessons": lessons}, indent=1, ensure_ascii=False) + "\n"
            atomic_write(self.path, text)
            self._unwritten.clear()
        except OSError as error:  # a full or read-only disk, or a file that is in use, spoils no lesson
            question.tell(f"Your prediction holds for now, but {FILE} could not be written: {error.strerror}.")


class Sheet:
    """What was asked, predicted and measured, and how it went."""

    HEAD = ("Question", "You said", "Found", "Verdict")

    def __init__(self, questions: Sequence[Question]):
        self.rows = [self._row(question) for question in questions]
        verdicts = [question.verdict for question in questions if question.value is not None]
        right, judged, silent = verdicts.count("right"), verdicts.count("not"), len(questions) - len(verdicts)
        self.summary = f"{right} of {right + judged} judged predictions right"
        if silent:
            self.summary += f"; {silent} of {len(questions)} questions without a prediction"

    def _row(self, question: Question) -> tuple[str, str, str, str]:
        measured = "-" if question.measured is None else shown(question.measured)
        if question.kind == "words" and question.measured is not None:
            measured = f"one answer: {measured}"
        if question.value is None:
            return question.question, "-", measured, "no prediction"
        return question.question, shown(question.value), measured, VERDICTS[question.verdict]

    def __repr__(self) -> str:
        lines = [f"{asked} You said {said}; found {found}: {verdict}." for asked, said, found, verdict in self.rows]
        return "\n".join([*lines, f"{self.summary}."])

    def _repr_html_(self) -> str:
        cells = [f'<th scope="col" style="text-align: left; white-space: nowrap">{name}</th>' for name in self.HEAD]
        lines = [f"<tr>{''.join(cells)}</tr>"]
        for row in self.rows:
            lines.append(
                "<tr>" + "".join(f'<td style="text-align: left">{html.escape(text)}</td>' for text in row) + "</tr>"
            )
        return f"<table>{''.join(lines)}</table><p>{html.escape(self.summary)}.</p>"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Return what the file keeps, by lesson and id. A file that is broken or not ours is moved aside, and nothing is
    lost. Raises OSError where it cannot be read or moved.
    """
    content = read_kept(path, "a file of predictions of this course", _fits)
    return content["lessons"] if content else {}


def _fits(content: Any) -> bool:
    entries = [entry for kept in content["lessons"].values() for entry in kept.values()]
    return content["format"] == FORMAT and all(isinstance(entry, dict) for entry in entries)
