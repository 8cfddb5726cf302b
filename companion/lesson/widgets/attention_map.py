"""Attention that answers the hand: `AttentionMap`."""

import base64
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from companion.core.extras import Extra

with Extra("lessons"):
    import anywidget
    import traitlets

MODULE = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
# What a page without a kernel runs: the module itself, from an address that holds it, on what the page was made with.
PLAIN = """<div id="{id}"><details><summary>Where each word looks most (run the cell to point at words)</summary>
<ul>{lines}</ul></details></div>
<script type="module">
const {{ default: map }} = await import("data:text/javascript;base64,{module}");
const state = {state};
map.render({{ model: {{ get: (name) => state[name] }}, el: document.getElementById("{id}") }});
</script>"""


class AttentionMap(anywidget.AnyWidget):
    """Shows, for the word that one points at or goes to with Tab and the arrow keys, where each head looks and what it
    moves. One module draws it in JupyterLab and on a page without a kernel; where nothing runs, it is a list, folded.

    >>> AttentionMap(["the", "cat", "sat"], pattern, heads=["previous word"], moves=[["the", "cat", "sat"]])

    ``words``: the text, at least two words.
    ``weights``: alpha_ts of each head, or of the only one: a row for each query t, which sums to 1.
    ``heads``: their names; 'head 1' and so on unless told.
    ``moves``: what each head moves from a word when it looks there, a text for each word; not shown unless told.

    Raises ValueError for weights that are no such rows, and for names or texts of another number.
    """

    _esm = MODULE
    words, weights, heads, moves = (traitlets.List().tag(sync=True) for _ in range(4))

    def __init__(
        self,
        words: Sequence[str],
        weights: Float[Tensor, "*heads queries keys"] | np.ndarray,
        *,
        heads: Sequence[str] = (),
        moves: Sequence[Sequence[str]] = (),
    ):
        words, rows = list(words), np.asarray(weights, dtype=float)
        T, given = len(words), rows.shape
        if T < 2:
            raise ValueError(f"words = {words!r}: must be at least two words")
        rows = rows.reshape(-1, T, T) if given[-2:] == (T, T) and len(given) <= 3 else rows[:0]
        if not len(rows):
            raise ValueError(f"weights of shape {given}: must be ({T}, {T}), or (heads, {T}, {T})")
        if not ((rows >= 0).all() and np.allclose(rows.sum(2), 1, atol=1e-3)):
            raise ValueError(f"weights: row sums from {rows.sum(2).min():.3g} to {rows.sum(2).max():.3g}, least weight "
                             f"{rows.min():.3g}; every row must sum to 1, with no weight below 0")  # fmt: skip
        heads = list(heads) or [f"head {number + 1}" for number in range(len(rows))]
        if len(heads) != len(rows):
            raise ValueError(f"heads = {heads!r}: must be {len(rows)} names, as many as there are patterns")
        moves = [list(texts) for texts in moves]
        if moves and [len(texts) for texts in moves] != [T] * len(rows):
            raise ValueError(
                f"moves of {[len(texts) for texts in moves]} texts: must be {T} for each of {len(rows)} heads"
            )
        super().__init__(words=words, weights=rows.round(4).tolist(), heads=heads, moves=moves)

    def lines(self) -> list[str]:
        """Return what it shows as text: for each head and each word, where it looks most and what it moves."""
        found = []
        for number, (head, rows) in enumerate(zip(self.heads, self.weights, strict=True)):
            for word, row in zip(self.words, rows, strict=True):
                best = int(np.argmax(row))
                moved = f" and moves {self.moves[number][best]}" if self.moves else ""
                found.append(f"{head}: “{word}” looks most at “{self.words[best]}” ({100 * row[best]:.0f} %){moved}")
        return found

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        state = {name: getattr(self, name) for name in ("words", "weights", "heads", "moves")}
        page = PLAIN.format(
            id=f"attention-map-{self.model_id}",
            lines="".join(f"<li>{html.escape(line)}</li>" for line in self.lines()),
            module=base64.b64encode(MODULE.encode()).decode(),
            state=json.dumps(state).replace("<", "\\u003c"),  # no text ends the script
        )
        return {**data, "text/html": page, "text/plain": "\n".join(self.lines())}, metadata
