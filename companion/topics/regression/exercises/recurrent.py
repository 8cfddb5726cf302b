"""The exercises of lesson 03, LSTM against transformer."""

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


def _lstm_step(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> Tensor:
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return torch.stack([h, c])


lstm_step = Exercise(
    name="lstm_step",
    answer=_lstm_step,
    draw=_draw_cell,
)


# -- ogd_step


def _draw_examples(generator: Generator) -> dict:
    batch, d = draw_size(generator, 2, 4), draw_size(generator, 2, 6)
    return {
        "w": draw_normal(generator, batch, d),
        "x": draw_normal(generator, batch, d),
        "y": 2 * draw_normal(generator, batch),
    }


def _ogd_step(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    residual = y - (w * x).sum(-1)
    return w + (residual / x.square().sum(-1))[:, None] * x


ogd_step = Exercise(
    name="ogd_step",
    answer=_ogd_step,
    draw=_draw_examples,
)


# -- ask_again


def _draw_question(generator: Generator) -> dict:
    batch, n, d = draw_size(generator, 2, 4), draw_size(generator, 5, 9), draw_size(generator, 2, 4)
    gap = draw_size(generator, 2, n - 1)
    # in the middle, both ends count alike
    return {"xs": draw_normal(generator, batch, n, d), "gap": gap + (2 * gap == n + 1)}


def _ask_again(xs: Tensor, gap: int) -> Tensor:
    return torch.cat([xs, xs[:, -gap, None]], dim=1)


ask_again = Exercise(
    name="ask_again",
    answer=_ask_again,
    draw=_draw_question,
)


# -- interval


def _draw_values(generator: Generator) -> dict:
    return {
        "values": 1 + 2 * draw_normal(generator, draw_size(generator, 4, 9)),
        "t": float(2 + torch.rand((), generator=generator)),
    }


def _interval(values: Tensor, t: float) -> Tensor:
    half = t * values.std() / len(values) ** 0.5
    return torch.stack([values.mean() - half, values.mean() + half])


interval = Exercise(
    name="interval",
    answer=_interval,
    draw=_draw_values,
)
