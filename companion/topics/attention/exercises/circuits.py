"""Exercises of lesson 01 on circuits of several layers: an induction head, a look-up by role, hops that double.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size
from companion.topics.attention.exercises.weighing import masked

__all__ = ["chain", "double", "induction_layers", "lookup"]


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


def _layers(position, token, previous, out, beta, **changed: Tensor) -> Tensor:
    """The four right matrices, but for those that are ``changed``."""
    kq1, ov1, kq2, ov2 = _induction_layers(position, token, previous, out, beta).flatten(0, 1)
    right = {"kq1": kq1, "ov1": ov1, "kq2": kq2, "ov2": ov2} | changed
    return torch.stack(list(right.values())).view(2, 2, *kq1.shape)


induction_layers = Exercise(
    name="induction_layers",
    answer=_induction_layers,
    draw=_draw_stream,
    mistakes={
        "layer 1 looks at the next position: the key (left factor) is p_{t-1}, the query (right factor) p_t": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, kq1=beta * position[1:].mT @ position[:-1]
            )
        ),
        "layer 2's key and query are exchanged: the key (left) is the token before, the query (right) the token now": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, kq2=beta * token.mT @ previous
            )
        ),
        "layer 2 looks for the same token again; its successor stands where the token *before* matches": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, kq2=beta * token.mT @ token
            )
        ),
        "layer 2 copies the token before the match, which is the one already known: copy the token itself": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, ov2=out.mT @ previous
            )
        ),
        "layer 1 writes into out; layer 2 looks for its keys in previous": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, ov1=out.mT @ token
            )
        ),
        "W_OV is transposed in both layers: what is written stands on the left, what is read on the right": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, ov1=token.mT @ previous, ov2=token.mT @ out
            )
        ),
        "layer 2 is not sharp: its scores are 1 where they should be beta": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, kq2=previous.mT @ token
            )
        ),
        "what is moved is multiplied by beta; beta belongs to the scores alone": (
            lambda position, token, previous, out, beta: _layers(
                position, token, previous, out, beta, ov1=beta * previous.mT @ token, ov2=beta * out.mT @ token
            )
        ),
        "KQ and OV are exchanged: in each layer KQ comes first": (
            lambda position, token, previous, out, beta: _induction_layers(position, token, previous, out, beta).flip(1)
        ),
    },
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


def _added(x: Tensor, kq: Tensor, ov: Tensor, weights=lambda scores: masked(scores).softmax(-1)) -> Tensor:
    return weights(x @ kq.mT @ x.mT) @ x @ ov.mT


def _chained(x: Tensor, KQ: Tensor, OV: Tensor, add=_added) -> Tensor:
    for kq, ov in zip(KQ, OV, strict=True):
        x = x + add(x, kq, ov)
    return x


def _without_residual(x: Tensor, KQ: Tensor, OV: Tensor) -> Tensor:
    for kq, ov in zip(KQ, OV, strict=True):
        x = _added(x, kq, ov)
    return x


chain = Exercise(
    name="chain",
    answer=_chain,
    draw=_draw_chain,
    mistakes={
        "all layers read the first stream; each must read what the one before it has left": lambda x, KQ, OV: (
            x + sum(_added(x, kq, ov) for kq, ov in zip(KQ, OV, strict=True))
        ),
        "the residual is missing: each layer adds to the stream": _without_residual,
        "only the last layer is applied": lambda x, KQ, OV: x + _added(x, KQ[-1], OV[-1]),
        "key and query are exchanged: the score of key s for query t is x_s^T W_KQ x_t": lambda x, KQ, OV: _chained(
            x, KQ.mT, OV
        ),
        "W_OV is applied transposed: streams hold rows, matrices act on columns": lambda x, KQ, OV: _chained(
            x, KQ, OV.mT
        ),
        "no mask: a position sees those after it": lambda x, KQ, OV: _chained(
            x, KQ, OV, lambda x, kq, ov: _added(x, kq, ov, lambda scores: scores.softmax(-1))
        ),
        "the softmax runs over the queries; weights must sum to 1 over the keys": lambda x, KQ, OV: _chained(
            x, KQ, OV, lambda x, kq, ov: _added(x, kq, ov, lambda scores: masked(scores).softmax(-2))
        ),
        "scores are divided by sqrt(D); here the scale is part of W_KQ": lambda x, KQ, OV: _chained(
            x, KQ / x.shape[1] ** 0.5, OV
        ),
    },
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


def _looked_up(names: Tensor, roles: Tensor, ov: Tensor, beta: float) -> Tensor:
    return torch.stack([beta * (names + roles), ov])


lookup = Exercise(
    name="lookup",
    answer=_lookup,
    draw=_draw_lookup,
    mistakes={
        "the role does not count: the name is found wherever it stands": (
            lambda asked, subject, role, one, token, answer, beta: _looked_up(
                subject.mT @ asked, 0 * torch.outer(role, one), answer.mT @ token, beta
            )
        ),
        "the name does not count: every fact answers alike": (
            lambda asked, subject, role, one, token, answer, beta: _looked_up(
                0 * subject.mT @ asked, torch.outer(role, one), answer.mT @ token, beta
            )
        ),
        "role and one are exchanged: the key (left) has the role, every query (right) the constant": (
            lambda asked, subject, role, one, token, answer, beta: _looked_up(
                subject.mT @ asked, torch.outer(one, role), answer.mT @ token, beta
            )
        ),
        "subject and asked are exchanged: the key (left) is the subject, the query (right) the name that is asked": (
            lambda asked, subject, role, one, token, answer, beta: _looked_up(
                asked.mT @ subject, torch.outer(role, one), answer.mT @ token, beta
            )
        ),
        "beta multiplies the name's score alone, and the role hardly counts": (
            lambda asked, subject, role, one, token, answer, beta: torch.stack(
                [beta * subject.mT @ asked + torch.outer(role, one), answer.mT @ token]
            )
        ),
        "copies the subject, which is known already: copy the token that stands there": (
            lambda asked, subject, role, one, token, answer, beta: _looked_up(
                subject.mT @ asked, torch.outer(role, one), answer.mT @ subject, beta
            )
        ),
        "W_OV is transposed: what is written stands on the left, what is read on the right": (
            lambda asked, subject, role, one, token, answer, beta: _looked_up(
                subject.mT @ asked, torch.outer(role, one), token.mT @ answer, beta
            )
        ),
    },
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
    mistakes={
        "key and query are exchanged: the key (left) is the position, the query (right) says which one": (
            lambda position, jump, further, word, said, beta: torch.stack(
                [beta * jump.mT @ position, further.mT @ jump + said.mT @ word]
            )
        ),
        "copies the position found, which is the same jump again: copy the jump that stands there": (
            lambda position, jump, further, word, said, beta: torch.stack(
                [beta * position.mT @ jump, further.mT @ position + said.mT @ word]
            )
        ),
        "the word is not copied": lambda position, jump, further, word, said, beta: torch.stack(
            [beta * position.mT @ jump, further.mT @ jump]
        ),
        "the jump is not copied: the next layer has nothing to go on from": (
            lambda position, jump, further, word, said, beta: torch.stack([beta * position.mT @ jump, said.mT @ word])
        ),
        "adds to the jump that it reads, and spoils it: write into the block further": (
            lambda position, jump, further, word, said, beta: torch.stack(
                [beta * position.mT @ jump, jump.mT @ jump + said.mT @ word]
            )
        ),
        "W_OV is transposed: what is written stands on the left, what is read on the right": (
            lambda position, jump, further, word, said, beta: torch.stack(
                [beta * position.mT @ jump, jump.mT @ further + word.mT @ said]
            )
        ),
        "compares jumps with jumps: the key is where a position *is*, not where it points": (
            lambda position, jump, further, word, said, beta: torch.stack(
                [beta * jump.mT @ jump, further.mT @ jump + said.mT @ word]
            )
        ),
    },
)
