"""The exercises of lesson 03, LSTM against transformer.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["ask_again", "interval", "lstm_step", "ogd_step"]


# -- lstm_step


def _draw_cell(generator: Generator) -> dict:
    d, width = draw_size(generator, 2, 4), draw_size(generator, 3, 6)
    return {
        "x": draw_normal(generator, d),
        "h": draw_normal(generator, width),
        "c": 2 * draw_normal(generator, width),
        "W": draw_normal(generator, 4 * width, d),
        "U": draw_normal(generator, 4 * width, width),
        "b": draw_normal(generator, 4 * width),
    }


def _gates(x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()


def _lstm(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> Tensor:
    i, f, g, o = _gates(x, h, W, U, b)
    c = f * c + i * g
    return torch.stack([o * c.tanh(), c])


def _lstm_exchanged(x, h, c, W, U, b):
    i, f, g, o = _gates(x, h, W, U, b)
    c = i * c + f * g
    return torch.stack([o * c.tanh(), c])


def _lstm_sigmoid_candidate(x, h, c, W, U, b):
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.sigmoid()
    return torch.stack([o.sigmoid() * c.tanh(), c])


def _lstm_bare_cell(x, h, c, W, U, b):
    i, f, g, o = _gates(x, h, W, U, b)
    c = f * c + i * g
    return torch.stack([o * c, c])


def _lstm_overwrites(x, h, c, W, U, b):
    i, f, g, o = _gates(x, h, W, U, b)
    c = c * 0 + i * g
    return torch.stack([o * c.tanh(), c])


def _lstm_old_cell(x, h, c, W, U, b):
    i, f, g, o = _gates(x, h, W, U, b)
    return torch.stack([o * c.tanh(), f * c + i * g])


def _lstm_other_order(x, h, c, W, U, b):
    i, f, o, g = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return torch.stack([o.sigmoid() * c.tanh(), c])


def _lstm_no_input_gate(x, h, c, W, U, b):
    i, f, g, o = _gates(x, h, W, U, b)
    c = f * c + g
    return torch.stack([o * c.tanh(), c])


def _lstm_step(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> Tensor:
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return torch.stack([h, c])


lstm_step = Exercise(
    name="lstm_step",
    answer=_lstm_step,
    draw=_draw_cell,
    mistakes={
        "the forget gate and the input gate are exchanged: f multiplies the old cell, i what is new": _lstm_exchanged,
        "the candidate g goes through a sigmoid; it is the one of the four that goes "
        "through tanh": _lstm_sigmoid_candidate,
        "the output gate multiplies the cell as it is; it multiplies tanh of the cell": _lstm_bare_cell,
        "the old cell is lost: f * c is missing from the new cell": _lstm_overwrites,
        "h is computed from the old cell; update c first": _lstm_old_cell,
        "the four parts lie in the order i, f, g, o; here the last two are exchanged": _lstm_other_order,
        "the candidate is not gated: it is i * g that is added to the cell": _lstm_no_input_gate,
        "the answer is h first, then c; here they are exchanged": lambda x, h, c, W, U, b: _lstm(x, h, c, W, U, b).flip(
            0
        ),
    },
)


# -- ogd_step


def _draw_examples(generator: Generator) -> dict:
    batch, d = draw_size(generator, 2, 4), draw_size(generator, 2, 6)
    return {
        "w": draw_normal(generator, batch, d),
        "x": draw_normal(generator, batch, d),
        "y": 2 * draw_normal(generator, batch),
    }


def _left(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """What the weights get wrong: y - w . x, as a column."""
    return (y - (w * x).sum(-1))[:, None]


def _squared(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True)


def _ogd_step(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    residual = y - (w * x).sum(-1)
    return w + (residual / x.square().sum(-1))[:, None] * x


ogd_step = Exercise(
    name="ogd_step",
    answer=_ogd_step,
    draw=_draw_examples,
    mistakes={
        "the step goes uphill: with residual y - w . x it is added, not subtracted": lambda w, x, y: (
            w - _left(w, x, y) * x / _squared(x)
        ),
        "divides by the length of x; it must be the squared length": lambda w, x, y: (
            w + _left(w, x, y) * x / _squared(x).sqrt()
        ),
        "the step is not divided by the squared length of x, so that long inputs overshoot": lambda w, x, y: (
            w + _left(w, x, y) * x
        ),
        "the residual is y - w . x; here the step is taken towards y alone": lambda w, x, y: (
            w + y[:, None] * x / _squared(x)
        ),
        "twice the step: at 2 / |x|^2 the error on the example is mirrored, at 1 / |x|^2 it is gone": (
            lambda w, x, y: w + 2 * _left(w, x, y) * x / _squared(x)
        ),
        "one length for the whole batch: sum over the last dimension alone, with keepdim": (
            lambda w, x, y: w + _left(w, x, y) * x / x.square().sum()
        ),
        "returns the change of the weights, not the new weights": lambda w, x, y: _left(w, x, y) * x / _squared(x),
        "divides by the dimension d, which is what |x|^2 is on average; divide by the squared length itself": (
            lambda w, x, y: w + _left(w, x, y) * x / x.shape[-1]
        ),
    },
)


# -- ask_again


def _draw_question(generator: Generator) -> dict:
    batch, n, d = draw_size(generator, 2, 4), draw_size(generator, 5, 9), draw_size(generator, 2, 4)
    gap = draw_size(generator, 2, n - 1)
    # in the middle, both ends count alike
    return {"xs": draw_normal(generator, batch, n, d), "gap": gap + (2 * gap == n + 1)}


def _with_question(xs: Tensor, question: Tensor) -> Tensor:
    return torch.cat([xs, question[:, None]], dim=1)


def _ask_again(xs: Tensor, gap: int) -> Tensor:
    return torch.cat([xs, xs[:, -gap, None]], dim=1)


ask_again = Exercise(
    name="ask_again",
    answer=_ask_again,
    draw=_draw_question,
    mistakes={
        "one too far back: at gap 1 the question is the newest example, xs[:, -1]": lambda xs, gap: _with_question(
            xs, xs[:, -gap - 1]
        ),
        "one too near: the gap counts from 1, so index -gap, not -gap + 1": lambda xs, gap: _with_question(
            xs, xs[:, xs.shape[1] - gap + 1]
        ),
        "the gap is counted from the first example; it counts back from the newest": lambda xs, gap: _with_question(
            xs, xs[:, gap - 1]
        ),
        "the index is `gap`, which counts from the first example, and from 0": lambda xs, gap: _with_question(
            xs, xs[:, gap]
        ),
        "the question stands first; it must come last, after all examples": lambda xs, gap: torch.cat(
            [xs[:, -gap, None], xs], dim=1
        ),
        "every prompt is asked the first prompt's question: index the position, not the batch": (
            lambda xs, gap: _with_question(xs, xs[:1, -gap].expand(len(xs), -1))
        ),
    },
)


# -- interval


def _draw_values(generator: Generator) -> dict:
    return {
        "values": 1 + 2 * draw_normal(generator, draw_size(generator, 4, 9)),
        "t": float(2 + torch.rand((), generator=generator)),
    }


def _around(mean: Tensor, half: Tensor) -> Tensor:
    return torch.stack([mean - half, mean + half])


def _interval(values: Tensor, t: float) -> Tensor:
    half = t * values.std() / len(values) ** 0.5
    return torch.stack([values.mean() - half, values.mean() + half])


interval = Exercise(
    name="interval",
    answer=_interval,
    draw=_draw_values,
    mistakes={
        "the spread of single values: divide the standard deviation by sqrt(n) to get that of their mean": (
            lambda values, t: _around(values.mean(), t * values.std())
        ),
        "divides by n; the standard deviation of a mean falls as 1 / sqrt(n)": (
            lambda values, t: _around(values.mean(), t * values.std() / len(values))
        ),
        "the standard deviation divides by n; for a sample it divides by n - 1 (unbiased)": (
            lambda values, t: _around(values.mean(), t * values.std(correction=0) / len(values) ** 0.5)
        ),
        "uses the variance; its square root is wanted": lambda values, t: _around(
            values.mean(), t * values.var() / len(values) ** 0.5
        ),
        "the normal distribution's 1.96 instead of t: with few seeds the interval comes out too narrow": (
            lambda values, t: _around(values.mean(), 1.96 * values.std() / len(values) ** 0.5)
        ),
        "the median is in the middle; the interval is for the mean": (
            lambda values, t: _around(values.median(), t * values.std() / len(values) ** 0.5)
        ),
        "the order is low, then high; here they are exchanged": (
            lambda values, t: _around(values.mean(), -t * values.std() / len(values) ** 0.5)
        ),
        "smallest and largest value; the interval is for the mean": lambda values, t: torch.stack(
            [values.min(), values.max()]
        ),
    },
)
