"""Exercises of lesson 06 on what training makes: `recalled`, `adam_step`, `low_rank`."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- recalled


def _draw_memory(generator: Generator) -> dict:
    d, M = draw_size(generator, 5, 7), draw_size(generator, 18, 24)
    u, v = 0.5 + draw_normal(generator, M, d), draw_normal(generator, M, d)
    W = 0.03 * (v.mT @ u + 3 * draw_normal(generator, d, d))  # scores so small that no softmax of them is near 1
    return {"W": W, "u": u, "v": v}


def _hits(scores: Tensor, dim: int = 1) -> Tensor:
    return scores.argmax(dim) == torch.arange(len(scores), device=scores.device)


def _recalled(W: Tensor, u: Tensor, v: Tensor) -> Tensor:
    scores = u @ W.mT @ v.mT
    best = scores.argmax(dim=1)
    return best == torch.arange(len(u), device=u.device)


recalled = Exercise(
    name="recalled",
    answer=_recalled,
    draw=_draw_memory,
    mistakes={
        "the argmax runs over the inputs i; for each input, it must run over the candidates j": (
            lambda W, u, v: _hits(u @ W.mT @ v.mT, 0)
        ),
        "W is applied the wrong way round: v_j^T W u_i, so the rows of u are multiplied by W^T": lambda W, u, v: _hits(
            u @ W @ v.mT
        ),
        "u and v are exchanged: W maps u to v": lambda W, u, v: _hits(v @ W.mT @ u.mT),
        "W is not used": lambda W, u, v: _hits(u @ v.mT),
        "W u_i is compared with u; the candidates are the v_j": lambda W, u, v: _hits(u @ W.mT @ u.mT),
        "a large score is not yet the largest: compare the argmax with i": lambda W, u, v: (
            (u @ W.mT @ v.mT).diagonal() > 0
        ),
        "a probability above one half is asked for; the largest score is enough": lambda W, u, v: (
            (u @ W.mT @ v.mT).softmax(1).diagonal() > 0.5
        ),
        "the smallest score is taken": lambda W, u, v: _hits(-(u @ W.mT @ v.mT)),
        "True and False are exchanged: recalled means that the argmax is i": lambda W, u, v: ~_hits(u @ W.mT @ v.mT),
    },
)


# -- adam_step


def _draw_adam(generator: Generator) -> dict:
    shape = draw_size(generator, 3, 4), draw_size(generator, 5, 6)
    gradient = draw_normal(generator, *shape)
    past = draw_normal(generator, *shape)
    step = draw_size(generator, 2, 6)
    return {
        "gradient": gradient,
        "m": 0.4 * past,
        "v": 0.05 * past.square() + 0.02,
        "step": step,
        "lr": 0.5 + 0.1 * draw_size(generator, 1, 4),
    }


def _adam(gradient, m, v, step, lr, *, beta1=0.9, beta2=0.99, root=0.5, power=2, first=True, second=True, kept=False):
    """Adam, and what people write for it."""
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**power
    m_hat = m / (1 - beta1**step) if first else m
    v_hat = v / (1 - beta2**step) if second else v
    change = -lr * m_hat / (v_hat.abs() ** root + 1e-8)
    return torch.stack([change, m_hat, v_hat] if kept else [change, m, v])


def _adam_step(gradient: Tensor, m: Tensor, v: Tensor, step: int, lr: float) -> Tensor:
    m = 0.9 * m + (1 - 0.9) * gradient
    v = 0.99 * v + (1 - 0.99) * gradient**2
    m_hat = m / (1 - 0.9**step)
    v_hat = v / (1 - 0.99**step)
    change = -lr * m_hat / (v_hat.sqrt() + 1e-8)
    return torch.stack([change, m, v])


adam_step = Exercise(
    name="adam_step",
    answer=_adam_step,
    draw=_draw_adam,
    mistakes={
        "this goes up the gradient; the change has a minus": lambda gradient, m, v, step, lr: torch.cat(
            [-_adam(gradient, m, v, step, lr)[:1], _adam(gradient, m, v, step, lr)[1:]]
        ),
        "neither mean is corrected: divide m by 1 - 0.9^step and v by 1 - 0.99^step": lambda gradient, m, v, step, lr: (
            _adam(gradient, m, v, step, lr, first=False, second=False)
        ),
        "v is not corrected for having begun at 0": lambda gradient, m, v, step, lr: _adam(
            gradient, m, v, step, lr, second=False
        ),
        "m is not corrected for having begun at 0": lambda gradient, m, v, step, lr: _adam(
            gradient, m, v, step, lr, first=False
        ),
        "the root is missing: divide by the root of v, so that the size of the gradient cancels": (
            lambda gradient, m, v, step, lr: _adam(gradient, m, v, step, lr, root=1)
        ),
        "the change is not divided at all: this is momentum": lambda gradient, m, v, step, lr: _adam(
            gradient, m, v, step, lr, root=0
        ),
        "v averages the gradient; it must average its square": lambda gradient, m, v, step, lr: _adam(
            gradient, m, v, step, lr, power=1
        ),
        "0.9 and 0.99 are exchanged: m forgets faster": lambda gradient, m, v, step, lr: _adam(
            gradient, m, v, step, lr, beta1=0.99, beta2=0.9
        ),
        "the weights of old and new are exchanged: m keeps 0.9 of itself": lambda gradient, m, v, step, lr: _adam(
            gradient, m, v, step, lr, beta1=0.1, beta2=0.01
        ),
        "the corrected means are returned; keep m and v as they are, the correction is for this step alone": (
            lambda gradient, m, v, step, lr: _adam(gradient, m, v, step, lr, kept=True)
        ),
        "the step does not use lr": lambda gradient, m, v, step, lr: _adam(gradient, m, v, step, 1.0),
        "the old m is used; average the new gradient in first": lambda gradient, m, v, step, lr: torch.cat(
            [
                -lr * m[None] / (1 - 0.9**step) / ((_adam(gradient, m, v, step, lr)[2:] / (1 - 0.99**step)).sqrt()),
                _adam(gradient, m, v, step, lr)[1:],
            ]
        ),
    },
)


# -- low_rank


def _draw_matrix(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 9), draw_size(generator, 10, 12)
    shape = (m, d) if torch.rand((), generator=generator) < 0.5 else (d, m)
    keep = draw_size(generator, 2, m - 3)
    falling = 0.7 ** torch.arange(shape[1], dtype=torch.float64)  # a share of the values' sum is none of their number
    return {"W": draw_normal(generator, *shape) * falling, "share": (keep + 0.6) / m}


def _cut(W: Tensor, change) -> Tensor:
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    return U * change(S) @ V


def _kept(S: Tensor, keep: int) -> Tensor:
    return torch.where(torch.arange(len(S), device=S.device) < keep, S, 0)


def _low_rank(W: Tensor, share: float) -> Tensor:
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    k = int(share * len(S))
    kept = U[:, :k] * S[:k]
    return kept @ V[:k]


low_rank = Exercise(
    name="low_rank",
    answer=_low_rank,
    draw=_draw_matrix,
    mistakes={
        "the smallest singular values are kept; keep the largest, which svd gives first": lambda W, share: _cut(
            W, lambda S: _kept(S.flip(0), int(share * len(S))).flip(0)
        ),
        "the largest singular values are removed and the rest kept; it is the other way round": lambda W, share: _cut(
            W, lambda S: S - _kept(S, int(share * len(S)))
        ),
        "the number kept is rounded; int() cuts, as S[int(share * len(S)):] = 0 does": lambda W, share: _cut(
            W, lambda S: _kept(S, round(share * len(S)))
        ),
        "one too few are kept: S[k:] = 0 keeps k of them": lambda W, share: _cut(
            W, lambda S: _kept(S, int(share * len(S)) - 1)
        ),
        "the kept singular values are not multiplied in: U S V, not U V": lambda W, share: _cut(
            W, lambda S: (_kept(S, int(share * len(S))) > 0).to(S)
        ),
        "the singular values are squared": lambda W, share: _cut(W, lambda S: _kept(S, int(share * len(S))).square()),
        "nothing is removed: this is W again": lambda W, share: W.clone(),
        "the share is taken of the larger side; there are only min(m, d) singular values": lambda W, share: _cut(
            W, lambda S: _kept(S, int(share * max(W.shape)))
        ),
        "values below the share of the largest are removed; it is a share of their number": lambda W, share: _cut(
            W, lambda S: S * (S / S[0] >= share)
        ),
    },
    tolerance=1e-8,
)
