"""The exercises of lesson 01, attention basics.

Each wrong function under ``mistakes`` is something that people really write; `companion.checks.exercise` uses it to name the mistake.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.checks.exercise import Exercise, draw_normal, draw_size
from companion.models.constructions.attention import flow

__all__ = ["attention", "flow_step", "hopfield_update", "induction", "multi_head", "shift_scores"]


def _masked(scores: Tensor, diagonal: int = 1, fill: float = -torch.inf) -> Tensor:
    """Scores with those of later keys (from ``diagonal`` on) replaced."""
    return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(diagonal), fill)


# -- attention


def _draw_qkv(generator: Generator) -> dict:
    T, d, m = draw_size(generator, 4, 7), draw_size(generator, 2, 6), draw_size(generator, 2, 3)
    return {"Q": draw_normal(generator, T, d), "K": draw_normal(generator, T, d), "V": draw_normal(generator, T, m)}


def _scores(Q: Tensor, K: Tensor, scale: float = 0.5) -> Tensor:
    return Q @ K.mT / Q.shape[-1] ** scale


attention = Exercise(
    name="attention",
    answer=lambda Q, K, V: _masked(_scores(Q, K)).softmax(-1) @ V,
    draw=_draw_qkv,
    mistakes={
        "scores are divided by d; divide by its square root": lambda Q, K, V: _masked(_scores(Q, K, 1.0)).softmax(-1) @ V,
        "scores are not divided by sqrt(d)": lambda Q, K, V: _masked(_scores(Q, K, 0.0)).softmax(-1) @ V,
        "scores are multiplied by sqrt(d); divide": lambda Q, K, V: _masked(_scores(Q, K, -0.5)).softmax(-1) @ V,
        "no mask: a position sees those after it": lambda Q, K, V: _scores(Q, K).softmax(-1) @ V,
        "the softmax runs over the queries; weights must sum to 1 over the keys, dim=-1": (
            lambda Q, K, V: _masked(_scores(Q, K)).softmax(-2) @ V
        ),
        "the mask lets each position see one too many, the next: triu(1), not triu(2)": (
            lambda Q, K, V: _masked(_scores(Q, K), 2).softmax(-1) @ V
        ),
        "masked scores are 0, which the softmax turns into e^0, not into nothing: use -inf": (
            lambda Q, K, V: _masked(_scores(Q, K), fill=0.0).softmax(-1) @ V
        ),
        "the mask comes after the softmax, so that weights no longer sum to 1: mask the scores": (
            lambda Q, K, V: _masked(_scores(Q, K).softmax(-1), fill=0.0) @ V
        ),
        "the mask is upside down: each position sees itself and what comes after": (
            lambda Q, K, V: _masked(_scores(Q, K).mT).mT.softmax(-1) @ V
        ),
        "there is no softmax: scores are not yet weights": lambda Q, K, V: _masked(_scores(Q, K), fill=0.0) @ V,
    },
)


# -- multi_head


def _draw_heads(generator: Generator) -> dict:
    T, H, h = draw_size(generator, 3, 6), draw_size(generator, 2, 4), draw_size(generator, 2, 3)
    D = H * h + 1
    return {"x": 0.7 * draw_normal(generator, T, D)} | {name: 0.5 * draw_normal(generator, H, h, D) for name in ("WQ", "WK", "WV", "WO")}


def _head_sum(x, WQ, WK, WV, WO, *, weights=lambda scores: _masked(scores).softmax(-1), exchange=False, scale=1.0):
    """What all heads add: (T, D)."""
    q, k, v = (torch.einsum("hcd,td->htc", W, x) for W in (WQ, WK, WV))
    scores = torch.einsum("htc,hsc->hts", k, q) if exchange else torch.einsum("htc,hsc->hts", q, k)
    return torch.einsum("hts,hsc,hcd->htd", weights(scores / scale), v, WO)


multi_head = Exercise(
    name="multi_head",
    answer=lambda x, WQ, WK, WV, WO: x + _head_sum(x, WQ, WK, WV, WO).sum(0),
    draw=_draw_heads,
    mistakes={
        "the residual is missing: heads add to the stream, x + ...": lambda x, WQ, WK, WV, WO: _head_sum(x, WQ, WK, WV, WO).sum(0),
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
            lambda x, WQ, WK, WV, WO: x + _head_sum(x, WQ, WK, WV, WO, weights=lambda scores: _masked(scores).softmax(-2)).sum(0)
        ),
        "the residual is added once for each head": lambda x, WQ, WK, WV, WO: (x + _head_sum(x, WQ, WK, WV, WO)).sum(0),
    },
)


# -- shift_scores


def _draw_positions(generator: Generator) -> dict:
    T = draw_size(generator, 4, 7)
    basis, _ = torch.linalg.qr(draw_normal(generator, T + draw_size(generator, 1, 3), T))  # T orthonormal columns
    return {"P": basis.mT.contiguous(), "beta": float(2 + 3 * torch.rand((), generator=generator))}


shift_scores = Exercise(
    name="shift_scores",
    answer=lambda P, beta: beta * P[:-1].mT @ P[1:],
    draw=_draw_positions,
    mistakes={
        "looks at the next token: the key is p_{t-1} (left factor), the query p_t (right factor)": lambda P, beta: beta * P[1:].mT @ P[:-1],
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


# -- induction


def _draw_blocks(generator: Generator) -> dict:
    T, V = draw_size(generator, 6, 9), draw_size(generator, 3, 4)
    token = F.one_hot(torch.randint(V, (T,), generator=generator), V).double()
    previous = torch.cat([torch.zeros(1, V, dtype=torch.float64), token[:-1]])
    return {"token": token, "previous": previous, "beta": float(1 + 2 * torch.rand((), generator=generator))}


def _attend(query: Tensor, key: Tensor, value: Tensor, beta: float) -> Tensor:
    return _masked(beta * query @ key.mT).softmax(-1) @ value


induction = Exercise(
    name="induction",
    answer=lambda token, previous, beta: _attend(token, previous, token, beta),
    draw=_draw_blocks,
    mistakes={
        "queries and keys are exchanged: the token now is the query, the token before is the key": (
            lambda token, previous, beta: _attend(previous, token, token, beta)
        ),
        "looks for the same token again; its successor stands where the token *before* matches": (
            lambda token, previous, beta: _attend(token, token, token, beta)
        ),
        "copies the token before the match, which is the one already known: copy the token itself": (
            lambda token, previous, beta: _attend(token, previous, previous, beta)
        ),
        "compares what came before with what came before: that finds equal contexts, not a successor": (
            lambda token, previous, beta: _attend(previous, previous, token, beta)
        ),
        "no mask: a position sees those after it": lambda token, previous, beta: (beta * token @ previous.mT).softmax(-1) @ token,
        "the softmax runs over the queries; weights must sum to 1 over the keys": (
            lambda token, previous, beta: _masked(beta * token @ previous.mT).softmax(-2) @ token
        ),
        "scores are divided by sqrt(V); here beta is the whole scale": (
            lambda token, previous, beta: _attend(token, previous, token, beta / token.shape[1] ** 0.5)
        ),
        "position t does not see itself; it may (its key is the token before it)": (
            lambda token, previous, beta: _masked(beta * token @ previous.mT, 0).softmax(-1).nan_to_num() @ token
        ),
    },
)


# -- hopfield_update


def _draw_memories(generator: Generator) -> dict:
    n, d = draw_size(generator, 3, 6), draw_size(generator, 3, 6)
    return {"X": draw_normal(generator, n, d), "q": draw_normal(generator, d), "beta": float(0.5 + torch.rand((), generator=generator))}


hopfield_update = Exercise(
    name="hopfield_update",
    answer=lambda X, q, beta: X.mT @ (beta * X @ q).softmax(0),
    draw=_draw_memories,
    mistakes={
        "scores are divided by sqrt(d); here beta is the whole scale": lambda X, q, beta: X.mT @ (beta * X @ q / len(q) ** 0.5).softmax(0),
        "beta multiplies the weights; it belongs inside the softmax": lambda X, q, beta: X.mT @ (beta * (X @ q).softmax(0)),
        "there is no softmax: that is the linear memory of Hopfield (1982)": lambda X, q, beta: beta * X.mT @ (X @ q),
        "takes the sign, as Hopfield's network of 1982 does": lambda X, q, beta: (X.mT @ (beta * X @ q)).sign(),
        "adds q: the update replaces the state": lambda X, q, beta: q + X.mT @ (beta * X @ q).softmax(0),
        "returns the best pattern alone; the update is an average with softmax weights": lambda X, q, beta: X[(beta * X @ q).argmax()],
        "brings the answer to length 1; leave it as it is": lambda X, q, beta: F.normalize(X.mT @ (beta * X @ q).softmax(0), dim=0),
        "the sign of beta is flipped: the pattern least like q wins": lambda X, q, beta: X.mT @ (-beta * X @ q).softmax(0),
    },
)


# -- flow_step


def _draw_sphere(generator: Generator) -> dict:
    n, d = draw_size(generator, 3, 6), draw_size(generator, 2, 5)
    return {
        "x": F.normalize(draw_normal(generator, n, d), dim=1),
        "beta": float(1 + 2 * torch.rand((), generator=generator)),
        "dt": float(0.1 + 0.3 * torch.rand((), generator=generator)),
    }


def _moved(x: Tensor, pull: Tensor, dt: float) -> Tensor:
    """A step along the part of the pull that is tangent to the sphere, and back to it."""
    return F.normalize(x + dt * (pull - (pull * x).sum(1, keepdim=True) * x), dim=1)


flow_step = Exercise(
    name="flow_step",
    answer=lambda x, beta, dt: flow(x, beta=beta, time=dt, dt=dt)[-1],
    draw=_draw_sphere,
    mistakes={
        "the pull is not projected: take away its part along x_i before the step": (
            lambda x, beta, dt: F.normalize(x + dt * (beta * x @ x.mT).softmax(1) @ x, dim=1)
        ),
        "the tokens leave the sphere: divide each by its length after the step": (
            lambda x, beta, dt: x + dt * ((p := (beta * x @ x.mT).softmax(1) @ x) - (p * x).sum(1, keepdim=True) * x)
        ),
        "the step is not multiplied by dt": lambda x, beta, dt: _moved(x, (beta * x @ x.mT).softmax(1) @ x, 1.0),
        "tokens are pushed apart: the pull is added": lambda x, beta, dt: _moved(x, (beta * x @ x.mT).softmax(1) @ x, -dt),
        "beta is not used: it multiplies the scores": lambda x, beta, dt: _moved(x, (x @ x.mT).softmax(1) @ x, dt),
        "a token does not attend to itself here; it does": lambda x, beta, dt: _moved(
            x, (beta * x @ x.mT).masked_fill(torch.eye(len(x), dtype=torch.bool, device=x.device), -torch.inf).softmax(1) @ x, dt
        ),
        "there is no softmax: the pulls are weighted by e^score, and not divided by their sum": (
            lambda x, beta, dt: _moved(x, (beta * x @ x.mT).exp() @ x, dt)
        ),
    },
)
