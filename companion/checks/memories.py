"""The exercises of lesson 05, associative memory.

Each wrong function under ``mistakes`` is something that people really write; `companion.checks.exercise` uses it to name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.baselines import memories as baselines
from companion.checks.exercise import Exercise, draw_normal, draw_size
from companion.models.constructions.memories import hermite

__all__ = ["cubic_memory", "first_step", "inner_gradient", "memory_gradient", "unseen_mass", "write_memory"]


def _labels(generator: Generator, n: int, m: int) -> Tensor:
    return torch.randint(m, (n,), generator=generator)


# -- write_memory


def _draw_facts(generator: Generator) -> dict:
    n, d, e = draw_size(generator, 5, 8), draw_size(generator, 2, 4), draw_size(generator, 5, 7)
    weights = 0.5 + torch.rand(n, generator=generator, dtype=torch.float64)
    return {"U": draw_normal(generator, n, d), "V": draw_normal(generator, n, e), "answers": _labels(generator, n, n), "weights": weights}


write_memory = Exercise(
    name="write_memory",
    answer=lambda U, V, answers, weights: V[answers].mT @ (weights[:, None] * U),
    draw=_draw_facts,
    mistakes={
        "token z gets row z of V; its answer is row answers[z]": lambda U, V, answers, weights: V.mT @ (weights[:, None] * U),
        "answers picks rows of U; it picks rows of V": lambda U, V, answers, weights: V.mT @ (weights[:, None] * U[answers]),
        "both U and V are picked by answers": lambda U, V, answers, weights: V[answers].mT @ (weights[:, None] * U[answers]),
        "the weights are not used: each outer product has its own": lambda U, V, answers, weights: V[answers].mT @ U,
        "the weights come in twice": lambda U, V, answers, weights: V[answers].mT @ (weights[:, None] ** 2 * U),
        "a mean over the facts; a memory is their sum": lambda U, V, answers, weights: V[answers].mT @ (weights[:, None] * U) / len(U),
        "weights are picked by answers; weights[z] belongs to token z": (
            lambda U, V, answers, weights: V[answers].mT @ (weights[answers][:, None] * U)
        ),
    },
)


# -- memory_gradient


def _draw_loss(generator: Generator) -> dict:
    m, d, e = draw_size(generator, 3, 4), draw_size(generator, 2, 3), draw_size(generator, 4, 5)
    n = m + draw_size(generator, 1, 3)
    p = draw_normal(generator, n * m).softmax(0).view(n, m)
    return {"W": draw_normal(generator, e, d), "U": draw_normal(generator, n, d), "V": draw_normal(generator, m, e), "p": p}


def _outer(V: Tensor, coefficients: Tensor, U: Tensor) -> Tensor:
    return V.mT @ coefficients.mT @ U


def _believed(W: Tensor, U: Tensor, V: Tensor) -> Tensor:
    return (U @ W.mT @ V.mT).softmax(1)


memory_gradient = Exercise(
    name="memory_gradient",
    answer=lambda W, U, V, p: _outer(V, p.sum(1, keepdim=True) * _believed(W, U, V) - p, U),
    draw=_draw_loss,
    mistakes={
        "the sign is flipped: that is the direction of descent": (
            lambda W, U, V, p: _outer(V, p - p.sum(1, keepdim=True) * _believed(W, U, V), U)
        ),
        "the softmax is not weighted by p(z), the sum of row z of p": lambda W, U, V, p: _outer(V, _believed(W, U, V) - p, U),
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
        "what the model believes is missing: that is the gradient's other half alone": lambda W, U, V, p: _outer(V, -p, U),
    },
)


# -- first_step


def _draw_sample(generator: Generator) -> dict:
    s, m, d, e = draw_size(generator, 9, 14), draw_size(generator, 3, 5), draw_size(generator, 2, 4), draw_size(generator, 5, 6)
    X = draw_normal(generator, s, d) + 1  # the mean of the inputs matters
    return {"X": X, "y": _labels(generator, s, m), "V": draw_normal(generator, m, e)}


def _sums(X: Tensor, y: Tensor, V: Tensor) -> Tensor:
    """p(k) mu_k for every answer k: (m, d)."""
    return (y == torch.arange(len(V), device=y.device)[:, None]).to(X) @ X / len(X)


def _means(X: Tensor, y: Tensor, V: Tensor) -> Tensor:
    share = (y == torch.arange(len(V), device=y.device)[:, None]).to(X).mean(1, keepdim=True)
    return torch.where(share > 0, _sums(X, y, V) / share.clamp_min(1e-300), 0)


first_step = Exercise(
    name="first_step",
    answer=lambda X, y, V: V.mT @ (_sums(X, y, V) - X.mean(0) / len(V)),
    draw=_draw_sample,
    mistakes={
        "the mean input is not taken away: at W = 0 the model believes every answer": lambda X, y, V: V.mT @ _sums(X, y, V),
        "the mean input is taken away whole; each of the m answers is believed with probability 1/m": (
            lambda X, y, V: V.mT @ (_sums(X, y, V) - X.mean(0))
        ),
        "a sum over the sample; the loss is a mean": lambda X, y, V: len(X) * V.mT @ (_sums(X, y, V) - X.mean(0) / len(V)),
        "the sign is flipped: a step goes against the gradient": lambda X, y, V: -V.mT @ (_sums(X, y, V) - X.mean(0) / len(V)),
        "class means are not weighted by p(k): rare answers count as much as frequent ones": (
            lambda X, y, V: V.mT @ (_means(X, y, V) - X.mean(0)) / len(V)
        ),
        "only the inputs are centred": lambda X, y, V: V.mT @ _sums(X - X.mean(0), y, V),
    },
)


# -- cubic_memory


def _draw_mlp(generator: Generator) -> dict:
    n, d, e, m, t = (draw_size(generator, *bounds) for bounds in ((6, 7), (2, 3), (4, 5), (8, 9), (2, 3)))
    U, x = (rows / rows.norm(dim=1, keepdim=True) for rows in (draw_normal(generator, n, d), draw_normal(generator, t, d)))
    return {"U": U, "V": draw_normal(generator, n, e), "w": draw_normal(generator, m, d), "x": x}


def _mlp(U: Tensor, V: Tensor, w: Tensor, x: Tensor, store=lambda s: hermite(s, 3), read=lambda s: hermite(s, 3)) -> Tensor:
    return read(x @ w.mT) @ (store(U @ w.mT).mT @ V / len(w)) @ V.mT


cubic_memory = Exercise(
    name="cubic_memory",
    answer=_mlp,
    draw=_draw_mlp,
    mistakes={
        "the square root of 6 is missing": lambda U, V, w, x: 6 * _mlp(U, V, w, x),
        "divided by sqrt(6) once in all; each of the two h has one": lambda U, V, w, x: 6**0.5 * _mlp(U, V, w, x),
        "x^3 alone is not orthogonal to x: - 3 x is missing": (
            lambda U, V, w, x: _mlp(U, V, w, x, lambda s: s**3 / 6**0.5, lambda s: s**3 / 6**0.5)
        ),
        "the mean over the units, 1/m, is missing": lambda U, V, w, x: len(w) * _mlp(U, V, w, x),
        "divided by the number of facts; divide by the number of units": lambda U, V, w, x: len(w) / len(U) * _mlp(U, V, w, x),
        "facts are stored without h: a_i is made of the same hidden units": lambda U, V, w, x: _mlp(U, V, w, x, store=lambda s: s),
        "h is missing when it is read": lambda U, V, w, x: _mlp(U, V, w, x, read=lambda s: s),
        "no h at all: that is a linear memory": lambda U, V, w, x: _mlp(U, V, w, x, lambda s: s, lambda s: s),
        "that is the polynomial of degree 2": lambda U, V, w, x: _mlp(U, V, w, x, *[lambda s: (s**2 - 1) / 2**0.5] * 2),
    },
)


# -- unseen_mass


def _draw_tokens(generator: Generator) -> dict:
    return {"p": draw_normal(generator, draw_size(generator, 4, 9)).softmax(0), "n": draw_size(generator, 2, 6)}


unseen_mass = Exercise(
    name="unseen_mass",
    answer=baselines.unseen_mass,
    draw=_draw_tokens,
    mistakes={
        "the number of unseen tokens; each counts with its probability": lambda p, n: ((1 - p) ** n).sum(),
        "the mass that has been seen": lambda p, n: (p * (1 - (1 - p) ** n)).sum(),
        "that is the chance to see the same token every time": lambda p, n: (p * p**n).sum(),
        "1 - p^n: a token is unseen if each of n draws misses it, (1 - p)^n": lambda p, n: (p * (1 - p**n)).sum(),
        "one draw too few: there are n": lambda p, n: (p * (1 - p) ** (n - 1)).sum(),
        "one draw too many: there are n": lambda p, n: (p * (1 - p) ** (n + 1)).sum(),
        "a mean over tokens; it is a sum": lambda p, n: (p * (1 - p) ** n).mean(),
        "exp(-n p) is an approximation for small p; (1 - p)^n is exact": lambda p, n: (p * (-n * p).exp()).sum(),
        "1 - n p is only the start of (1 - p)^n": lambda p, n: (p * (1 - n * p)).sum(),
    },
)


# -- inner_gradient


def _draw_network(generator: Generator) -> dict:
    s, m, d, h = (draw_size(generator, *bounds) for bounds in ((6, 9), (3, 4), (2, 3), (5, 7)))
    X = draw_normal(generator, s, d)
    return {"W1": draw_normal(generator, h, d), "W2": draw_normal(generator, m, h), "X": X, "y": _labels(generator, s, m)}


def _inner(W1: Tensor, W2: Tensor, X: Tensor, y: Tensor, *, gate: bool = True, sign: float = -1.0, believe: bool = True) -> Tensor:
    a = X @ W1.mT
    p = (a.relu() @ W2.mT).softmax(1) if believe else 0.0
    truth = (y[:, None] == torch.arange(len(W2), device=y.device)).to(X)
    backward = (p + sign * truth) @ W2
    return (backward * (a > 0) if gate else backward).mT @ X / len(X)


def _of_hidden(W1: Tensor, W2: Tensor, X: Tensor, y: Tensor) -> Tensor:
    """The softmax of a network without its ReLU, with the ReLU's gate."""
    a = X @ W1.mT
    truth = (y[:, None] == torch.arange(len(W2), device=y.device)).to(X)
    return ((((a @ W2.mT).softmax(1) - truth) @ W2) * (a > 0)).mT @ X / len(X)


inner_gradient = Exercise(
    name="inner_gradient",
    answer=_inner,
    draw=_draw_network,
    mistakes={
        "the gate of the ReLU is missing: where a hidden unit is off, nothing comes back": (
            lambda W1, W2, X, y: _inner(W1, W2, X, y, gate=False)
        ),
        "the sign is flipped: that is the direction of descent": lambda W1, W2, X, y: -_inner(W1, W2, X, y),
        "a sum over the examples; the loss is a mean": lambda W1, W2, X, y: len(X) * _inner(W1, W2, X, y),
        "the right answer is not taken away from the softmax": lambda W1, W2, X, y: _inner(W1, W2, X, y, sign=0.0),
        "the softmax is missing: only the right answers come back": lambda W1, W2, X, y: _inner(W1, W2, X, y, believe=False),
        "the logits are computed without the ReLU": _of_hidden,
        "divided by the number of examples twice": lambda W1, W2, X, y: _inner(W1, W2, X, y) / len(X),
    },
)
