"""The exercises of lesson 06, induction heads.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

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


def _same(tokens: Tensor) -> Tensor:
    return tokens[:, :, None] == tokens[:, None, :]


def _after(tokens: Tensor, by: int = 1) -> Tensor:
    """[b, t, s]: the token ``by`` places before s is the one at t."""
    shifted = torch.zeros_like(_same(tokens))
    shifted[:, :, by:] = _same(tokens)[:, :, : tokens.shape[1] - by]
    return shifted


def _averaged(pattern: Tensor, places: Tensor, where: Tensor) -> Tensor:
    return (pattern * places[:, None]).sum(-1).transpose(0, 1)[:, where].mean(-1)


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
    mistakes={
        "this is the attention to the same token; an induction head looks one place further": (
            lambda pattern, tokens, where: _averaged(pattern, _same(tokens), where)
        ),
        "this is the attention to the place before the same token; the answer stands after it": (
            lambda pattern, tokens, where: _averaged(pattern, _after(tokens.flip(1)).flip(1, 2), where)
        ),
        "two places after the same token are counted; shift by one": (
            lambda pattern, tokens, where: _averaged(pattern, _after(tokens, 2), where)
        ),
        "`where` is ignored: average over the queries that it marks, not over all": (
            lambda pattern, tokens, where: _averaged(pattern, _after(tokens), torch.ones_like(where))
        ),
        "queries outside `where` count as 0; leave them out of the mean": lambda pattern, tokens, where: (
            (pattern * _after(tokens)[:, None]).sum(-1) * where[:, None]
        ).mean((0, 2)),
        "`where` is applied to the keys; it marks queries": lambda pattern, tokens, where: (
            (pattern * (_after(tokens) & where[:, None])[:, None]).sum(-1).mean((0, 2))
        ),
        "queries and keys are exchanged: rows of the pattern are queries": lambda pattern, tokens, where: _averaged(
            pattern.mT, _after(tokens), where
        ),
        "the heads are averaged, too; there is one score for each": lambda pattern, tokens, where: _averaged(
            pattern.mean(1, keepdim=True).expand_as(pattern), _after(tokens), where
        ),
        "the weights are averaged over the keys; sum them": lambda pattern, tokens, where: (
            _averaged(pattern, _after(tokens), where) / tokens.shape[1]
        ),
    },
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


def _stored(P: Tensor, beta: float, pairs=lambda u: (u[1:], u[:-1]), power=1.0, size=0.5) -> Tensor:
    """The memory, and what people write for it: other ``pairs``, other powers of lengths and of d."""
    queries, keys = pairs(P / P.square().sum(1, keepdim=True) ** power)
    return beta * P.shape[1] ** size * queries.mT @ keys


position_memory = Exercise(
    name="position_memory",
    answer=_position_memory,
    draw=_draw_positions,
    mistakes={
        "transposed: the query P_t stands on the left, the key P_{t-1} on the right": (
            lambda P, beta: _stored(P, beta).mT
        ),
        "every position looks at itself; the key of t is P_{t-1}": lambda P, beta: _stored(P, beta, lambda u: (u, u)),
        "position 0 looks back to the last one; it has none before it, so the sum begins at t = 1": (
            lambda P, beta: _stored(P, beta, lambda u: (u, u.roll(1, 0)))
        ),
        "this looks two places back": lambda P, beta: _stored(P, beta, lambda u: (u[2:], u[:-2])),
        "the outer products are averaged; sum them": lambda P, beta: _stored(P, beta) / (len(P) - 1),
        "the sums come first: this is one outer product of two sums, which mixes all positions": (
            lambda P, beta: _stored(P, beta, lambda u: (u[1:].sum(0)[None], u[:-1].sum(0)[None]))
        ),
        "every earlier position is stored; only the one just before": (
            lambda P, beta: _stored(P, beta, lambda u: (u, u.cumsum(0) - u))
        ),
        "the first pair is missing: the sum begins at t = 1": (
            lambda P, beta: _stored(P, beta, lambda u: (u[2:], u[1:-1]))
        ),
        "the last pair is missing: the sum goes up to the last position": (
            lambda P, beta: _stored(P, beta, lambda u: (u[1:-1], u[:-2]))
        ),
        "positions are divided by their lengths; it takes the squares: P / |P|^2 times P is 1": (
            lambda P, beta: _stored(P, beta, power=0.5)
        ),
        "the lengths of the positions are left in; divide each by the square of its own": (
            lambda P, beta: _stored(P, beta, power=0)
        ),
        "the root of d is missing; attention divides by it, so the memory must have it": (
            lambda P, beta: _stored(P, beta, size=0)
        ),
        "divided by the root of d: attention does that already, so multiply": (
            lambda P, beta: _stored(P, beta, size=-0.5)
        ),
        "the factor is d; attention divides by its root only": lambda P, beta: _stored(P, beta, size=1),
        "beta is not used: it is the score of a right key": lambda P, beta: _stored(P, 1.0),
    },
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
    mistakes={
        "transposed: what is said, U_j, stands on the left; what is found, S E_j, on the right": (
            lambda E, U, S: (U.mT @ E @ S.mT).mT
        ),
        "the value is E_j itself; attention hands over S E_j, and that is what the memory must read": (
            lambda E, U, S: U.mT @ E
        ),
        "the rows of E times S are S^T E_j; S E_j needs the rows times S^T": lambda E, U, S: U.mT @ E @ S,
        "S is applied to U; it belongs to what is found": lambda E, U, S: (U @ S.mT).mT @ E,
        "U and E are exchanged": lambda E, U, S: E.mT @ U @ S.mT,
        "U is not used: the memory must say the row of the unembedding": lambda E, U, S: E.mT @ E @ S.mT,
        "the outer products are averaged; sum them": lambda E, U, S: U.mT @ E @ S.mT / len(E),
        "the sums come first: this is one outer product of two sums, which mixes all tokens": (
            lambda E, U, S: torch.outer(U.sum(0), S @ E.sum(0))
        ),
    },
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
    mistakes={
        "transposed: the query e_k stands on the left, the key R e_k on the right": (
            lambda E, R, triggers: (E[triggers] @ R.mT).mT @ E[triggers]
        ),
        "the key is e_k itself; layer 1 has written R e_k, and that is what the memory must read": (
            lambda E, R, triggers: E[triggers].mT @ E[triggers]
        ),
        "the rows of E times R are R^T e_k; R e_k needs the rows times R^T": lambda E, R, triggers: (
            E[triggers].mT @ E[triggers] @ R
        ),
        "all tokens are stored; only the triggers should be": lambda E, R, triggers: E.mT @ E @ R.mT,
        "the first K tokens are stored, not the triggers: index E with them": (
            lambda E, R, triggers: E[: len(triggers)].mT @ E[: len(triggers)] @ R.mT
        ),
        "the outer products are averaged; sum them": lambda E, R, triggers: (
            E[triggers].mT @ E[triggers] @ R.mT / len(triggers)
        ),
        "the sums come first: this is one outer product of two sums, which mixes all triggers": (
            lambda E, R, triggers: torch.outer(E[triggers].sum(0), R @ E[triggers].sum(0))
        ),
        "both sides are remapped; the query is e_k as it is": (
            lambda E, R, triggers: (E[triggers] @ R.mT).mT @ (E[triggers] @ R.mT)
        ),
    },
)


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
