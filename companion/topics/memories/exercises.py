"""The exercises of lesson 05, associative memory: what the lesson imports as ``exercises``."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

# -- hopfield_sweep


def _draw_states(generator: Generator) -> dict:
    # Many patterns and states, or one sweep settles all; an even number of patterns, or no field is ever 0
    n, d, t = 2 * draw_size(generator, 2, 3), draw_size(generator, 8, 11), draw_size(generator, 14, 18)
    X, states = ((draw_normal(generator, rows, d) > 0).double() * 2 - 1 for rows in (n, t))
    return {"X": X, "states": states}


def _hopfield_sweep(X: Tensor, states: Tensor) -> Tensor:
    J = X.mT @ X
    J.fill_diagonal_(0)
    states = states.clone()
    for i in range(len(J)):
        field = states @ J[i]
        states[:, i] = torch.where(field == 0, states[:, i], field.sign())
    return states


hopfield_sweep = Exercise(
    name="hopfield_sweep",
    answer=_hopfield_sweep,
    draw=_draw_states,
)


# -- softmax_update


def _draw_memories(generator: Generator) -> dict:
    n, d, t = draw_size(generator, 3, 6), draw_size(generator, 3, 6), draw_size(generator, 2, 4)
    return {
        "X": draw_normal(generator, n, d),
        "states": draw_normal(generator, t, d),
        "beta": float(0.5 + torch.rand((), generator=generator)),
    }


def _softmax_update(X: Tensor, states: Tensor, beta: float) -> Tensor:
    scores = beta * states @ X.mT
    return scores.softmax(1) @ X


softmax_update = Exercise(
    name="softmax_update",
    answer=_softmax_update,
    draw=_draw_memories,
)


# -- flow_step


def _draw_sphere(generator: Generator) -> dict:
    n, d = draw_size(generator, 3, 6), draw_size(generator, 2, 5)
    return {
        "x": F.normalize(draw_normal(generator, n, d), dim=1),
        "beta": float(1 + 2 * torch.rand((), generator=generator)),
        "dt": float(0.1 + 0.3 * torch.rand((), generator=generator)),
    }


def _flow_step(x: Tensor, beta: float, dt: float) -> Tensor:
    pull = (beta * x @ x.mT).softmax(1) @ x
    pull = pull - (pull * x).sum(1, keepdim=True) * x
    return F.normalize(x + dt * pull, dim=1)


flow_step = Exercise(
    name="flow_step",
    answer=_flow_step,
    draw=_draw_sphere,
)


# -- memory_gradient


def _draw_loss(generator: Generator) -> dict:
    m, d, e = draw_size(generator, 3, 4), draw_size(generator, 2, 3), draw_size(generator, 4, 5)
    n = m + draw_size(generator, 1, 3)
    p = draw_normal(generator, n * m).softmax(0).view(n, m)
    return {
        "W": draw_normal(generator, e, d),
        "U": draw_normal(generator, n, d),
        "V": draw_normal(generator, m, e),
        "p": p,
    }


def _memory_gradient(W: Tensor, U: Tensor, V: Tensor, p: Tensor) -> Tensor:
    logits = U @ W.mT @ V.mT
    errors = p.sum(1, keepdim=True) * logits.softmax(1) - p
    return V.mT @ errors.mT @ U


memory_gradient = Exercise(
    name="memory_gradient",
    answer=_memory_gradient,
    draw=_draw_loss,
)


# -- logit_variance


def _draw_counts(generator: Generator) -> dict:
    counts = torch.randint(1, 9, (draw_size(generator, 3, 6),), generator=generator).double()
    tokens, answers = (torch.rand(2, generator=generator, dtype=torch.float64) * 0.2 + 0.05).tolist()
    return {"counts": counts, "tokens": tokens, "answers": answers}


def _logit_variance(counts: Tensor, tokens: float, answers: float) -> Tensor:
    own = torch.eye(len(counts), dtype=counts.dtype, device=counts.device)
    same = counts - own
    other = counts.sum() - 1 - same
    return same * tokens + other * tokens * answers + (1 - own) * answers


logit_variance = Exercise(
    name="logit_variance",
    answer=_logit_variance,
    draw=_draw_counts,
)


# -- chance_right


def _draw_logits(generator: Generator) -> dict:
    m = draw_size(generator, 3, 6)
    x = draw_normal(generator, draw_size(generator, 7, 11))
    variance = 0.1 + 0.6 * torch.rand(m, generator=generator, dtype=torch.float64)
    return {"variance": variance, "own": draw_size(generator, 0, m - 1), "x": x}


def _chance_right(variance: Tensor, own: int, x: Tensor) -> Tensor:
    right = 1 + variance[own].sqrt() * x
    beaten = torch.special.ndtr(right / variance.sqrt()[:, None])
    rivals = torch.cat([beaten[:own], beaten[own + 1 :]])
    return rivals.prod(0).mean()


chance_right = Exercise(
    name="chance_right",
    answer=_chance_right,
    draw=_draw_logits,
)


# -- cubic_memory


def _draw_mlp(generator: Generator) -> dict:
    n, d, e, m, t = (draw_size(generator, *bounds) for bounds in ((6, 7), (2, 3), (4, 5), (8, 9), (2, 3)))
    U, x = (
        rows / rows.norm(dim=1, keepdim=True) for rows in (draw_normal(generator, n, d), draw_normal(generator, t, d))
    )
    return {"U": U, "V": draw_normal(generator, n, e), "w": draw_normal(generator, m, d), "x": x}


def _cubic_memory(U: Tensor, V: Tensor, w: Tensor, x: Tensor) -> Tensor:
    def h(s):
        return (s**3 - 3 * s) / 6**0.5

    a = h(U @ w.mT).mT @ V / len(w)
    return h(x @ w.mT) @ a @ V.mT


cubic_memory = Exercise(
    name="cubic_memory",
    answer=_cubic_memory,
    draw=_draw_mlp,
)
