"""The exercises of lesson 04, addition with Fourier features."""

import math

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- remove_waves


def _draw_rows(generator: Generator) -> dict:
    r = draw_size(generator, 2, 3)
    width = r + draw_size(generator, 2, 4)
    # what they share keeps them from being orthogonal
    rows = draw_normal(generator, r, width) + draw_normal(generator, width)
    return {"x": draw_normal(generator, width), "rows": rows}


def _remove_waves(x: Tensor, rows: Tensor) -> Tensor:
    c = torch.linalg.solve(rows @ rows.mT, rows @ x)
    return x - rows.mT @ c


remove_waves = Exercise(
    name="remove_waves",
    answer=_remove_waves,
    draw=_draw_rows,
)


# -- error_signature


def _draw_errors(generator: Generator) -> dict:
    each = torch.tensor([0, 1, -1, 2, -2, 3, -4, 5, -15, 10, -10, 20, -7])
    some = each[torch.randint(len(each), (draw_size(generator, 4, 12),), generator=generator)]
    off = torch.cat([each, some])
    return {"off": off[torch.randperm(len(off), generator=generator)]}


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
)


# -- random_filter


def _draw_directions(generator: Generator) -> dict:
    removed = draw_size(generator, 2, 4)
    return {"directions": draw_normal(generator, removed + draw_size(generator, 2, 4), removed)}


def _random_filter(directions: Tensor) -> Tensor:
    Q = torch.linalg.qr(directions).Q
    return torch.eye(len(Q), dtype=Q.dtype, device=Q.device) - Q @ Q.mT


random_filter = Exercise(
    name="random_filter",
    answer=_random_filter,
    draw=_draw_directions,
)


# -- excess_over_random


def _draw_pairs(generator: Generator) -> dict:
    """Errors of every kind, of more problems in the control, each on its own."""
    each = torch.tensor([0, 0, 1, -2, 3, -5, 5, 6, -6, 7, -15, 10, -30])

    def some(least: int) -> Tensor:
        drawn = each[torch.randint(len(each), (draw_size(generator, least, least + 6),), generator=generator)]
        return torch.cat([each, drawn])

    return {"waves": some(6), "control": torch.cat([some(16), torch.zeros(6, dtype=torch.long)])}


def _excess_over_random(waves: Tensor, control: Tensor) -> Tensor:
    lost = (control == 0).double().mean() - (waves == 0).double().mean()
    near = [(off[off != 0].abs() < 6).double().mean() for off in (waves, control)]
    return torch.stack([lost, near[0] - near[1]])


excess_over_random = Exercise(
    name="excess_over_random",
    answer=_excess_over_random,
    draw=_draw_pairs,
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


def _logit_lens(parts: Tensor, weight: Tensor, bias: Tensor, unembedding: Tensor) -> Tensor:
    streams = parts.cumsum(0)
    centred = streams - streams.mean(-1, keepdim=True)
    scale = (streams.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return (centred / scale * weight + bias) @ unembedding.mT


logit_lens = Exercise(
    name="logit_lens",
    answer=_logit_lens,
    draw=_draw_streams,
)


# -- wave_rows


def _draw_wave(generator: Generator) -> dict:
    # no whole number: a wave that fits into n hides mistakes
    period = float(5 + 6 * torch.rand((), generator=generator))
    return {"n": draw_size(generator, 12, 16), "period": period, "k": draw_size(generator, 3, 4)}


def _wave_rows(n: int, period: float, k: int) -> Tensor:
    angles = 2 * math.pi * k * torch.arange(n, dtype=torch.float64) / period
    return torch.stack([angles.cos(), angles.sin()])


wave_rows = Exercise(
    name="wave_rows",
    states_dtype=True,
    answer=_wave_rows,
    draw=_draw_wave,
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


def _ppmi(counts: Tensor) -> Tensor:
    p = counts / counts.sum()
    alone = p.sum(1)
    return (p / torch.outer(alone, alone)).log().nan_to_num(nan=0.0).clamp_min(0)


ppmi = Exercise(
    name="ppmi",
    answer=_ppmi,
    draw=_draw_counts,
)
