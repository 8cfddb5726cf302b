"""Exercises of lesson 01 on single layers: attention, many heads, a head that looks back.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["attention", "masked", "multi_head", "shift_scores"]


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
