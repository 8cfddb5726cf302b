"""The exercises of lesson 01, attention basics, and of the taster: what both import as ``exercises``."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.attention.suspects import CARRIES, WIRES, suspects


def _draw_scores(generator: Generator) -> dict:
    T = draw_size(generator, 4, 7)
    return {"scores": draw_normal(generator, T, T), "future": torch.ones(T, T, dtype=torch.bool).triu(1)}


@exercise(draw=_draw_scores, now="every word looks back, and at nothing that comes after it")
def look_back(scores: Tensor, future: Tensor) -> Tensor:
    return scores.masked_fill(future, -torch.inf).softmax(-1)


def _orthonormal(generator: Generator, *sizes: int) -> list[Tensor]:
    """Blocks of orthonormal rows, orthogonal to one another, in a stream with one channel to spare."""
    width = sum(sizes) + 1
    basis, _ = torch.linalg.qr(draw_normal(generator, width, width))
    return [block.contiguous() for block in basis[:-1].split(sizes)]


def _beta(generator: Generator) -> float:
    return float(2 + 3 * torch.rand((), generator=generator))


def _draw_stream(generator: Generator) -> dict:
    T, V = draw_size(generator, 4, 6), draw_size(generator, 3, 4)
    position, token, previous, out = _orthonormal(generator, T, V, V, V)
    return {"position": position, "token": token, "previous": previous, "out": out, "beta": _beta(generator)}


@exercise(draw=_draw_stream, now="your two heads continue whatever text repeats itself")
def induction_layers(position: Tensor, token: Tensor, previous: Tensor, out: Tensor, beta: float) -> Tensor:
    qk1 = beta * position[1:].mT @ position[:-1]
    ov1 = previous.mT @ token
    qk2 = beta * token.mT @ previous
    ov2 = out.mT @ token
    return torch.stack([torch.stack([qk1, ov1]), torch.stack([qk2, ov2])])


def _draw_lookup(generator: Generator) -> dict:
    V = draw_size(generator, 3, 4)
    asked, subject, token, answer, marks = _orthonormal(generator, V, V, V, V, 2)
    return {
        "asked": asked,
        "subject": subject,
        "role": marks[0],
        "one": marks[1],
        "token": token,
        "answer": answer,
        "beta": _beta(generator),
    }


@exercise(draw=_draw_lookup, now="stacked four times, this head follows four hops")
def lookup(
    asked: Tensor, subject: Tensor, role: Tensor, one: Tensor, token: Tensor, answer: Tensor, beta: float
) -> Tensor:
    qk = beta * (asked.mT @ subject + torch.outer(one, role))
    ov = answer.mT @ token
    return torch.stack([qk, ov])


def _draw_jumps(generator: Generator) -> dict:
    T, V = draw_size(generator, 4, 6), draw_size(generator, 3, 4)
    position, jump, further, word, said = _orthonormal(generator, T, T, T, V, V)
    return {
        "position": position,
        "jump": jump,
        "further": further,
        "word": word,
        "said": said,
        "beta": _beta(generator),
    }


@exercise(draw=_draw_jumps, now="four such layers make sixteen hops of one")
def double(position: Tensor, jump: Tensor, further: Tensor, word: Tensor, said: Tensor, beta: float) -> Tensor:
    qk = beta * jump.mT @ position
    ov = further.mT @ jump + said.mT @ word
    return torch.stack([qk, ov])


def _draw_qkv(generator: Generator) -> dict:
    T, d, m = draw_size(generator, 4, 7), draw_size(generator, 2, 6), draw_size(generator, 2, 3)
    return {"Q": draw_normal(generator, T, d), "K": draw_normal(generator, T, d), "V": draw_normal(generator, T, m)}


@exercise(draw=_draw_qkv, now="a word can ask the words before it")
def attention(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
    return weights @ V


def _draw_heads(generator: Generator) -> dict:
    T, H, h = draw_size(generator, 3, 6), draw_size(generator, 2, 4), draw_size(generator, 2, 3)
    D = H * h + 1
    return {"x": 0.7 * draw_normal(generator, T, D)} | {
        name: 0.5 * draw_normal(generator, H, h, D) for name in ("WQ", "WK", "WV", "WO")
    }


@exercise(draw=_draw_heads, now="this layer is all that the model of section 6 is made of")
def multi_head(x: Tensor, WQ: Tensor, WK: Tensor, WV: Tensor, WO: Tensor) -> Tensor:
    out = x
    for h in range(len(WQ)):
        scores = (x @ WQ[h].mT) @ (x @ WK[h].mT).mT
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        out = out + weights @ (x @ WV[h].mT) @ WO[h]
    return out


def _draw_positions(generator: Generator) -> dict:
    T = draw_size(generator, 4, 7)
    basis, _ = torch.linalg.qr(draw_normal(generator, T + draw_size(generator, 1, 3), T))  # T orthonormal columns
    return {"P": basis.mT.contiguous(), "beta": float(2 + 3 * torch.rand((), generator=generator))}


@exercise(draw=_draw_positions, now="its powers look two, three and four words back")
def shift_scores(P: Tensor, beta: float) -> Tensor:
    return beta * P[1:].mT @ P[:-1]


def _draw_suspects(generator: Generator) -> dict:
    return suspects(24, generator)


def _are_accuracies(_: dict, table: Tensor) -> str | None:
    if table.min() < 0 or table.max() > 1:
        return f"an accuracy lies between 0 and 1; yours go from {table.min():.2g} to {table.max():.2g}"
    return None


def _misjudged(table: Tensor) -> str | None:
    """The first wire of which a table of the suspects says what is not so."""
    alone = CARRIES & (CARRIES.sum(1) == 1)[:, None]
    for m, wire in CARRIES.nonzero().tolist() + (~CARRIES).nonzero().tolist():
        lacks, has = table[m, wire].tolist()
        suspect, name = f"suspect {m + 1}", WIRES[wire]
        if CARRIES[m, wire] and lacks > 0.5:
            return f"{suspect} needs layer 1 in its {name}, and yet you find it {lacks:.0%} right when they lack it"
        if not CARRIES[m, wire] and lacks < 0.95:
            return (
                f"{suspect} does not use layer 1 in its {name}, and yet you find it only {lacks:.0%} right when "
                "they alone lack it"
            )
        if alone[m, wire] and has < 0.95:
            return (
                f"{suspect} needs layer 1 in its {name} alone, and yet you find it only {has:.0%} right when they "
                "alone have it"
            )
        if not alone[m, wire] and has > 0.5:
            return f"layer 1 in its {name} alone is not enough for {suspect}, and yet you find it {has:.0%} right"
    return None


def _columns_are_in_order(_: dict, table: Tensor) -> str | None:
    if _misjudged(table) and not _misjudged(table.flip(-1)):
        return "the two columns are exchanged: first the wire alone lacks layer 1, then it alone has it"
    return None


def _tells_the_suspects_apart(_: dict, table: Tensor) -> str | None:
    return _misjudged(table)


def _measures_exactly(inputs: dict, table: Tensor) -> str | None:
    """The stage at which near chance, too, the accuracies are those of the layer that is asked for."""
    due = which_wire.answer(**inputs)
    at = (table - due).abs().flatten().argmax()
    found, right = table.flatten()[at].item(), due.flatten()[at].item()
    if abs(found - right) < 0.05:
        return None
    m, wire, column = (int(i) for i in torch.unravel_index(at, due.shape))
    return (
        f"the suspects are told apart, but where suspect {m + 1}'s {WIRES[wire]} alone {('lack', 'have')[column]} "
        f"layer 1 you find {found:.0%} right, and {right:.0%} are"
    )


@summit(
    draw=_draw_suspects,
    shape=lambda inputs: (len(inputs["second"]), 3, 2),
    stages=(_are_accuracies, _columns_are_in_order, _tells_the_suspects_apart, _measures_exactly),
    seconds=2,
    now="you can tell in which wire a model carries what it has found, in any model",
)
def which_wire(
    before: Tensor, after: Tensor, second: Tensor, unembed: Tensor, targets: Tensor, settled: Tensor
) -> Tensor:
    table = torch.zeros(len(second), 3, 2)
    for m, (WQ, WK, WV, WO) in enumerate(second):
        for wire in range(3):
            for column, (one, others) in enumerate([(before[m], after[m]), (after[m], before[m])]):
                read = [others, others, others]
                read[wire] = one
                queries, keys, values = read
                out = others
                for h in range(len(WQ)):
                    scores = (queries @ WQ[h].mT) @ (keys @ WK[h].mT).mT
                    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
                    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
                    out = out + weights @ (values @ WV[h].mT) @ WO[h]
                right = (out @ unembed[m].mT).argmax(-1) == targets
                table[m, wire, column] = right[settled].double().mean()
    return table
