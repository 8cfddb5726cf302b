"""The exercises of lesson 04, addition with Fourier features.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

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


# -- share_of_logits


def _draw_parts(generator: Generator) -> dict:
    modules, width, answers = draw_size(generator, 3, 5), draw_size(generator, 5, 8), draw_size(generator, 4, 7)
    # as small as this eps shows, and as far from mean 0 the centring does
    parts = 0.1 + 0.1 * draw_normal(generator, modules, width)
    return {
        "parts": parts,
        "stream": parts.sum(0),
        "weight": 1 + 0.5 * draw_normal(generator, width),
        "bias": draw_normal(generator, width),
        "unembedding": draw_normal(generator, answers, width),
    }


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def _scale(x: Tensor, correction: int = 0) -> Tensor:
    return (x.var(-1, correction=correction, keepdim=True) + 1e-5).sqrt()


def _read(normed: Tensor, weight: Tensor | float, bias: Tensor | float, unembedding: Tensor) -> Tensor:
    """Parts of a normed stream as logits; the bias goes to the first."""
    first = torch.zeros_like(normed)
    first[0] = 1
    return (normed * weight + first * bias) @ unembedding.mT


def _share_of_logits(parts: Tensor, stream: Tensor, weight: Tensor, bias: Tensor, unembedding: Tensor) -> Tensor:
    scale = (stream.var(unbiased=False) + 1e-5).sqrt()
    normed = (parts - parts.mean(1, keepdim=True)) / scale
    shift = torch.zeros_like(parts)
    shift[0] = bias
    return (normed * weight + shift) @ unembedding.mT


share_of_logits = Exercise(
    name="share_of_logits",
    answer=_share_of_logits,
    draw=_draw_parts,
    mistakes={
        "each part is divided by its own standard deviation; the norm divides the whole stream by one number": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(parts), weight, bias, unembedding
            )
        ),
        "the parts are not centred: take each part's own mean away": (
            lambda parts, stream, weight, bias, unembedding: _read(parts / _scale(stream), weight, bias, unembedding)
        ),
        "the stream's mean is taken from each part; each has a mean of its own, and these sum to the stream's": (
            lambda parts, stream, weight, bias, unembedding: _read(
                (parts - stream.mean()) / _scale(stream), weight, bias, unembedding
            )
        ),
        "the norm's weight is missing": lambda parts, stream, weight, bias, unembedding: _read(
            _centred(parts) / _scale(stream), 1.0, bias, unembedding
        ),
        "the norm's bias is missing, so that the shares do not sum to the logits": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream), weight, 0.0, unembedding
            )
        ),
        "the bias is added to every part; the norm adds it once, give it to the first": (
            lambda parts, stream, weight, bias, unembedding: (
                (_centred(parts) / _scale(stream) * weight + bias) @ unembedding.mT
            )
        ),
        "the bias is split over the parts; it goes to the first": (
            lambda parts, stream, weight, bias, unembedding: (
                (_centred(parts) / _scale(stream) * weight + bias / len(parts)) @ unembedding.mT
            )
        ),
        "the bias is multiplied by the weight; the norm adds it after": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream), weight, weight * bias, unembedding
            )
        ),
        "the variance is divided by width - 1; a layer norm divides by width (unbiased=False)": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream, 1), weight, bias, unembedding
            )
        ),
        "divides by the variance; divide by its square root": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream) ** 2, weight, bias, unembedding
            )
        ),
        "divides by the stream's root mean square; a layer norm takes the mean away first": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / (stream.square().mean() + 1e-5).sqrt(), weight, bias, unembedding
            )
        ),
        "eps = 1e-5 is missing under the root": lambda parts, stream, weight, bias, unembedding: _read(
            _centred(parts) / stream.std(correction=0), weight, bias, unembedding
        ),
        "eps is added to the standard deviation; it belongs to the variance, under the root": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / (stream.std(correction=0) + 1e-5), weight, bias, unembedding
            )
        ),
    },
)


# -- logit_lens


def _draw_streams(generator: Generator) -> dict:
    modules, problems = draw_size(generator, 3, 5), draw_size(generator, 2, 4)
    width, answers = draw_size(generator, 5, 8), draw_size(generator, 4, 7)
    # as small as this eps shows, and as far from mean 0 the centring does
    return {
        "parts": 0.05 + 0.1 * draw_normal(generator, modules, problems, width),
        "weight": 1 + 0.5 * draw_normal(generator, width),
        "bias": draw_normal(generator, width),
        "unembedding": draw_normal(generator, answers, width),
    }


def _looked(parts: Tensor, weight: Tensor | float, bias: Tensor | float, unembedding: Tensor) -> Tensor:
    """What each of the parts says, taken for a stream."""
    return (_centred(parts) / _scale(parts) * weight + bias) @ unembedding.mT


def _logit_lens(parts: Tensor, weight: Tensor, bias: Tensor, unembedding: Tensor) -> Tensor:
    streams = parts.cumsum(0)
    centred = streams - streams.mean(-1, keepdim=True)
    scale = (streams.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return (centred / scale * weight + bias) @ unembedding.mT


logit_lens = Exercise(
    name="logit_lens",
    answer=_logit_lens,
    draw=_draw_streams,
    mistakes={
        "each module is read alone; the stream after a module is the sum of all parts up to it": _looked,
        "every module gets the last stream; after a module only the parts up to it are there": (
            lambda parts, weight, bias, unembedding: _looked(
                parts.sum(0, keepdim=True).expand_as(parts), weight, bias, unembedding
            )
        ),
        "the parts are added along the problems; they add up along the modules, dimension 0": (
            lambda parts, weight, bias, unembedding: _looked(parts.cumsum(1), weight, bias, unembedding)
        ),
        "the module's own part is left out of its stream": (
            lambda parts, weight, bias, unembedding: _looked(parts.cumsum(0) - parts, weight, bias, unembedding)
        ),
        "the parts are added from the last back; the stream begins with the first": (
            lambda parts, weight, bias, unembedding: _looked(parts.flip(0).cumsum(0).flip(0), weight, bias, unembedding)
        ),
        "the mean over the parts; a stream is their sum": lambda parts, weight, bias, unembedding: _looked(
            parts.cumsum(0) / torch.arange(1, len(parts) + 1)[:, None, None], weight, bias, unembedding
        ),
        "the norm is missing: centre each stream, divide it by its standard deviation, then weight and bias": (
            lambda parts, weight, bias, unembedding: parts.cumsum(0) @ unembedding.mT
        ),
        "all streams are divided by the last one's standard deviation; each has its own": (
            lambda parts, weight, bias, unembedding: (
                (_centred(parts.cumsum(0)) / _scale(parts.sum(0)) * weight + bias) @ unembedding.mT
            )
        ),
        "the streams are not centred": lambda parts, weight, bias, unembedding: (
            (parts.cumsum(0) / _scale(parts.cumsum(0)) * weight + bias) @ unembedding.mT
        ),
        "the norm's weight is missing": lambda parts, weight, bias, unembedding: _looked(
            parts.cumsum(0), 1.0, bias, unembedding
        ),
        "the norm's bias is missing": lambda parts, weight, bias, unembedding: _looked(
            parts.cumsum(0), weight, 0.0, unembedding
        ),
        "the bias is multiplied by the weight; the norm adds it after": lambda parts, weight, bias, unembedding: (
            _looked(parts.cumsum(0), weight, weight * bias, unembedding)
        ),
        "the variance is divided by width - 1; a layer norm divides by width (unbiased=False)": (
            lambda parts, weight, bias, unembedding: (
                (_centred(parts.cumsum(0)) / _scale(parts.cumsum(0), 1) * weight + bias) @ unembedding.mT
            )
        ),
    },
)


# -- wave_rows


def _draw_wave(generator: Generator) -> dict:
    # no whole number: a wave that fits into n hides mistakes
    period = float(5 + 6 * torch.rand((), generator=generator))
    return {"n": draw_size(generator, 12, 16), "period": period, "k": draw_size(generator, 3, 4)}


def _waves(n: int, turns: float, first: int = 0) -> Tensor:
    """Cosine and sine of 2 pi * turns * x for x = first, first + 1, .."""
    angles = 2 * math.pi * turns * torch.arange(first, first + n, dtype=torch.float64)
    return torch.stack([angles.cos(), angles.sin()])


def _wave_rows(n: int, period: float, k: int) -> Tensor:
    angles = 2 * math.pi * k * torch.arange(n, dtype=torch.float64) / period
    return torch.stack([angles.cos(), angles.sin()])


wave_rows = Exercise(
    name="wave_rows",
    states_dtype=True,
    answer=_wave_rows,
    draw=_draw_wave,
    mistakes={
        "the sine comes first; row 0 is the cosine": lambda n, period, k: _waves(n, k / period).flip(0),
        "divides by n; the wave turns k times in a period, however many numbers there are": lambda n, period, k: _waves(
            n, k / n
        ),
        "the factor 2 pi is missing: a full turn is 2 pi": lambda n, period, k: _waves(n, k / period / (2 * math.pi)),
        "the factor is pi, half a turn; a full turn is 2 pi": lambda n, period, k: _waves(n, k / period / 2),
        "starts at x = 1; the first number is 0": lambda n, period, k: _waves(n, k / period, first=1),
        "angles are in degrees; torch.cos takes radians": lambda n, period, k: _waves(n, 180 / math.pi * k / period),
        "k is missing: this is the wave that turns once in a period": lambda n, period, k: _waves(n, 1 / period),
        "divides by k: the period is made longer, not shorter": lambda n, period, k: _waves(n, 1 / (k * period)),
        "each row is brought to length 1; leave it as it is": lambda n, period, k: F.normalize(
            _waves(n, k / period), dim=1
        ),
        "the sine has the wrong sign": lambda n, period, k: _waves(n, -k / period),
    },
)


# -- ppmi


def _draw_counts(generator: Generator) -> dict:
    """Large counts on the diagonal but for one word, some zeros beside it, and one word that never occurs."""
    n = draw_size(generator, 5, 7)
    counts = torch.randint(0, 10, (n, n), generator=generator).triu(1)
    counts[1, 2], counts[1, 3], counts[2, 3], counts[3, 4] = (
        9,
        1,
        0,
        9,
    )  # rather more, rather less than by chance; never
    counts = counts + counts.mT + torch.randint(20, 40, (n,), generator=generator).diag()
    counts[0] = counts[:, 0] = 0
    counts[4, 4] = 5
    order = torch.randperm(n, generator=generator)
    return {"counts": counts[order][:, order].double()}


def _information(counts: Tensor, alone: Tensor | None = None) -> Tensor:
    """log(p_ij / (p_i p_j)), and 0 where the count is 0."""
    joint = counts / counts.sum()
    alone = joint.sum(1) if alone is None else alone
    return torch.where(counts > 0, joint / torch.outer(alone, alone), 1).log()


def _ratio(counts: Tensor) -> Tensor:
    """p_ij / (p_i p_j), and 0 where the count is 0."""
    return torch.where(counts > 0, _information(counts).exp(), 0)


def _ppmi(counts: Tensor) -> Tensor:
    p = counts / counts.sum()
    alone = p.sum(1)
    return (p / torch.outer(alone, alone)).log().nan_to_num(nan=0.0).clamp_min(0)


ppmi = Exercise(
    name="ppmi",
    answer=_ppmi,
    draw=_draw_counts,
    mistakes={
        "every entry is 0: no ratio is above 1. Divide p_ij by p_i and by p_j, and all counts "
        "by the total": lambda counts: 0 * counts,
        "negative values are kept; the positive part is asked for, max(0, ..)": _information,
        "negative values become positive: take max(0, ..), not the absolute value": lambda counts: _information(
            counts
        ).abs(),
        "information in bits; take the natural logarithm": lambda counts: (
            _information(counts).clamp_min(0) / math.log(2)
        ),
        "the logarithm is missing": _ratio,
        "the logarithm is missing: a ratio below 1, not below 0, is what becomes 0": (
            lambda counts: torch.where(_ratio(counts) > 1, _ratio(counts), 0)
        ),
        "1 is added within the logarithm: log(1 + ratio) has no zeros below chance": lambda counts: _ratio(
            counts
        ).log1p(),
        "p_ij is a count, p_i and p_j are shares: divide it by the total, too": (
            lambda counts: torch.where(counts > 0, _information(counts) + counts.sum().log(), 0).clamp_min(0)
        ),
        "p_i is a mean over the row; it is the row's sum": (
            lambda counts: _information(counts, counts.mean(1) / counts.sum()).clamp_min(0)
        ),
        "p_i is taken from the diagonal; it is the row's sum": (
            lambda counts: _information(counts, counts.diagonal() / counts.sum()).clamp_min(0)
        ),
        "p_i comes from the diagonal's share of the diagonal; it is the row's sum over the total": (
            lambda counts: _information(counts, counts.diagonal() / counts.trace()).clamp_min(0)
        ),
    },
)
