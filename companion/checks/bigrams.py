"""The exercises of lesson 06, induction heads.

Each wrong function under ``mistakes`` is something that people really write; `companion.checks.exercise` uses it to name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.checks.exercise import Exercise, draw_normal, draw_size
from companion.probes import bigrams as probes
from companion.samplers.bigrams import seen_before

__all__ = ["first_step", "key_memory", "known_positions", "low_rank", "next_tokens", "recalled"]


# -- next_tokens


def _draw_step(generator: Generator) -> dict:
    N, batch = draw_size(generator, 5, 7), draw_size(generator, 30, 40)
    rows = torch.rand(N, N, generator=generator, dtype=torch.float64) + 0.1
    cumulative = (rows / rows.sum(1, keepdim=True)).cumsum(1)
    cumulative[:, -1] = 1
    after = torch.randint(N, (batch, N), generator=generator)
    after[torch.rand(batch, N, generator=generator) < 0.5] = -1  # half of all tokens are no triggers here
    token = torch.randint(N, (batch,), generator=generator)
    return {"token": token, "after": after, "cumulative": cumulative, "u": torch.rand(batch, generator=generator, dtype=torch.float64)}


def _from_table(token: Tensor, cumulative: Tensor, u: Tensor) -> Tensor:
    return (cumulative[token] <= u[:, None]).sum(1)


def _forced(token: Tensor, after: Tensor) -> Tensor:
    return after.gather(1, token[:, None])[:, 0]


def _next(token: Tensor, after: Tensor, drawn: Tensor) -> Tensor:
    forced = _forced(token, after)
    return torch.where(forced >= 0, forced, drawn)


next_tokens = Exercise(
    name="next_tokens",
    answer=lambda token, after, cumulative, u: _next(token, after, _from_table(token, cumulative, u)),
    draw=_draw_step,
    mistakes={
        "the triggers are ignored: where after[b, token[b]] is not -1, it is the next token": (
            lambda token, after, cumulative, u: _from_table(token, cumulative, u)
        ),
        "the table is ignored: -1 in `after` is no token; there the next one is drawn": (
            lambda token, after, cumulative, u: _forced(token, after)
        ),
        "output 0 is taken for 'no trigger': test for >= 0, not > 0": lambda token, after, cumulative, u: torch.where(
            _forced(token, after) > 0, _forced(token, after), _from_table(token, cumulative, u)
        ),
        "the two cases are exchanged: the table is used for triggers": lambda token, after, cumulative, u: torch.where(
            _forced(token, after) >= 0, _from_table(token, cumulative, u), _forced(token, after)
        ),
        "one too many: the entries up to u are counted from 0, so their number is the drawn token itself": (
            lambda token, after, cumulative, u: _next(token, after, _from_table(token, cumulative, u) + 1)
        ),
        "the entries above u are counted; the drawn token is the number of entries that are not": lambda token, after, cumulative, u: _next(
            token, after, (cumulative[token] > u[:, None]).sum(1)
        ),
        "this is the last entry that u has passed; the draw is the first that it has not": lambda token, after, cumulative, u: _next(
            token, after, (_from_table(token, cumulative, u) - 1).clamp(min=0)
        ),
        "the columns of the table are read; row i belongs to the token i": lambda token, after, cumulative, u: _next(
            token, after, (cumulative[:, token].mT <= u[:, None]).sum(1)
        ),
        "the likeliest next token is taken; draw it with u": lambda token, after, cumulative, u: _next(
            token, after, cumulative[token].diff(dim=1, prepend=torch.zeros_like(u)[:, None]).argmax(1)
        ),
    },
)


# -- known_positions


def _draw_text(generator: Generator) -> dict:
    batch, T, N = draw_size(generator, 3, 5), draw_size(generator, 24, 30), draw_size(generator, 5, 6)
    triggers = torch.randperm(N, generator=generator)[: draw_size(generator, 2, 3)]
    return {"tokens": torch.randint(N, (batch, T), generator=generator), "triggers": triggers}


def _known(tokens: Tensor, triggers: Tensor) -> Tensor:
    return seen_before(tokens, triggers.expand(len(tokens), -1))


def _here(tokens: Tensor, triggers: Tensor) -> Tensor:
    return tokens[..., None] == triggers


def _any_repeat(tokens: Tensor) -> Tensor:
    return (tokens[:, :, None] == tokens[:, None]).tril(-1).any(-1)


known_positions = Exercise(
    name="known_positions",
    answer=_known,
    draw=_draw_text,
    mistakes={
        "the first occurrence of a trigger counts, too; there the output has not been seen yet": (
            lambda tokens, triggers: _here(tokens, triggers).any(-1)
        ),
        "only the second occurrence counts; from the second on, all do": lambda tokens, triggers: (
            _here(tokens, triggers) & (_here(tokens, triggers).cumsum(1) == 2)
        ).any(-1),
        "only from the third occurrence on: more than one so far, itself included, is enough": lambda tokens, triggers: (
            _here(tokens, triggers) & (_here(tokens, triggers).cumsum(1) > 2)
        ).any(-1),
        "any trigger before is taken for this one: count each trigger by itself": lambda tokens, triggers: (
            _here(tokens, triggers).any(-1) & (_here(tokens, triggers).any(-1).cumsum(1) > 1)
        ),
        "every token that has occurred before counts; only triggers do": lambda tokens, triggers: _any_repeat(tokens),
        "every position after a second occurrence counts; only those do where a trigger stands": lambda tokens, triggers: (
            _here(tokens, triggers).cumsum(1) > 1
        ).any(-1),
        "the occurrences are counted across the batch; count along the sequence, dimension 1": lambda tokens, triggers: (
            _here(tokens, triggers) & (_here(tokens, triggers).cumsum(0) > 1)
        ).any(-1),
        "this marks the outputs, one place after the triggers": lambda tokens, triggers: torch.cat(
            [torch.zeros_like(tokens[:, :1], dtype=torch.bool), _known(tokens, triggers)[:, :-1]], dim=1
        ),
        "this marks what occurs again later; mark what has occurred before": lambda tokens, triggers: _known(tokens.flip(1), triggers).flip(
            1
        ),
        "the first trigger alone counts": lambda tokens, triggers: _known(tokens, triggers[:1]),
    },
)


# -- key_memory


def _draw_keys(generator: Generator) -> dict:
    N, d = draw_size(generator, 5, 8), draw_size(generator, 3, 4)
    triggers = torch.randperm(N, generator=generator)[: draw_size(generator, 2, 3)]
    return {"E": draw_normal(generator, N, d), "R": draw_normal(generator, d, d), "triggers": triggers}


key_memory = Exercise(
    name="key_memory",
    answer=lambda E, R, triggers: E[triggers].mT @ (E[triggers] @ R.mT),
    draw=_draw_keys,
    mistakes={
        "transposed: the query e_k stands on the left, the key R e_k on the right": (
            lambda E, R, triggers: (E[triggers] @ R.mT).mT @ E[triggers]
        ),
        "the key is e_k itself; layer 1 has written R e_k, and that is what the memory must read": (
            lambda E, R, triggers: E[triggers].mT @ E[triggers]
        ),
        "the rows of E times R are R^T e_k; R e_k needs the rows times R^T": lambda E, R, triggers: E[triggers].mT @ E[triggers] @ R,
        "all tokens are stored; only the triggers should be": lambda E, R, triggers: E.mT @ E @ R.mT,
        "the first K tokens are stored, not the triggers: index E with them": (
            lambda E, R, triggers: E[: len(triggers)].mT @ E[: len(triggers)] @ R.mT
        ),
        "the outer products are averaged; sum them": lambda E, R, triggers: E[triggers].mT @ E[triggers] @ R.mT / len(triggers),
        "the sums come first: this is one outer product of two sums, which mixes all triggers": (
            lambda E, R, triggers: torch.outer(E[triggers].sum(0), R @ E[triggers].sum(0))
        ),
        "both sides are remapped; the query is e_k as it is": (lambda E, R, triggers: (E[triggers] @ R.mT).mT @ (E[triggers] @ R.mT)),
    },
)


# -- recalled


def _draw_memory(generator: Generator) -> dict:
    d, M = draw_size(generator, 5, 7), draw_size(generator, 18, 24)
    u, v = draw_normal(generator, M, d), draw_normal(generator, M, d)
    return {"W": v.mT @ u + 3 * draw_normal(generator, d, d), "u": u, "v": v}


def _hits(scores: Tensor, dim: int = 1) -> Tensor:
    return scores.argmax(dim) == torch.arange(len(scores), device=scores.device)


recalled = Exercise(
    name="recalled",
    answer=lambda W, u, v: probes.recalled(W, u, v),  # noqa: PLW0108  # the probe takes a fourth argument, the exercise does not
    draw=_draw_memory,
    mistakes={
        "the argmax runs over the inputs i; for each input, it must run over the candidates j": (lambda W, u, v: _hits(u @ W.mT @ v.mT, 0)),
        "W is applied the wrong way round: v_j^T W u_i, so the rows of u are multiplied by W^T": lambda W, u, v: _hits(u @ W @ v.mT),
        "u and v are exchanged: W maps u to v": lambda W, u, v: _hits(v @ W.mT @ u.mT),
        "W is not used": lambda W, u, v: _hits(u @ v.mT),
        "W u_i is compared with u; the candidates are the v_j": lambda W, u, v: _hits(u @ W.mT @ u.mT),
        "a large score is not yet the largest: compare the argmax with i": lambda W, u, v: (u @ W.mT @ v.mT).diagonal() > 0,
        "the smallest score is taken": lambda W, u, v: _hits(-(u @ W.mT @ v.mT)),
        "True and False are exchanged: recalled means that the argmax is i": lambda W, u, v: ~_hits(u @ W.mT @ v.mT),
    },
)


# -- first_step


def _draw_batch(generator: Generator) -> dict:
    M, N, d = draw_size(generator, 12, 16), draw_size(generator, 4, 5), draw_size(generator, 6, 8)
    y = torch.randint(N, (M,), generator=generator)
    return {"x": 1 + draw_normal(generator, M, d), "y": y, "U": 0.5 + draw_normal(generator, N, d)}


def _step(x: Tensor, error: Tensor) -> Tensor:
    return error.mT @ x / len(x)


first_step = Exercise(
    name="first_step",
    answer=lambda x, y, U: _step(x, U[y] - U.mean(0)),
    draw=_draw_batch,
    mistakes={
        "this is the gradient; the step goes against it": lambda x, y, U: -_step(x, U[y] - U.mean(0)),
        "what the softmax says is missing: at W = 0 it gives every token 1/N, so the mean of U is subtracted": (
            lambda x, y, U: _step(x, U[y])
        ),
        "the sum of U is subtracted; each token has probability 1/N, so it is the mean": lambda x, y, U: _step(x, U[y] - U.sum(0)),
        "the sum over the batch is not divided by its size": lambda x, y, U: len(x) * _step(x, U[y] - U.mean(0)),
        "transposed: U[y] stands on the left, x on the right": lambda x, y, U: _step(x, U[y] - U.mean(0)).mT,
        "the means come first: a mean of products is not the product of means": lambda x, y, U: torch.outer(
            (U[y] - U.mean(0)).mean(0), x.mean(0)
        ),
        "the mean over the batch's targets is subtracted; the softmax at W = 0 is uniform over all N tokens": (
            lambda x, y, U: _step(x, U[y] - U[y].mean(0))
        ),
        "the sum is divided by N; the loss is a mean over the batch": lambda x, y, U: _step(x, U[y] - U.mean(0)) * len(x) / len(U),
    },
    tolerance=1e-8,
)


# -- low_rank


def _draw_matrix(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 9), draw_size(generator, 10, 12)
    shape = (m, d) if torch.rand((), generator=generator) < 0.5 else (d, m)
    keep = draw_size(generator, 2, m - 3)
    return {"W": draw_normal(generator, *shape), "share": (keep + 0.6) / m}


def _cut(W: Tensor, change) -> Tensor:
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    return U * change(S) @ V


def _kept(S: Tensor, keep: int) -> Tensor:
    return torch.where(torch.arange(len(S), device=S.device) < keep, S, 0)


low_rank = Exercise(
    name="low_rank",
    answer=probes.low_rank,
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
        "one too few are kept: S[k:] = 0 keeps k of them": lambda W, share: _cut(W, lambda S: _kept(S, int(share * len(S)) - 1)),
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
