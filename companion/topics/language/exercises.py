"""The exercises of lesson 15, a language model that others trained: what the lesson imports as ``exercises``."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.language.by_hand import SIDES, Planted, number, planted
from companion.topics.language.probes import head_maps, streams_and_writers


def _base(generator: Generator) -> float:
    return float(20 + 100 * torch.rand((), generator=generator))


def _draw_turned(generator: Generator) -> dict:
    before = [draw_size(generator, 2, 3) for _ in range(draw_size(generator, 1, 2))]
    length, h = draw_size(generator, 5, 8), 2 * draw_size(generator, 2, 5)
    return {"x": draw_normal(generator, *before, length, h), "base": _base(generator)}


@exercise(draw=_draw_turned, now="your queries and keys see how far apart they are")
def rotary(x: Tensor, base: float) -> Tensor:
    length, h = x.shape[-2:]
    place = torch.arange(length).to(x)[:, None]
    pair = torch.arange(h // 2).to(x)
    angle = place / base ** (2 * pair / h)
    cos, sin = angle.cos(), angle.sin()
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


def _draw_heads(generator: Generator) -> dict:
    sizes = [draw_size(generator, 5, 6), draw_size(generator, 3, 5), draw_size(generator, 5, 7)]
    h = draw_size(generator, 2, 3)
    return {
        "z": draw_normal(generator, *sizes, h),
        "other": 2 * draw_normal(generator, h) + draw_normal(generator, *sizes, h),
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
    sizes = torch.tensor([0.05, 1.5, 0.05])[:batch, None, None].double()  # some so small that the norm's 1e-5 counts
    rest, wrote, other = (sizes * draw_normal(generator, batch, T, d) for _ in range(3))
    return {
        "stream": rest + 2 * wrote,
        "wrote": 2 * wrote,
        "other": other,
        "norm": draw_normal(generator, d),
        "WQ": 0.7 * draw_normal(generator, h, d),
        "WK": 0.7 * draw_normal(generator, h, d),
        "base": _base(generator),
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
    rows, liked = torch.arange(texts), draw_size(generator, -9, 3)  # how much one answer is liked in any case
    clean[rows, right] += 3 + liked
    other[rows, right] += liked
    other[rows, wrong] += 3
    brought = 2 * torch.rand(parts, texts, 1, generator=generator, dtype=torch.float64) - 0.5
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


def _draw_planted(generator: Generator) -> dict:
    of = planted(2, generator)
    stream, wrote = streams_and_writers(of.model, of.tokens, 1)
    return {
        "stream": stream,
        "wrote": wrote,
        "other": streams_and_writers(of.model, of.others, 1)[1],
        "norm": of.model.blocks[1].norm1.weight,
        "heads": head_maps(of.model, 1)[: len(of.readers)],
        "base": of.model.config.base,
        "asked": of.asked,
        "toward": of.toward,
        "_planted": of,
    }


def _is_boolean(_: dict, found: Tensor) -> str | None:
    if found.dtype != torch.bool:
        return f"the answer is in {found.dtype}; True and False are due, torch.bool"
    if found.all() or not found.any():
        return f"{'every' if found.any() else 'no'} wire is marked"
    return None


def _columns_are_in_order(inputs: dict, found: Tensor) -> str | None:
    due = inputs["_planted"].wired
    for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        if not torch.equal(found, due) and torch.equal(found[..., list(order)], due):
            return "the columns are in another order; first come the queries, then the keys, then the values"
    return None


def _marks_what_is_needed(inputs: dict, found: Tensor) -> str | None:
    of: Planted = inputs["_planted"]
    for reader, writer, side in (of.wired != found).nonzero().tolist():
        name, needed = SIDES[side], of.wired[reader, :, side].nonzero()[:, 0].tolist()

        whole = number(of, reader)
        alone, both = (f"{1 - number(of, reader, name, w) / whole:.0%} of its number" for w in ([writer], needed))
        told = f"reader {reader} loses {alone} when of writer {writer} its {name} alone read what is in other"
        if found[reader, writer, side]:
            return f"{told}; you say that it needs this wire"
        if "spare" in of.readers[reader].kind and writer in needed[-2:]:
            one, two = needed = sorted(getattr(of.readers[reader], name)[-2:])
            return f"{told}, but {both} when they read it of {one} and of {two}; so it needs both"
        return f"{told}; you say that it does not need this wire"
    return None


@summit(
    draw=_draw_planted,
    shape=lambda inputs: (len(inputs["heads"]), len(inputs["wrote"]), 3),
    stages=(_is_boolean, _columns_are_in_order, _marks_what_is_needed),
    seconds=4,
    compared=lambda found: found.double(),
    now="you can ask any head of any model which heads it builds upon",
)
def find_wires(
    stream: Tensor,
    wrote: Tensor,
    other: Tensor,
    norm: Tensor,
    heads: Tensor,
    base: float,
    asked: Tensor,
    toward: Tensor,
) -> Tensor:
    def number(r: int, side: int, change: Tensor | float) -> Tensor:
        reads = [stream, stream, stream]
        reads[side] = stream + change
        normed = [x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm for x in reads]
        queries, keys, values = normed
        WQ, WK, WV, WO = heads[r]
        scores = rotary.answer(queries @ WQ.mT, base) @ rotary.answer(keys @ WK.mT, base).mT / len(WQ) ** 0.5
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        pattern = scores.masked_fill(future, -torch.inf).softmax(-1)
        written = pattern @ (values @ WV.mT) @ WO
        return (asked[r] * pattern).sum() + (toward[r] * written).sum()

    needs = torch.zeros(len(heads), len(wrote), 3, dtype=torch.bool)
    changes = other - wrote
    for r in range(len(heads)):
        whole = number(r, 0, 0.0)
        least = 2 / 3 * whole
        for side in range(3):
            gone = torch.stack([number(r, side, change) < least for change in changes])
            rest = changes[~gone].sum(0)
            left = number(r, side, rest)
            back = torch.stack([number(r, side, rest - change) for change in changes]) - left
            needs[r, :, side] = gone | ((left < least) & (back >= (whole - left) / 2))
    return needs


def _draw_sentences(generator: Generator) -> dict:
    texts, length, names = draw_size(generator, 4, 6), draw_size(generator, 8, 10), draw_size(generator, 5, 7)
    order = torch.randperm(40, generator=generator)
    names, words = order[:names], order[names:]
    rows = []
    for _ in range(texts):
        said = names[torch.randperm(len(names), generator=generator)[:2]]
        row = words[torch.randint(len(words), (length,), generator=generator)]
        places = (1 + torch.randperm(length - 1, generator=generator)[:3]).sort().values
        row[places] = said[[0, 1, int(torch.randint(2, (), generator=generator))]]
        rows.append(row)
    return {"tokens": torch.stack(rows), "names": names}


@exercise(draw=_draw_sentences, now="you have, of each sentence, the same one in which no name comes twice")
def third_names(tokens: Tensor, names: Tensor) -> Tensor:
    others = tokens.clone()
    for text, other in zip(tokens, others, strict=True):
        places = torch.isin(text, names).nonzero()[:, 0]
        free = names[~torch.isin(names, text)]
        other[places[-1]] = free[0]
    return others


def _draw_late(generator: Generator) -> dict:
    texts, heads, h = draw_size(generator, 3, 5), draw_size(generator, 2, 4), draw_size(generator, 2, 3)
    d, V = heads * h + draw_size(generator, 1, 3), draw_size(generator, 6, 8)
    right = torch.randint(V, (texts,), generator=generator)
    size = torch.tensor([0.004, 1.0, 3.0, 1.0, 0.5])[:texts, None].double()  # one so small that the norm's 1e-5 counts
    return {
        "z": draw_normal(generator, texts, heads, h),
        "WO": draw_normal(generator, heads, h, d),
        "last": size * draw_normal(generator, texts, d),
        "norm": draw_normal(generator, d),
        "U": draw_normal(generator, V, d),
        "right": right,
        "wrong": (right + torch.randint(1, V, (texts,), generator=generator)) % V,
    }


@exercise(draw=_draw_late, now="you can say of each head what it adds to an answer by itself")
def direct_effects(
    z: Tensor, WO: Tensor, last: Tensor, norm: Tensor, U: Tensor, right: Tensor, wrong: Tensor
) -> Tensor:
    written = torch.einsum("bnh,nhd->bnd", z, WO)
    scale = 1 / (last.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    toward = (U[right] - U[wrong]) * norm * scale
    return torch.einsum("bnd,bd->bn", written, toward)


def _draw_looks(generator: Generator) -> dict:
    heads, texts = 200, draw_size(generator, 5, 7)
    share, least = 0.25 + 0.1 * float(torch.rand((), generator=generator)), 2.0
    kind = torch.randint(4, (heads, 1, 1), generator=generator)
    looked = share * (1 + 0.2 * draw_normal(generator, heads, 1, 1)) * (torch.arange(4) == kind)
    looks = (looked + 0.02) * (0.2 + 1.6 * torch.rand(heads, texts, 4, generator=generator, dtype=torch.float64))
    size = least * (1 + draw_normal(generator, heads, 1).abs())
    direct = size * draw_normal(generator, heads, 1).sign() + least * draw_normal(generator, heads, texts)
    return {"looks": looks[..., :3].clamp(0, 1), "direct": direct, "share": share, "least": least}


@exercise(draw=_draw_looks, now="the classes of heads are your own to name")
def name_kinds(looks: Tensor, direct: Tensor, share: float, least: float) -> Tensor:
    receiver, _, second = looks.mean(1).T
    mean, half = direct.mean(1), 1.96 * direct.std(1) / direct.shape[1] ** 0.5
    raises, lowers = mean - half > least, mean + half < -least
    kinds = torch.zeros(len(looks), dtype=torch.long, device=looks.device)
    kinds[(receiver > share) & raises] = 1
    kinds[(receiver > share) & lowers] = 2
    kinds[(second > share) & raises] = 3
    return kinds


def _draw_last_word(generator: Generator) -> dict:
    writers, texts, T = draw_size(generator, 2, 4), draw_size(generator, 2, 3), draw_size(generator, 4, 6)
    h = draw_size(generator, 2, 4)
    d = 2 * h + draw_size(generator, 1, 3)
    size = torch.tensor([0.005, 1.5, 0.5])[:texts, None].double()  # one so small that the norm's 1e-5 counts
    rest, wrote, other = (size * draw_normal(generator, *shape, texts, d) for shape in ((), (writers,), (writers,)))
    return {
        "stream": rest + wrote.sum(0),
        "wrote": wrote,
        "other": other,
        "norm": draw_normal(generator, d),
        "WQ": draw_normal(generator, h, d),
        "keys": draw_normal(generator, texts, T, h),
    }


@exercise(draw=_draw_last_word, now="you can ask of every earlier head at once whether a head's queries need it")
def looks_without(stream: Tensor, wrote: Tensor, other: Tensor, norm: Tensor, WQ: Tensor, keys: Tensor) -> Tensor:
    changed = stream - wrote + other
    normed = changed / (changed.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm
    queries = normed @ WQ.mT
    scores = torch.einsum("wbh,bth->wbt", queries, keys) / len(WQ) ** 0.5
    return scores.softmax(-1)
