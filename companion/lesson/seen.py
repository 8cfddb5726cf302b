"""What distinguishes a wrong answer from the right one, where no reason is known: which entries, and by how much."""

from collections.abc import Callable

import torch
from torch import Tensor

ENDS = ("first", "last")
LINES = ("row", "column")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def apart(got: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    """Return by how much each entry is off, and the largest finite size that is due.

    The same infinity in both is off by 0, although inf - inf is NaN, which would win every argmax.
    """
    sizes = expected.abs()
    return torch.where(got == expected, 0, (got - expected).abs()), torch.where(sizes.isfinite(), sizes, 0).max()


def not_finite(got: Tensor) -> str:
    """Return a sentence on how many entries are NaN or infinite, and which is the first."""
    wrong = ~got.isfinite()
    first = wrong.nonzero()[0].tolist()
    where = f", the first at {first}" if first and not wrong.all() else ""
    return f"{int(wrong.sum())} of {got.numel()} entries are NaN or infinite{where}."


def arranged(got: Tensor, expected: Tensor, close: Callable[[Tensor, Tensor], bool]) -> str:
    """Return a sentence on how an answer's entries are arranged, if they are the right ones in another order."""
    if got.ndim >= 2 and got.shape[-1] == got.shape[-2] and close(got.mT, expected):
        return "the answer is transposed"
    if expected.is_complex() or len(expected.unique()) < 3:
        return ""  # too few to tell one order from another
    for dim in range(got.ndim):
        along = f" along the {ORDINALS[dim]} axis" if got.ndim > 1 else ""
        if close(got.flip(dim), expected):
            return f"the entries are right, but in reversed order{along}"
        for by, late in ((1, "early"), (-1, "late")):
            if got.shape[dim] > 2 and close(got.roll(by, dim), expected):
                return f"the entries are right, but one place too {late}{along}"
    if (expected % 1).any() and close(got.flatten().sort().values, expected.flatten().sort().values):
        return "the entries are right, their order is not"
    return ""


def pattern(got: Tensor, expected: Tensor, wrong: Tensor, close: Callable[[Tensor, Tensor], bool]) -> str:
    """Return a sentence on what the wrong entries have in common: their place, their sign, one difference or one
    factor.

    ``got``, ``expected``: the answer and what it should be, of one shape.
    ``wrong``: True where they differ.
    ``close``: whether two results count as the same.
    """
    if wrong.equal(expected.isinf()):
        return "Only entries that should be infinite are wrong."
    return " ".join(part for part in (_where(wrong), _how(got[wrong], expected[wrong], close)) if part)


def _where(wrong: Tensor) -> str:
    """Return where all wrong entries are, if that is one line, a triangle, the diagonal, or all but one of these."""
    if wrong.all() or wrong.ndim == 0:
        return ""
    finders = (_end,) if wrong.ndim == 1 else (_line, _half)
    hints = (finder(entries) for entries in (wrong, ~wrong) for finder in finders)
    places = zip(hints, ("wrong", "right") if wrong.ndim == 1 else ("wrong", "wrong", "right", "right"), strict=True)
    return next((f"Only {place} {name}." for place, name in places if place), "")


def _end(entries: Tensor) -> str:
    """Return which end the only entry that is True stands at."""
    at = entries.nonzero().flatten().tolist()
    return f"the {ENDS[at[0] > 0]} entry is" if at in ([0], [len(entries) - 1]) else ""


def _line(entries: Tensor) -> str:
    """Return the only row, column or part along the first axis that has entries that are True."""
    for dim in (0, 1) if entries.ndim == 2 else (0,):
        lines = [i for i, line in enumerate(entries.movedim(dim, 0)) if line.any()]
        if len(lines) == 1:
            kind = LINES[dim] if entries.ndim == 2 else "part along the first axis"
            end = {0: "first", entries.shape[dim] - 1: "last"}.get(lines[0])
            return f"the {end} {kind} is" if end else f"{kind} {lines[0]} is"
    return ""


def _half(entries: Tensor) -> str:
    """Return which part of a square matrix has all entries that are True: its diagonal, or one side of it."""
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
        return ""
    parts = {
        "on the diagonal": entries.diagonal().diag(),
        "above the diagonal": entries.triu(1),
        "below the diagonal": entries.tril(-1),
    }
    return next((f"entries {words} are" for words, part in parts.items() if part.equal(entries)), "")


def _how(got: Tensor, expected: Tensor, close: Callable[[Tensor, Tensor], bool]) -> str:
    """Return what distinguishes wrong entries from what they should be, if it is the same for all of them."""
    if len(got) < 2 or not (got.isfinite().all() and expected.isfinite().all()):
        return ""
    off, ratio = got - expected, (got * expected).sum() / expected.square().sum()
    seen = {
        "They have the wrong sign.": close(-got, expected),
        "Some have the wrong sign; their sizes are right.": close(got.abs(), expected.abs()),
        "They are 0.": not got.any(),
        f"They are {ratio:.4g} times what they should be.": ratio.abs() > 1e-9 and close(got / ratio, expected),
    }
    if not got.is_complex():
        way = "large" if off.sum() > 0 else "small"
        seen[f"They are all {off.mean().abs():.4g} too {way}."] = close(off, off.mean().expand_as(off))
        seen[f"They are all too {way}."] = bool((off > 0).all() or (off < 0).all())
    return next((words for words, fits in seen.items() if fits), "")


def shape_hint(got: tuple[int, ...], right: tuple[int, ...]) -> str:
    """Return a sentence on how a shape differs from the right one: in order, by an axis or by a size."""
    if sorted(got) == sorted(right):
        order = (
            "It is the transpose of the right shape." if len(right) == 2 else "The sizes are right, their order is not."
        )
        return f" {order}"
    if [size for size in got if size > 1] == [size for size in right if size > 1]:
        return f" A dimension of size 1 is {'too many' if len(got) > len(right) else 'missing'}."
    if len(got) == len(right):
        return _size_hint(got, right)
    scalar = "" if got else " One number is returned, where there is one for each entry."
    return _axis_hint(right, got, "is missing") or _axis_hint(got, right, "was kept, and should be gone") or scalar


def _axis_hint(longer: tuple[int, ...], shorter: tuple[int, ...], verb: str) -> str:
    """Return which axis of the ``longer`` shape the ``shorter`` one lacks, with a ``verb``; nothing if not one."""
    lacking = [at for at in range(len(longer)) if longer[:at] + longer[at + 1 :] == shorter]
    if not lacking:
        return ""
    axis = f"The {ORDINALS[lacking[0]]} axis" if len(lacking) == 1 else "An axis"
    return f" {axis}, of size {longer[lacking[0]]}, {verb}."


def _size_hint(got: tuple[int, ...], right: tuple[int, ...]) -> str:
    """Return by how much one axis is too long or too short; nothing where several are."""
    wrong = [at for at in range(len(got)) if got[at] != right[at]]
    if len(wrong) != 1:
        return ""
    size, expected = got[wrong[0]], right[wrong[0]]
    axis = f"the {ORDINALS[wrong[0]]} axis" if len(right) > 1 else "it"
    if abs(size - expected) == 1:
        return f" Along {axis}, there is one entry too {'many' if size > expected else 'few'}."
    return f" Along {axis}, there {'is 1 entry' if size == 1 else f'are {size} entries'}, not {expected}."
