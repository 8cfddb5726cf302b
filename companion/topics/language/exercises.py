"""The exercises of lesson 15, a language model that others trained: what the lesson imports as ``exercises``."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise


def _draw_turned(generator: Generator) -> dict:
    sizes = [draw_size(generator, 2, 3), draw_size(generator, 2, 3), draw_size(generator, 5, 8)]
    h = 2 * draw_size(generator, 2, 5)
    base = float(20 + 100 * torch.rand((), generator=generator))
    return {"x": draw_normal(generator, *sizes, h), "base": base}


@exercise(draw=_draw_turned, now="your queries and keys see how far apart they are")
def rotary(x: Tensor, base: float) -> Tensor:
    length, h = x.shape[-2:]
    place = torch.arange(length, device=x.device)[:, None]
    pair = torch.arange(h // 2, device=x.device)
    angle = place / base ** (2 * pair / h)
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


def _draw_heads(generator: Generator) -> dict:
    sizes = [draw_size(generator, 2, 4), draw_size(generator, 3, 5), draw_size(generator, 4, 6)]
    h = draw_size(generator, 2, 3)
    return {
        "z": draw_normal(generator, *sizes, h),
        "other": 0.4 + draw_normal(generator, *sizes, h),
        "head": draw_size(generator, 0, sizes[1] - 1),
    }


@exercise(draw=_draw_heads, now="you can take any head out of a model, in three ways")
def without_head(z: Tensor, other: Tensor, head: int) -> Tensor:
    out = torch.stack([z, z, z])
    out[0, :, head] = 0
    out[1, :, head] = other[:, head].mean((0, 1))
    out[2, :, head] = other[:, head]
    return out


def _draw_reader(generator: Generator) -> dict:
    batch, T, h = draw_size(generator, 2, 3), draw_size(generator, 5, 7), 2 * draw_size(generator, 2, 3)
    d = 2 * h + draw_size(generator, 1, 3)
    stream, wrote, other = (draw_normal(generator, batch, T, d) for _ in range(3))
    return {
        "stream": stream + 2 * wrote,
        "wrote": 2 * wrote,
        "other": other,
        "norm": 0.5 + torch.rand(d, generator=generator, dtype=torch.float64),
        "WQ": 0.7 * draw_normal(generator, h, d),
        "WK": 0.7 * draw_normal(generator, h, d),
        "base": float(20 + 100 * torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_reader, now="you can cut one wire of a head that nobody built for you")
def cut_wire(stream: Tensor, wrote: Tensor, other: Tensor, norm: Tensor, WQ: Tensor, WK: Tensor, base: float) -> Tensor:
    def normed(x: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm

    whole, cut = normed(stream), normed(stream - wrote + other)
    patterns = []
    for queries, keys in [(cut, whole), (whole, cut)]:
        q, k = rotary.answer(queries @ WQ.mT, base), rotary.answer(keys @ WK.mT, base)
        scores = q @ k.mT / len(WQ) ** 0.5
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        patterns.append(scores.masked_fill(future, -torch.inf).softmax(-1))
    return torch.stack(patterns)


def _draw_logits(generator: Generator) -> dict:
    parts, texts, V = draw_size(generator, 3, 5), draw_size(generator, 4, 6), draw_size(generator, 7, 9)
    right = torch.randint(V, (texts,), generator=generator)
    wrong = (right + torch.randint(1, V, (texts,), generator=generator)) % V
    clean, other = draw_normal(generator, texts, V), draw_normal(generator, texts, V)
    rows = torch.arange(texts)
    clean[rows, right] += 3
    other[rows, wrong] += 3
    brought = torch.rand(parts, texts, 1, generator=generator, dtype=torch.float64)
    return {
        "clean": clean,
        "other": other,
        "patched": other + brought * (clean - other) + 0.3 * draw_normal(generator, parts, texts, V),
        "right": right,
        "wrong": wrong,
    }


@exercise(draw=_draw_logits, now="you can ask of any place and any head whether the fact is there")
def share_restored(clean: Tensor, other: Tensor, patched: Tensor, right: Tensor, wrong: Tensor) -> Tensor:
    texts = torch.arange(len(right), device=right.device)

    def difference(logits: Tensor) -> Tensor:
        return (logits[..., texts, right] - logits[..., texts, wrong]).mean(-1)

    low, high = difference(other), difference(clean)
    return (difference(patched) - low) / (high - low)
