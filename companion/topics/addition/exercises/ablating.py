"""Exercises of lesson 04 on taking waves away: the filter, its control, and what the errors say."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["error_signature", "excess_over_random", "random_filter", "remove_waves"]


# -- remove_waves


def _draw_rows(generator: Generator) -> dict:
    r = draw_size(generator, 2, 3)
    width = r + draw_size(generator, 2, 4)
    # what they share keeps them from being orthogonal
    rows = draw_normal(generator, r, width) + draw_normal(generator, width)
    return {"x": draw_normal(generator, width), "rows": rows}


def _sweep(x: Tensor, rows: Tensor) -> Tensor:
    """One row after the other, each taken from what the last has left."""
    for row in rows:
        x = x - (row @ x) / (row @ row) * row
    return x


def _part(x: Tensor, rows: Tensor) -> Tensor:
    """What of x lies in the span of the rows."""
    return rows.mT @ torch.linalg.solve(rows @ rows.mT, rows @ x)


def _remove_waves(x: Tensor, rows: Tensor) -> Tensor:
    c = torch.linalg.solve(rows @ rows.mT, rows @ x)
    return x - rows.mT @ c


remove_waves = Exercise(
    name="remove_waves",
    answer=_remove_waves,
    draw=_draw_rows,
    mistakes={
        "the rows are treated as orthonormal: x - R^T R x needs R R^T = 1": lambda x, rows: x - rows.mT @ (rows @ x),
        "the rows have length 1 but are not orthogonal: what two of them share is taken away twice": (
            lambda x, rows: x - F.normalize(rows, dim=1).mT @ (F.normalize(rows, dim=1) @ x)
        ),
        "one row after the other: taking away the last brings something of the first back, for they are "
        "not orthogonal": _sweep,
        "this is the part that goes; what stays is asked for": _part,
        "the part is added; take it away": lambda x, rows: x + _part(x, rows),
        "only the first row is removed": lambda x, rows: x - _part(x, rows[:1]),
        "only the rows' sum is removed; each row must find nothing": lambda x, rows: (
            x - _part(x, rows.sum(0, keepdim=True))
        ),
        "R R^T is there, its inverse is due: R^T (R R^T)^-1 R x": lambda x, rows: (
            x - rows.mT @ (rows @ rows.mT @ (rows @ x))
        ),
    },
)


# -- error_signature


def _draw_errors(generator: Generator) -> dict:
    each = torch.tensor([0, 1, -1, 2, -2, 3, -4, 5, -15, 10, -10, 20, -7])
    some = each[torch.randint(len(each), (draw_size(generator, 4, 12),), generator=generator)]
    off = torch.cat([each, some])
    return {"off": off[torch.randperm(len(off), generator=generator)]}


def _signature(near: Tensor, tens: Tensor, right: Tensor) -> Tensor:
    return torch.stack([each.double().mean() for each in (near, tens, right)])


def _of_errors(off: Tensor, near, tens) -> Tensor:
    """The signature for other conditions on the nonzero errors."""
    wrong = off[off != 0]
    return _signature(near(wrong), tens(wrong), off == 0)


def _near(wrong: Tensor) -> Tensor:
    return wrong.abs() <= 2


def _tens(wrong: Tensor) -> Tensor:
    return wrong % 10 == 0


def _error_signature(off: Tensor) -> Tensor:
    wrong = off[off != 0]
    near = (wrong.abs() <= 2).double().mean()
    tens = (wrong % 10 == 0).double().mean()
    right = (off == 0).double().mean()
    return torch.stack([near, tens, right])


error_signature = Exercise(
    name="error_signature",
    answer=_error_signature,
    draw=_draw_errors,
    mistakes={
        "right answers are counted as errors: 0 is within 2, and a multiple of 10": lambda off: _signature(
            _near(off), _tens(off), off == 0
        ),
        "the first two are shares of all problems; they are shares of the errors": (
            lambda off: _signature(_near(off) & (off != 0), _tens(off) & (off != 0), off == 0)
        ),
        "the sign is forgotten: -50 is not within 2. Take the absolute value": lambda off: _of_errors(
            off, lambda wrong: wrong <= 2, _tens
        ),
        "errors below 0 are left out: -1 is within 2": lambda off: _of_errors(
            off, lambda wrong: (wrong > 0) & (wrong <= 2), _tens
        ),
        "only answers that are too large count as errors: compare with != 0, not > 0": (
            lambda off: _signature(_near(off[off > 0]), _tens(off[off > 0]), off == 0)
        ),
        "an error of 2 is within 2: <=, not <": lambda off: _of_errors(off, lambda wrong: wrong.abs() < 2, _tens),
        "multiples of 5; those of 10 are asked for": lambda off: _of_errors(off, _near, lambda wrong: wrong % 5 == 0),
        "only errors of exactly 10; 20 is a multiple too": lambda off: _of_errors(
            off, _near, lambda wrong: wrong.abs() == 10
        ),
        "the last is the share of wrong answers; that of right ones is asked for": (
            lambda off: _signature(_near(off[off != 0]), _tens(off[off != 0]), off != 0)
        ),
        "the first two are exchanged": lambda off: _of_errors(off, _tens, _near),
        "counts; divide them by how many there are": lambda off: torch.stack(
            [each.sum().double() for each in (_near(off) & (off != 0), _tens(off) & (off != 0), off == 0)]
        ),
    },
)


# -- random_filter


def _draw_directions(generator: Generator) -> dict:
    removed = draw_size(generator, 2, 4)
    return {"directions": draw_normal(generator, removed + draw_size(generator, 2, 4), removed)}


def _span(directions: Tensor) -> Tensor:
    """The projection onto what the directions span."""
    return directions @ torch.linalg.pinv(directions)


def _beside(projection: Tensor) -> Tensor:
    return torch.eye(len(projection), dtype=projection.dtype) - projection


def _random_filter(directions: Tensor) -> Tensor:
    Q = torch.linalg.qr(directions).Q
    return torch.eye(len(Q), dtype=Q.dtype, device=Q.device) - Q @ Q.mT


random_filter = Exercise(
    name="random_filter",
    answer=_random_filter,
    draw=_draw_directions,
    mistakes={
        "this keeps the directions and takes all else away; take the identity less this": _span,
        "the directions are treated as orthonormal; make them so first (torch.linalg.qr)": (
            lambda directions: _beside(directions @ directions.mT)
        ),
        "the directions have length 1 but are not orthogonal, so that what two of them share is taken twice": (
            lambda directions: _beside(F.normalize(directions, dim=0) @ F.normalize(directions, dim=0).mT)
        ),
        "this mirrors the directions: taken away twice, they come back with the other sign": (
            lambda directions: _beside(2 * _span(directions))
        ),
        "the directions are added once more; take them away": lambda directions: _beside(-_span(directions)),
        "only the first direction is taken away": lambda directions: _beside(_span(directions[:, :1])),
        "only the directions' sum is taken away": lambda directions: _beside(_span(directions.sum(1, keepdim=True))),
    },
)


# -- excess_over_random


def _draw_pairs(generator: Generator) -> dict:
    """Errors of every kind, of more problems in the control, each on its own."""
    each = torch.tensor([0, 0, 1, -2, 3, -5, 5, 6, -6, 7, -15, 10, -30])

    def some(least: int) -> Tensor:
        drawn = each[torch.randint(len(each), (draw_size(generator, least, least + 6),), generator=generator)]
        return torch.cat([each, drawn])

    return {"waves": some(6), "control": torch.cat([some(16), torch.zeros(6, dtype=torch.long)])}


def _share(condition: Tensor) -> Tensor:
    return condition.double().mean()


def _nearby(off: Tensor) -> Tensor:
    return _share(off[off != 0].abs() < 6)


def _with_small(small, sign: int = 1):
    """The answer, with another idea of which errors are small."""
    return lambda waves, control: torch.stack(
        [_share(control == 0) - _share(waves == 0), sign * (small(waves) - small(control))]
    )


def _excess_over_random(waves: Tensor, control: Tensor) -> Tensor:
    lost = (control == 0).double().mean() - (waves == 0).double().mean()
    near = [(off[off != 0].abs() < 6).double().mean() for off in (waves, control)]
    return torch.stack([lost, near[0] - near[1]])


excess_over_random = Exercise(
    name="excess_over_random",
    answer=_excess_over_random,
    draw=_draw_pairs,
    mistakes={
        "both differences have the wrong sign": lambda waves, control: -_excess_over_random(waves, control),
        "the first has the wrong sign: what the waves cost beyond the control is positive": (
            lambda waves, control: _excess_over_random(waves, control) * torch.tensor([-1, 1])
        ),
        "the second has the wrong sign: more small errors without the waves is positive": _with_small(_nearby, -1),
        "the share of small errors is one of all problems; it is one of the errors": _with_small(
            lambda off: _share((off.abs() < 6) & (off != 0))
        ),
        "right answers are counted as small errors": _with_small(lambda off: _share(off.abs() < 6)),
        "an error of 6 is not below 6: <, not <=": _with_small(lambda off: _share(off[off != 0].abs() <= 6)),
        "the sign is forgotten: -30 is not below 6. Take the absolute value": _with_small(
            lambda off: _share(off[off != 0] < 6)
        ),
        "counts; the control has more problems, so compare shares": lambda waves, control: torch.stack(
            [
                ((control == 0).sum() - (waves == 0).sum()).double(),
                ((waves[waves != 0].abs() < 6).sum() - (control[control != 0].abs() < 6).sum()).double(),
            ]
        ),
        "the two are exchanged": lambda waves, control: _excess_over_random(waves, control).flip(0),
        "this is what is left without the waves, without the control": lambda waves, control: torch.stack(
            [_share(waves == 0), _nearby(waves)]
        ),
    },
)
