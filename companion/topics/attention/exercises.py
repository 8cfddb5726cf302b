"""The exercises of lesson 01, attention basics: what the lesson imports as ``exercises``."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- induction_layers


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


def _induction_layers(position: Tensor, token: Tensor, previous: Tensor, out: Tensor, beta: float) -> Tensor:
    kq1 = beta * position[:-1].mT @ position[1:]
    ov1 = previous.mT @ token
    kq2 = beta * previous.mT @ token
    ov2 = out.mT @ token
    return torch.stack([torch.stack([kq1, ov1]), torch.stack([kq2, ov2])])


induction_layers = Exercise(
    name="induction_layers",
    answer=_induction_layers,
    draw=_draw_stream,
)


# -- chain


def _draw_chain(generator: Generator) -> dict:
    T, D, layers = draw_size(generator, 4, 6), draw_size(generator, 3, 5), draw_size(generator, 2, 3)
    matrices = {name: 0.6 * draw_normal(generator, layers, D, D) for name in ("KQ", "OV")}
    return {"x": draw_normal(generator, T, D)} | matrices


def _chain(x: Tensor, KQ: Tensor, OV: Tensor) -> Tensor:
    for kq, ov in zip(KQ, OV, strict=True):
        scores = x @ kq.mT @ x.mT
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        x = x + weights @ x @ ov.mT
    return x


chain = Exercise(
    name="chain",
    answer=_chain,
    draw=_draw_chain,
)


# -- lookup


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


def _lookup(
    asked: Tensor, subject: Tensor, role: Tensor, one: Tensor, token: Tensor, answer: Tensor, beta: float
) -> Tensor:
    kq = beta * (subject.mT @ asked + torch.outer(role, one))
    ov = answer.mT @ token
    return torch.stack([kq, ov])


lookup = Exercise(
    name="lookup",
    answer=_lookup,
    draw=_draw_lookup,
)


# -- double


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


def _double(position: Tensor, jump: Tensor, further: Tensor, word: Tensor, said: Tensor, beta: float) -> Tensor:
    kq = beta * position.mT @ jump
    ov = further.mT @ jump + said.mT @ word
    return torch.stack([kq, ov])


double = Exercise(
    name="double",
    answer=_double,
    draw=_draw_jumps,
)


# -- attention


def _draw_qkv(generator: Generator) -> dict:
    T, d, m = draw_size(generator, 4, 7), draw_size(generator, 2, 6), draw_size(generator, 2, 3)
    return {"Q": draw_normal(generator, T, d), "K": draw_normal(generator, T, d), "V": draw_normal(generator, T, m)}


def _attention(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
    return weights @ V


attention = Exercise(
    name="attention",
    answer=_attention,
    draw=_draw_qkv,
)


# -- multi_head


def _draw_heads(generator: Generator) -> dict:
    T, H, h = draw_size(generator, 3, 6), draw_size(generator, 2, 4), draw_size(generator, 2, 3)
    D = H * h + 1
    return {"x": 0.7 * draw_normal(generator, T, D)} | {
        name: 0.5 * draw_normal(generator, H, h, D) for name in ("WQ", "WK", "WV", "WO")
    }


def _multi_head(x: Tensor, WQ: Tensor, WK: Tensor, WV: Tensor, WO: Tensor) -> Tensor:
    out = x
    for h in range(len(WQ)):
        scores = (x @ WQ[h].mT) @ (x @ WK[h].mT).mT
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        out = out + weights @ (x @ WV[h].mT) @ WO[h]
    return out


multi_head = Exercise(
    name="multi_head",
    answer=_multi_head,
    draw=_draw_heads,
)


# -- shift_scores


def _draw_positions(generator: Generator) -> dict:
    T = draw_size(generator, 4, 7)
    basis, _ = torch.linalg.qr(draw_normal(generator, T + draw_size(generator, 1, 3), T))  # T orthonormal columns
    return {"P": basis.mT.contiguous(), "beta": float(2 + 3 * torch.rand((), generator=generator))}


def _shift_scores(P: Tensor, beta: float) -> Tensor:
    return beta * P[:-1].mT @ P[1:]


shift_scores = Exercise(
    name="shift_scores",
    answer=_shift_scores,
    draw=_draw_positions,
)
