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


def masked(scores: Tensor, diagonal: int = 1, fill: float = -torch.inf) -> Tensor:
    """Scores with those of later keys (from ``diagonal`` on) replaced."""
    return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(diagonal), fill)


# -- attention


def _draw_qkv(generator: Generator) -> dict:
    T, d, m = draw_size(generator, 4, 7), draw_size(generator, 2, 6), draw_size(generator, 2, 3)
    return {"Q": draw_normal(generator, T, d), "K": draw_normal(generator, T, d), "V": draw_normal(generator, T, m)}


def _scores(Q: Tensor, K: Tensor, scale: float = 0.5) -> Tensor:
    return Q @ K.mT / Q.shape[-1] ** scale


def _attention(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
    return weights @ V


attention = Exercise(
    name="attention",
    answer=_attention,
    draw=_draw_qkv,
    mistakes={
        "scores are divided by d; divide by its square root": lambda Q, K, V: (
            masked(_scores(Q, K, 1.0)).softmax(-1) @ V
        ),
        "scores are not divided by sqrt(d)": lambda Q, K, V: masked(_scores(Q, K, 0.0)).softmax(-1) @ V,
        "scores are multiplied by sqrt(d); divide": lambda Q, K, V: masked(_scores(Q, K, -0.5)).softmax(-1) @ V,
        "no mask: a position sees those after it": lambda Q, K, V: _scores(Q, K).softmax(-1) @ V,
        "the softmax runs over the queries; weights must sum to 1 over the keys, dim=-1": (
            lambda Q, K, V: masked(_scores(Q, K)).softmax(-2) @ V
        ),
        "the mask lets each position see one too many, the next: triu(1), not triu(2)": (
            lambda Q, K, V: masked(_scores(Q, K), 2).softmax(-1) @ V
        ),
        "masked scores are 0, which the softmax turns into e^0, not into nothing: use -inf": (
            lambda Q, K, V: masked(_scores(Q, K), fill=0.0).softmax(-1) @ V
        ),
        "the mask comes after the softmax, so that weights no longer sum to 1: mask the scores": (
            lambda Q, K, V: masked(_scores(Q, K).softmax(-1), fill=0.0) @ V
        ),
        "the mask is upside down: each position sees itself and what comes after": (
            lambda Q, K, V: masked(_scores(Q, K).mT).mT.softmax(-1) @ V
        ),
        "there is no softmax: scores are not yet weights": lambda Q, K, V: masked(_scores(Q, K), fill=0.0) @ V,
    },
)


# -- multi_head


def _draw_heads(generator: Generator) -> dict:
    T, H, h = draw_size(generator, 3, 6), draw_size(generator, 2, 4), draw_size(generator, 2, 3)
    D = H * h + 1
    return {"x": 0.7 * draw_normal(generator, T, D)} | {
        name: 0.5 * draw_normal(generator, H, h, D) for name in ("WQ", "WK", "WV", "WO")
    }


def _head_sum(x, WQ, WK, WV, WO, *, weights=lambda scores: masked(scores).softmax(-1), exchange=False, scale=1.0):
    """What all heads add: (T, D)."""
    q, k, v = (torch.einsum("hcd,td->htc", W, x) for W in (WQ, WK, WV))
    scores = torch.einsum("htc,hsc->hts", k, q) if exchange else torch.einsum("htc,hsc->hts", q, k)
    return torch.einsum("hts,hsc,hcd->htd", weights(scores / scale), v, WO)


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
    mistakes={
        "the residual is missing: heads add to the stream, x + ...": lambda x, WQ, WK, WV, WO: _head_sum(
            x, WQ, WK, WV, WO
        ).sum(0),
        "no mask: a position sees those after it": (
            lambda x, WQ, WK, WV, WO: x + _head_sum(x, WQ, WK, WV, WO, weights=lambda scores: scores.softmax(-1)).sum(0)
        ),
        "scores are divided by sqrt(d_h); in this notation the scale is part of W_Q": (
            lambda x, WQ, WK, WV, WO: x + _head_sum(x, WQ, WK, WV, WO, scale=WQ.shape[1] ** 0.5).sum(0)
        ),
        "heads are averaged; they are summed": lambda x, WQ, WK, WV, WO: x + _head_sum(x, WQ, WK, WV, WO).mean(0),
        "keys and queries are exchanged: x_t asks with W_Q, x_s answers with W_K": (
            lambda x, WQ, WK, WV, WO: x + _head_sum(x, WQ, WK, WV, WO, exchange=True).sum(0)
        ),
        "W_V and W_O are exchanged: W_V reads x_s, the transpose of W_O writes": (
            lambda x, WQ, WK, WV, WO: x + _head_sum(x, WQ, WK, WO, WV).sum(0)
        ),
        "the softmax runs over the queries; weights must sum to 1 over the keys": (
            lambda x, WQ, WK, WV, WO: (
                x + _head_sum(x, WQ, WK, WV, WO, weights=lambda scores: masked(scores).softmax(-2)).sum(0)
            )
        ),
        "the residual is added once for each head": lambda x, WQ, WK, WV, WO: (x + _head_sum(x, WQ, WK, WV, WO)).sum(0),
    },
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
    mistakes={
        "looks at the next token: the key is p_{t-1} (left factor), the query p_t (right factor)": lambda P, beta: (
            beta * P[1:].mT @ P[:-1]
        ),
        "looks at the token itself: pair p_t with p_{t-1}, not with p_t": lambda P, beta: beta * P.mT @ P,
        "wraps around: the first position has no previous one, so leave the pair (last, first) out": (
            lambda P, beta: beta * P.roll(1, dims=0).mT @ P
        ),
        "looks two places back": lambda P, beta: beta * P[:-2].mT @ P[2:],
        "beta is squared": lambda P, beta: beta**2 * P[:-1].mT @ P[1:],
        "divides by beta; it multiplies, so that a larger one is sharper": lambda P, beta: P[:-1].mT @ P[1:] / beta,
        "the last pair is missing: there are T - 1 of them": lambda P, beta: beta * P[:-2].mT @ P[1:-1],
    },
)
