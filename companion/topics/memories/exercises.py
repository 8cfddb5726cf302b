"""The exercises of lesson 05, associative memory: what the lesson imports as ``exercises``."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size
from companion.topics.memories.by_hand import hermite

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


def _swept(X: Tensor, states: Tensor, *, diagonal: bool = False, tie=None, order=range, sign=1) -> Tensor:
    """The sweep with one of its parts changed."""
    J = X.mT @ X
    if not diagonal:
        J = J - torch.diag(J.diagonal())
    states = states.clone()
    for i in order(len(J)):
        field = sign * states @ J[i]
        states[:, i] = torch.where(field == 0, states[:, i] if tie is None else tie + 0 * field, field.sign())
    return states


def _at_once(X: Tensor, states: Tensor, diagonal: bool = False) -> Tensor:
    J = X.mT @ X
    field = states @ (J if diagonal else J - torch.diag(J.diagonal()))
    return torch.where(field == 0, states, field.sign())


hopfield_sweep = Exercise(
    name="hopfield_sweep",
    answer=_hopfield_sweep,
    draw=_draw_states,
    mistakes={
        "all signs are updated at once; sign i must see the new signs 0 to i - 1": _at_once,
        "all at once, and the couplings keep their diagonal": lambda X, states: _at_once(X, states, True),
        "the couplings keep their diagonal: every sign votes for itself": lambda X, states: _swept(
            X, states, diagonal=True
        ),
        "a field of 0 gives 0; the sign stays as it is there": lambda X, states: _swept(X, states, tie=0.0),
        "a field of 0 gives +1; the sign stays as it is there": lambda X, states: _swept(X, states, tie=1.0),
        "a field of 0 gives -1; the sign stays as it is there": lambda X, states: _swept(X, states, tie=-1.0),
        "the signs are taken from the last to the first": lambda X, states: _swept(
            X, states, order=lambda d: reversed(range(d))
        ),
        "the sign of the field is flipped: the state runs away from the patterns": lambda X, states: _swept(
            X, states, sign=-1
        ),
        "two sweeps; one is asked for": lambda X, states: _swept(X, _swept(X, states)),
    },
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
    mistakes={
        "scores are divided by sqrt(d); here beta is the whole scale": lambda X, states, beta: (
            (beta * states @ X.mT / X.shape[1] ** 0.5).softmax(1) @ X
        ),
        "beta multiplies the weights; it belongs inside the softmax": lambda X, states, beta: (
            beta * (states @ X.mT).softmax(1) @ X
        ),
        "the softmax runs over the states; it runs over the patterns": lambda X, states, beta: (
            (beta * states @ X.mT).softmax(0) @ X
        ),
        "there is no softmax: that is the linear memory of Hopfield (1982)": lambda X, states, beta: (
            beta * states @ X.mT @ X
        ),
        "takes the sign, as Hopfield's network of 1982 does": lambda X, states, beta: (beta * states @ X.mT @ X).sign(),
        "adds the state: the update replaces it": lambda X, states, beta: (
            states + (beta * states @ X.mT).softmax(1) @ X
        ),
        "returns the best pattern alone; the update is an average with softmax weights": lambda X, states, beta: X[
            (states @ X.mT).argmax(1)
        ],
        "brings the answer to length 1; leave it as it is": lambda X, states, beta: F.normalize(
            (beta * states @ X.mT).softmax(1) @ X, dim=1
        ),
        "the sign of beta is flipped: the pattern least like the state wins": lambda X, states, beta: (
            (-beta * states @ X.mT).softmax(1) @ X
        ),
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


def _flow_step(x: Tensor, beta: float, dt: float) -> Tensor:
    pull = (beta * x @ x.mT).softmax(1) @ x
    pull = pull - (pull * x).sum(1, keepdim=True) * x
    return F.normalize(x + dt * pull, dim=1)


flow_step = Exercise(
    name="flow_step",
    answer=_flow_step,
    draw=_draw_sphere,
    mistakes={
        "the pull is not projected: take away its part along x_i before the step": (
            lambda x, beta, dt: F.normalize(x + dt * (beta * x @ x.mT).softmax(1) @ x, dim=1)
        ),
        "the tokens leave the sphere: divide each by its length after the step": (
            lambda x, beta, dt: x + dt * ((p := (beta * x @ x.mT).softmax(1) @ x) - (p * x).sum(1, keepdim=True) * x)
        ),
        "the step is not multiplied by dt": lambda x, beta, dt: _moved(x, (beta * x @ x.mT).softmax(1) @ x, 1.0),
        "tokens are pushed apart: the pull is added": lambda x, beta, dt: _moved(
            x, (beta * x @ x.mT).softmax(1) @ x, -dt
        ),
        "beta is not used: it multiplies the scores": lambda x, beta, dt: _moved(x, (x @ x.mT).softmax(1) @ x, dt),
        "a token does not attend to itself here; it does": lambda x, beta, dt: _moved(
            x,
            (beta * x @ x.mT).masked_fill(torch.eye(len(x), dtype=torch.bool, device=x.device), -torch.inf).softmax(1)
            @ x,
            dt,
        ),
        "there is no softmax: the pulls are weighted by e^score, and not divided by their sum": (
            lambda x, beta, dt: _moved(x, (beta * x @ x.mT).exp() @ x, dt)
        ),
    },
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


def _outer(V: Tensor, coefficients: Tensor, U: Tensor) -> Tensor:
    return V.mT @ coefficients.mT @ U


def _believed(W: Tensor, U: Tensor, V: Tensor) -> Tensor:
    return (U @ W.mT @ V.mT).softmax(1)


def _memory_gradient(W: Tensor, U: Tensor, V: Tensor, p: Tensor) -> Tensor:
    logits = U @ W.mT @ V.mT
    errors = p.sum(1, keepdim=True) * logits.softmax(1) - p
    return V.mT @ errors.mT @ U


memory_gradient = Exercise(
    name="memory_gradient",
    answer=_memory_gradient,
    draw=_draw_loss,
    mistakes={
        "the sign is flipped: that is the direction of descent": (
            lambda W, U, V, p: _outer(V, p - p.sum(1, keepdim=True) * _believed(W, U, V), U)
        ),
        "the softmax is not weighted by p(z), the sum of row z of p": lambda W, U, V, p: _outer(
            V, _believed(W, U, V) - p, U
        ),
        "conditional probabilities on both sides, without the average over z: weight row z by p(z)": (
            lambda W, U, V, p: _outer(V, _believed(W, U, V) - p / p.sum(1, keepdim=True), U)
        ),
        "tokens are averaged evenly; p(z) differs from token to token": (
            lambda W, U, V, p: _outer(V, _believed(W, U, V) - p / p.sum(1, keepdim=True), U) / len(U)
        ),
        "the softmax runs over the tokens; it runs over the answers": (
            lambda W, U, V, p: _outer(V, p.sum(1, keepdim=True) * (U @ W.mT @ V.mT).softmax(0) - p, U)
        ),
        "there is no softmax: logits are not probabilities": (
            lambda W, U, V, p: _outer(V, p.sum(1, keepdim=True) * (U @ W.mT @ V.mT) - p, U)
        ),
        "the error is weighted by the truth: p times (softmax - p) leaves out what should be unlearnt": (
            lambda W, U, V, p: _outer(V, p * (_believed(W, U, V) - p / p.sum(1, keepdim=True)), U)
        ),
        "what the model believes is missing: that is the gradient's other half alone": lambda W, U, V, p: _outer(
            V, -p, U
        ),
    },
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


def _variance(
    counts: Tensor,
    tokens: float,
    answers: float,
    *,
    spared: float = 1.0,
    left: float = 1.0,
    far: float | None = None,
    self_term: float = 1.0,
    diagonal: bool = False,
) -> Tensor:
    """The sum with one of its parts changed."""
    own = torch.eye(len(counts), dtype=counts.dtype, device=counts.device)
    same = counts - spared * own
    other = counts.sum() - left - same
    here = torch.ones_like(own) if diagonal else 1 - own
    return same * tokens + other * (tokens * answers if far is None else far) + self_term * here * answers


def _exchanged(counts: Tensor, tokens: float, answers: float) -> Tensor:
    own = torch.eye(len(counts), dtype=counts.dtype, device=counts.device)
    same = counts - own
    return same * tokens * answers + (counts.sum() - 1 - same) * tokens + (1 - own) * answers


logit_variance = Exercise(
    name="logit_variance",
    answer=_logit_variance,
    draw=_draw_counts,
    mistakes={
        "the token itself is counted among the facts that share its answer": lambda counts, tokens, answers: _variance(
            counts, tokens, answers, spared=0.0
        ),
        "all N facts disturb; the token's own does not: N - 1 others": lambda counts, tokens, answers: _variance(
            counts, tokens, answers, left=0.0
        ),
        "the token's own fact is missing: a wrong answer k overlaps with it by v_k . v_f(z)": (
            lambda counts, tokens, answers: _variance(counts, tokens, answers, self_term=0.0)
        ),
        "under the right answer the token's own fact gives exactly 1: no variance there": (
            lambda counts, tokens, answers: _variance(counts, tokens, answers, diagonal=True)
        ),
        "facts under another answer must overlap in both embeddings: the product of the two variances": (
            lambda counts, tokens, answers: _variance(counts, tokens, answers, far=tokens)
        ),
        "facts under another answer come in with the answers' overlap alone": lambda counts, tokens, answers: _variance(
            counts, tokens, answers, far=answers
        ),
        "variances of independent terms add up: a sum over the facts, not a mean": lambda counts, tokens, answers: (
            _logit_variance(counts, tokens, answers) / counts.sum()
        ),
        "that is the standard deviation": lambda counts, tokens, answers: _logit_variance(
            counts, tokens, answers
        ).sqrt(),
        "same and other answers are exchanged: another answer needs both overlaps": _exchanged,
    },
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


def _chance(
    variance: Tensor,
    own: int,
    x: Tensor,
    *,
    mean: float = 1.0,
    root: bool = True,
    own_noise: bool = True,
    together=lambda b: b.prod(0),
    spare: bool = True,
) -> Tensor:
    """The integral with one of its parts changed."""
    sizes = variance.sqrt() if root else variance
    right = mean + sizes[own] * x if own_noise else mean + 0 * x
    beaten = torch.special.ndtr(right / sizes[:, None])
    return together(torch.cat([beaten[:own], beaten[own + 1 :]]) if spare else beaten).mean()


def _apart(variance: Tensor, own: int, x: Tensor) -> Tensor:
    right = 1 + variance[own].sqrt() * x
    beaten = torch.special.ndtr(right / variance.sqrt()[:, None]).mean(1)
    return torch.cat([beaten[:own], beaten[own + 1 :]]).prod()


chance_right = Exercise(
    name="chance_right",
    answer=_chance_right,
    draw=_draw_logits,
    mistakes={
        "the right answer is counted among its own rivals": lambda variance, own, x: _chance(
            variance, own, x, spare=False
        ),
        "the mean of the right logit is missing: it is 1, that of a rival 0": lambda variance, own, x: _chance(
            variance, own, x, mean=0.0
        ),
        "the noise of the right logit is missing": lambda variance, own, x: _chance(variance, own, x, own_noise=False),
        "variances where standard deviations belong: take square roots": lambda variance, own, x: _chance(
            variance, own, x, root=False
        ),
        "a mean over the rivals: all of them must be beaten": lambda variance, own, x: _chance(
            variance, own, x, together=lambda b: b.mean(0)
        ),
        "only the hardest rival is beaten: all of them must be, at once": lambda variance, own, x: _chance(
            variance, own, x, together=lambda b: b.min(0).values
        ),
        "averaged over x for each rival, and multiplied then: all rivals meet the same right logit": _apart,
        "the chance that every rival beats the right answer": lambda variance, own, x: _chance(
            variance, own, x, together=lambda b: (1 - b).prod(0)
        ),
        "the chance to err": lambda variance, own, x: 1 - _chance_right(variance, own, x),
    },
)


# -- cubic_memory


def _draw_mlp(generator: Generator) -> dict:
    n, d, e, m, t = (draw_size(generator, *bounds) for bounds in ((6, 7), (2, 3), (4, 5), (8, 9), (2, 3)))
    U, x = (
        rows / rows.norm(dim=1, keepdim=True) for rows in (draw_normal(generator, n, d), draw_normal(generator, t, d))
    )
    return {"U": U, "V": draw_normal(generator, n, e), "w": draw_normal(generator, m, d), "x": x}


def _mlp(
    U: Tensor, V: Tensor, w: Tensor, x: Tensor, store=lambda s: hermite(s, 3), read=lambda s: hermite(s, 3)
) -> Tensor:
    return read(x @ w.mT) @ (store(U @ w.mT).mT @ V / len(w)) @ V.mT


def _cubic_memory(U: Tensor, V: Tensor, w: Tensor, x: Tensor) -> Tensor:
    def h(s):
        return (s**3 - 3 * s) / 6**0.5

    a = h(U @ w.mT).mT @ V / len(w)
    return h(x @ w.mT) @ a @ V.mT


cubic_memory = Exercise(
    name="cubic_memory",
    answer=_cubic_memory,
    draw=_draw_mlp,
    mistakes={
        "the square root of 6 is missing": lambda U, V, w, x: 6 * _mlp(U, V, w, x),
        "divided by sqrt(6) once in all; each of the two h has one": lambda U, V, w, x: 6**0.5 * _mlp(U, V, w, x),
        "x^3 alone is not orthogonal to x: - 3 x is missing": (
            lambda U, V, w, x: _mlp(U, V, w, x, lambda s: s**3 / 6**0.5, lambda s: s**3 / 6**0.5)
        ),
        "x^3 - x is not orthogonal to x either: - 3 x": (
            lambda U, V, w, x: _mlp(U, V, w, x, *[lambda s: (s**3 - s) / 6**0.5] * 2)
        ),
        "the mean over the units, 1/m, is missing": lambda U, V, w, x: len(w) * _mlp(U, V, w, x),
        "divided by the number of facts; divide by the number of units": lambda U, V, w, x: (
            len(w) / len(U) * _mlp(U, V, w, x)
        ),
        "facts are stored without h: a_i is made of the same hidden units": lambda U, V, w, x: _mlp(
            U, V, w, x, store=lambda s: s
        ),
        "h is missing when it is read": lambda U, V, w, x: _mlp(U, V, w, x, read=lambda s: s),
        "no h at all: that is a linear memory": lambda U, V, w, x: _mlp(U, V, w, x, lambda s: s, lambda s: s),
        "that is the polynomial of degree 2": lambda U, V, w, x: _mlp(U, V, w, x, *[lambda s: (s**2 - 1) / 2**0.5] * 2),
    },
)
