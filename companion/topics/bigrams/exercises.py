"""The exercises of lesson 06, induction heads: what the lesson imports as ``exercises``."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import Stage, summit
from companion.topics.bigrams.data import recurrences


def _draw_patterns(generator: Generator) -> dict:
    batch, heads, T = draw_size(generator, 3, 4), 2, draw_size(generator, 9, 12)
    scores = 2 * draw_normal(generator, batch, heads, T, T)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    tokens = torch.randint(3, (batch, T), generator=generator)
    where = torch.rand(batch, T, generator=generator) < 0.5
    where[:, 3] = True
    return {"pattern": scores.masked_fill(future, -torch.inf).softmax(-1), "tokens": tokens, "where": where}


@exercise(draw=_draw_patterns, now="you can now score the heads of any model")
def induction_score(pattern: Tensor, tokens: Tensor, where: Tensor) -> Tensor:
    same = tokens[:, :, None] == tokens[:, None, :]
    after_same = torch.zeros_like(same)
    after_same[:, :, 1:] = same[:, :, :-1]
    share = (pattern * after_same[:, None]).sum(-1)
    return share.transpose(0, 1)[:, where].mean(-1)


def _draw_positions(generator: Generator) -> dict:
    P = 0.3 + draw_normal(generator, draw_size(generator, 6, 9), draw_size(generator, 3, 5))
    return {"P": P, "beta": 0.5 + draw_size(generator, 1, 4)}


@exercise(draw=_draw_positions, now="every position now finds the one before it")
def position_memory(P: Tensor, beta: float) -> Tensor:
    lengths = P.square().sum(1, keepdim=True)
    units = P / lengths
    queries, keys = units[1:], units[:-1]
    return beta * P.shape[1] ** 0.5 * queries.mT @ keys


def _draw_outputs(generator: Generator) -> dict:
    N, d = draw_size(generator, 5, 8), draw_size(generator, 3, 4)
    E, U = 0.3 + draw_normal(generator, N, d), 0.3 + draw_normal(generator, N, d)
    return {"E": E, "U": U, "S": draw_normal(generator, d, d)}


@exercise(draw=_draw_outputs, now="what is found is now output, and your circuit is complete")
def output_memory(E: Tensor, U: Tensor, S: Tensor) -> Tensor:
    values = E @ S.mT
    return U.mT @ values


def _draw_keys(generator: Generator) -> dict:
    N, d = draw_size(generator, 5, 8), draw_size(generator, 3, 4)
    triggers = torch.randperm(N, generator=generator)[: draw_size(generator, 2, 3)]
    return {"E": draw_normal(generator, N, d), "R": draw_normal(generator, d, d), "triggers": triggers}


@exercise(draw=_draw_keys, now="a token now finds the place after its own earlier occurrence")
def key_memory(E: Tensor, R: Tensor, triggers: Tensor) -> Tensor:
    queries = E[triggers]
    keys = queries @ R.mT
    return queries.mT @ keys


def _draw_memory(generator: Generator) -> dict:
    d, M = draw_size(generator, 5, 7), draw_size(generator, 18, 24)
    u, v = 0.5 + draw_normal(generator, M, d), draw_normal(generator, M, d)
    W = 0.03 * (v.mT @ u + 3 * draw_normal(generator, d, d))  # scores so small that no softmax of them is near 1
    return {"W": W, "u": u, "v": v}


@exercise(draw=_draw_memory, now="you can now ask any matrix what it has memorised")
def recalled(W: Tensor, u: Tensor, v: Tensor) -> Tensor:
    scores = u @ W.mT @ v.mT
    best = scores.argmax(dim=1)
    return best == torch.arange(len(u), device=u.device)


def _draw_adam(generator: Generator) -> dict:
    shape = draw_size(generator, 3, 4), draw_size(generator, 5, 6)
    sizes = torch.where(torch.arange(shape[1]) % 2 == 0, 1.0, 0.03).double()  # some are small beside the 1e-8
    gradient = torch.where(sizes < 1, draw_normal(generator, *shape).abs(), draw_normal(generator, *shape)) * sizes
    past = draw_normal(generator, *shape)
    step = draw_size(generator, 2, 6)
    return {
        "gradient": gradient,
        "m": 0.4 * past * sizes,
        "v": (0.05 * past.square() + 0.02) * sizes.square(),
        "step": step,
        "lr": 0.5 + 0.1 * draw_size(generator, 1, 4),
    }


@exercise(draw=_draw_adam, now="it now trains the models below")
def adam_step(gradient: Tensor, m: Tensor, v: Tensor, step: int, lr: float) -> Tensor:
    m = 0.9 * m + (1 - 0.9) * gradient
    v = 0.99 * v + (1 - 0.99) * gradient**2
    m_hat = m / (1 - 0.9**step)
    v_hat = v / (1 - 0.99**step)
    change = -lr * m_hat / (v_hat.sqrt() + 1e-8)
    return torch.stack([change, m, v])


def _draw_matrix(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 9), draw_size(generator, 10, 12)
    shape = (m, d) if torch.rand((), generator=generator) < 0.5 else (d, m)
    keep = draw_size(generator, 2, m - 3)
    rest = 0.3 + 0.6 * torch.rand((), generator=generator).item()  # is cut: not rounded, and not always rounded up
    falling = 0.7 ** torch.arange(shape[1], dtype=torch.float64)  # a share of the values' sum is none of their number
    return {"W": draw_normal(generator, *shape) * falling, "share": (keep + rest) / m}


@exercise(draw=_draw_matrix, tolerance=1e-8, now="you can now cut a matrix down and see what the model forgets")
def low_rank(W: Tensor, share: float) -> Tensor:
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    k = int(share * len(S))
    kept = U[:, :k] * S[:k]
    return kept @ V[:k]


def _draw_recurrences(generator: Generator) -> dict:
    N, T = 100, 16
    drawn = [recurrences(4096, T, N, generator=generator) for _ in range(3)]
    tested = recurrences(2048, T, N, generator=generator)
    return {
        "tokens": torch.stack([tokens for tokens, _ in drawn]),
        "targets": torch.stack([targets for _, targets in drawn]),
        "N": N,
        "_tokens": tested.tokens,
        "_targets": tested.targets,
    }


STORED = {
    "W_O2": "tokens that are output where attention finds them",
    "W_K2": "tokens that look for the position after themselves (is the query the last token, and the future hidden?)",
    "W_K1": "positions that look one place back (does layer 2 hand over the tokens themselves, and not h?)",
}


def _stored(name: str, W: Tensor, T: int) -> float:
    """The fraction of a memory's associations that have the largest score of their row; W_K1 is asked at 1 .. T - 2,
    where the target can be.
    """
    rows = W[1 : T - 1, : T - 1] if name == "W_K1" else W
    return (rows.argmax(1) == torch.arange(len(rows), device=W.device)).double().mean().item()


def _stage(place: int, name: str) -> Stage:
    """The stage at which one of the three memories must be there."""

    def stage(inputs: dict, answer: Tensor) -> str | None:
        W, T = answer[place], inputs["tokens"].shape[2]
        if not W.any():
            return f"{name}, entry {place} of the answer, is all zero: was it stepped, and did a gradient reach it?"
        if (found := _stored(name, W, T)) >= 0.9:
            return None
        told = f"{name} stores {found:.0%} of the {STORED[name]}; 90 % are asked for"
        if _stored(name, -W, T) >= 0.9:
            why = "did it go up the gradient, or does layer 2 look at the tokens themselves, and not at h?"
            return f"{told}. Its sign is flipped: {why if place else 'it went up the gradient'}"
        if _stored(name, W.mT, T) >= 0.9:
            return f"{told}. It is transposed: its rows are queries"
        return told

    return stage


def _future_is_hidden(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which nothing may have been learned of positions that come later: a masked score has no gradient."""
    T = inputs["tokens"].shape[2]
    if answer[2, :T, :T].triu(1).any():
        return "W_K1 has learned scores for positions that come later: the mask must hide all of them, the next one too"
    return None


def _answers_rightly(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which the circuit must answer on sequences that it has not seen."""
    W_O2, W_K2, W_K1 = answer.float()
    tokens, T = inputs["_tokens"], inputs["_tokens"].shape[1]
    future = torch.ones(T, T, device=tokens.device).triu(1).bool()
    x = F.one_hot(tokens, inputs["N"]).float()
    h = W_K1[:T, :T].masked_fill(future, -torch.inf).softmax(-1) @ x
    o = ((x[:, -1:] @ W_K2 @ h.mT).softmax(-1) @ x)[:, 0]
    if (right := ((o @ W_O2.mT).argmax(1) == inputs["_targets"]).double().mean().item()) >= 0.9:
        return None
    sizes = [W.abs().max().item() for W in answer]
    why = (
        f"the largest entries are {', '.join(f'{size:.2g}' for size in sizes)}, too small for a sharp softmax"
        if min(sizes) < 8
        else "does each softmax run over the keys, and does layer 2 hand over the tokens themselves, and not h?"
    )
    return f"all three memories are stored, but {right:.0%} of new sequences are answered rightly, not 90 %: {why}"


@summit(
    draw=_draw_recurrences,
    shape=lambda inputs: (3, inputs["N"], inputs["N"]),
    stages=(_stage(0, "W_O2"), _stage(1, "W_K2"), _stage(2, "W_K1"), _future_is_hidden, _answers_rightly),
    seconds=4,
    now="one gradient step for each memory, and the whole circuit is there",
)
def learn_in_three_steps(tokens: Tensor, targets: Tensor, N: int) -> Tensor:
    T = tokens.shape[2]
    future = torch.ones(T, T, device=tokens.device).triu(1).bool()
    W = torch.zeros(3, N, N, device=tokens.device, requires_grad=True)
    for i, (z, y) in enumerate(zip(tokens, targets, strict=True)):
        W_O2, W_K2, W_K1 = W
        x = F.one_hot(z, N).float()
        first = W_K1[:T, :T].masked_fill(future, -torch.inf).softmax(-1)
        h = first @ x
        scores = x[:, -1:] @ W_K2 @ h.mT
        o = (scores.softmax(-1) @ x)[:, 0]
        loss = F.cross_entropy(o @ W_O2.mT, y)
        [gradient] = torch.autograd.grad(loss, W)
        step = -gradient[i] / gradient[i].abs().max()
        with torch.no_grad():
            W[i] += 20 * step
    return W.detach()
