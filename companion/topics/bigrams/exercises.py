"""The exercises of lesson 06, induction heads: what the lesson imports as ``exercises``."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- induction_score


def _draw_patterns(generator: Generator) -> dict:
    batch, heads, T = draw_size(generator, 3, 4), 2, draw_size(generator, 9, 12)
    scores = 2 * draw_normal(generator, batch, heads, T, T)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    tokens = torch.randint(3, (batch, T), generator=generator)
    where = torch.rand(batch, T, generator=generator) < 0.5
    where[:, 3] = True
    return {"pattern": scores.masked_fill(future, -torch.inf).softmax(-1), "tokens": tokens, "where": where}


def _induction_score(pattern: Tensor, tokens: Tensor, where: Tensor) -> Tensor:
    same = tokens[:, :, None] == tokens[:, None, :]
    after_same = torch.zeros_like(same)
    after_same[:, :, 1:] = same[:, :, :-1]
    share = (pattern * after_same[:, None]).sum(-1)
    return share.transpose(0, 1)[:, where].mean(-1)


induction_score = Exercise(
    name="induction_score",
    answer=_induction_score,
    draw=_draw_patterns,
)


# -- position_memory


def _draw_positions(generator: Generator) -> dict:
    P = 0.3 + draw_normal(generator, draw_size(generator, 6, 9), draw_size(generator, 3, 5))
    return {"P": P, "beta": 0.5 + draw_size(generator, 1, 4)}


def _position_memory(P: Tensor, beta: float) -> Tensor:
    lengths = P.square().sum(1, keepdim=True)
    units = P / lengths
    queries, keys = units[1:], units[:-1]
    return beta * P.shape[1] ** 0.5 * queries.mT @ keys


position_memory = Exercise(
    name="position_memory",
    answer=_position_memory,
    draw=_draw_positions,
)


# -- output_memory


def _draw_outputs(generator: Generator) -> dict:
    N, d = draw_size(generator, 5, 8), draw_size(generator, 3, 4)
    E, U = 0.3 + draw_normal(generator, N, d), 0.3 + draw_normal(generator, N, d)
    return {"E": E, "U": U, "S": draw_normal(generator, d, d)}


def _output_memory(E: Tensor, U: Tensor, S: Tensor) -> Tensor:
    values = E @ S.mT
    return U.mT @ values


output_memory = Exercise(
    name="output_memory",
    answer=_output_memory,
    draw=_draw_outputs,
)


# -- key_memory


def _draw_keys(generator: Generator) -> dict:
    N, d = draw_size(generator, 5, 8), draw_size(generator, 3, 4)
    triggers = torch.randperm(N, generator=generator)[: draw_size(generator, 2, 3)]
    return {"E": draw_normal(generator, N, d), "R": draw_normal(generator, d, d), "triggers": triggers}


def _key_memory(E: Tensor, R: Tensor, triggers: Tensor) -> Tensor:
    queries = E[triggers]
    keys = queries @ R.mT
    return queries.mT @ keys


key_memory = Exercise(
    name="key_memory",
    answer=_key_memory,
    draw=_draw_keys,
)


# -- recalled


def _draw_memory(generator: Generator) -> dict:
    d, M = draw_size(generator, 5, 7), draw_size(generator, 18, 24)
    u, v = 0.5 + draw_normal(generator, M, d), draw_normal(generator, M, d)
    W = 0.03 * (v.mT @ u + 3 * draw_normal(generator, d, d))  # scores so small that no softmax of them is near 1
    return {"W": W, "u": u, "v": v}


def _recalled(W: Tensor, u: Tensor, v: Tensor) -> Tensor:
    scores = u @ W.mT @ v.mT
    best = scores.argmax(dim=1)
    return best == torch.arange(len(u), device=u.device)


recalled = Exercise(
    name="recalled",
    answer=_recalled,
    draw=_draw_memory,
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
)


# -- low_rank


def _draw_matrix(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 9), draw_size(generator, 10, 12)
    shape = (m, d) if torch.rand((), generator=generator) < 0.5 else (d, m)
    keep = draw_size(generator, 2, m - 3)
    falling = 0.7 ** torch.arange(shape[1], dtype=torch.float64)  # a share of the values' sum is none of their number
    return {"W": draw_normal(generator, *shape) * falling, "share": (keep + 0.6) / m}


def _low_rank(W: Tensor, share: float) -> Tensor:
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    k = int(share * len(S))
    kept = U[:, :k] * S[:k]
    return kept @ V[:k]


low_rank = Exercise(
    name="low_rank",
    answer=_low_rank,
    draw=_draw_matrix,
    tolerance=1e-8,
)
