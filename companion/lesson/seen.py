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
    for which, name in ((wrong, "wrong"), (~wrong, "right")):
        if wrong.ndim == 1:
            at = [i for i, one in enumerate(which) if one]
            if len(at) == 1 and at[0] in (0, len(which) - 1):
                return f"Only the {ENDS[at[0] > 0]} entry is {name}."
            continue
        for dim in (0, 1) if wrong.ndim == 2 else (0,):
            lines = [i for i, one in enumerate(which.movedim(dim, 0)) if one.any()]
            if len(lines) == 1:
                kind = LINES[dim] if wrong.ndim == 2 else "part along the first axis"
                end = {0: "first ", which.shape[dim] - 1: "last "}.get(lines[0], "")
                return f"Only the {end}{kind} is {name}." if end else f"Only {kind} {lines[0]} is {name}."
        if wrong.ndim == 2 and wrong.shape[0] == wrong.shape[1]:
            square = torch.ones_like(wrong)
            for part, words in (
                (torch.eye(len(wrong), dtype=torch.bool), "on the diagonal"),
                (square.triu(1), "above the diagonal"),
                (square.tril(-1), "below the diagonal"),
            ):
                if not (which & ~part).any():
                    return f"Only entries {words} are {name}."
    return ""


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
        return (
            " It is the transpose of the right shape."
            if len(right) == 2
            else " The sizes are right, their order is not."
        )
    if [size for size in got if size > 1] == [size for size in right if size > 1]:
        return f" A dimension of size 1 is {'too many' if len(got) > len(right) else 'missing'}."
    for longer, shorter, says in ((right, got, "is missing"), (got, right, "was kept, and should be gone")):
        if len(longer) == len(shorter) + 1:
            gone = [at for at in range(len(longer)) if longer[:at] + longer[at + 1 :] == shorter]
            if gone:
                which = f"the {ORDINALS[gone[0]]} axis" if len(gone) == 1 else "an axis"
                return f" {which[0].upper()}{which[1:]}, of size {longer[gone[0]]}, {says}."
    if len(got) == len(right):
        off = [at for at in range(len(got)) if got[at] != right[at]]
        if len(off) == 1:
            by, of = got[off[0]] - right[off[0]], f"the {ORDINALS[off[0]]} axis" if len(right) > 1 else "it"
            many = {1: "one entry too many", -1: "one entry too few"}.get(
                by, f"{got[off[0]]} {'entry' if got[off[0]] == 1 else 'entries'}, not {right[off[0]]}"
            )
            return f" Along {of}, there {'is' if abs(by) == 1 or got[off[0]] == 1 else 'are'} {many}."
    return " One number is returned, where there is one for each entry." if got == () else ""
