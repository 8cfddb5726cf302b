"""Exercises of lesson 03 on states that are matrices: recursive least squares, and a memory of keys and values."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["delta_write", "recall", "rls_states", "rls_update"]


# -- rls_update


def _draw_inverse(generator: Generator) -> dict:
    d = draw_size(generator, 2, 6)
    x = draw_normal(generator, 2 * d, d)
    return {"P": torch.linalg.inv(x.T @ x / d + 0.2 * torch.eye(d, dtype=x.dtype)), "x": draw_normal(generator, d)}


def _rls_update(P: Tensor, x: Tensor) -> Tensor:
    return P - torch.outer(P @ x, P @ x) / (1 + x @ (P @ x))


rls_update = Exercise(
    name="rls_update",
    answer=_rls_update,
    draw=_draw_inverse,
    mistakes={
        "the correction is added; an inverse shrinks when its matrix grows": (
            lambda P, x: P + torch.outer(P @ x, P @ x) / (1 + x @ P @ x)
        ),
        "the denominator is 1 + x . P x; the 1 is missing": lambda P, x: P - torch.outer(P @ x, P @ x) / (x @ P @ x),
        "the denominator is 1 + x . P x; here it is 1 + x . x": lambda P, x: (
            P - torch.outer(P @ x, P @ x) / (1 + x @ x)
        ),
        "the correction is not divided by 1 + x . P x": lambda P, x: P - torch.outer(P @ x, P @ x),
        "the outer product is of P x with itself; here it is of x": lambda P, x: (
            P - torch.outer(x, x) / (1 + x @ P @ x)
        ),
        "the outer product is of P x with itself; here one of the two is x": lambda P, x: (
            P - torch.outer(P @ x, x) / (1 + x @ P @ x)
        ),
        "adds x x^T to P; that updates S, and P is its inverse": lambda P, x: P + torch.outer(x, x),
        "P x times P x is a number there: use torch.outer, or a column times a row": (
            lambda P, x: P - (P @ x) @ (P @ x) / (1 + x @ P @ x)
        ),
    },
)


# -- rls_states


def _draw_prompt(generator: Generator) -> dict:
    n, d = draw_size(generator, 3, 6), draw_size(generator, 2, 4)
    return {
        "X": draw_normal(generator, n, d),
        "y": 2 * draw_normal(generator, n),
        "ridge": float(0.2 + torch.rand((), generator=generator)),
    }


def _rls_states(X: Tensor, y: Tensor, ridge: float) -> Tensor:
    w = torch.zeros_like(X[0])
    P = torch.ones_like(w).diag() / ridge
    states = []
    for x, label in zip(X, y, strict=True):
        Px = P @ x
        P = P - torch.outer(Px, Px) / (1 + x @ Px)
        w = w + P @ x * (label - w @ x)
        states.append(torch.cat([w, P.flatten()]))
    return torch.stack(states)


def _states(step, start=lambda ridge: 1 / ridge, shown=lambda w, P: torch.cat([w, P.flatten()]), late: bool = False):
    """The recursion with another step ``(w, P, P_new, x, label) -> w``, start, row, or rows one too early."""

    def solve(X, y, ridge):
        d = X.shape[1]
        P, w, rows = start(ridge) * torch.eye(d, dtype=X.dtype), torch.zeros(d, dtype=X.dtype), []
        for x, label in zip(X, y, strict=True):
            if late:
                rows.append(shown(w, P))
            P_new = _rls_update(P, x)
            w, P = step(w, P, P_new, x, label), P_new
            if not late:
                rows.append(shown(w, P))
        return torch.stack(rows)

    return solve


def _right_step(w, _, P_new, x, label):
    return w + P_new @ x * (label - w @ x)


rls_states = Exercise(
    name="rls_states",
    answer=_rls_states,
    draw=_draw_prompt,
    mistakes={
        "P starts as ridge times the identity; it is an inverse, so divide by the ridge": _states(
            _right_step, start=lambda ridge: ridge
        ),
        "P starts as the identity: the argument ridge is not used": _states(_right_step, start=lambda ridge: 1.0),
        "w moves along the old P x, without a denominator; use the new P, or divide by 1 + x . P x": _states(
            lambda w, P, P_new, x, label: w + P @ x * (label - w @ x)
        ),
        "w moves along x: P is kept and never used for w": _states(
            lambda w, P, P_new, x, label: w + x * (label - w @ x)
        ),
        "the residual is label - w . x; here w moves towards the label alone": _states(
            lambda w, P, P_new, x, label: w + P_new @ x * label
        ),
        "the step goes uphill: label - w . x is added": _states(
            lambda w, P, P_new, x, label: w - P_new @ x * (label - w @ x)
        ),
        "each row is the state before its example; the state after it is asked for": _states(_right_step, late=True),
        "P comes first; a row begins with w": _states(_right_step, shown=lambda w, P: torch.cat([P.flatten(), w])),
        "P moves, w stays 0": _states(lambda w, P, P_new, x, label: w),
    },
)


# -- delta_write


def _draw_memory(generator: Generator) -> dict:
    h = draw_size(generator, 2, 6)
    return {
        "S": draw_normal(generator, h, h),
        "k": F.normalize(draw_normal(generator, h), dim=0),
        "v": draw_normal(generator, h),
        "strength": float(0.2 + 0.6 * torch.rand((), generator=generator)),
    }


def _delta_write(S: Tensor, k: Tensor, v: Tensor, strength: float) -> Tensor:
    return S + strength * torch.outer(v - S @ k, k)


delta_write = Exercise(
    name="delta_write",
    answer=_delta_write,
    draw=_draw_memory,
    mistakes={
        "the old value is not erased: S k must be subtracted from v (what you have is linear attention)": (
            lambda S, k, v, strength: S + strength * torch.outer(v, k)
        ),
        "everything fades: only what S holds for this key may change (what you have is a forget gate)": (
            lambda S, k, v, strength: (1 - strength) * S + strength * torch.outer(v, k)
        ),
        "the outer product is the wrong way round: values index rows, keys index columns": (
            lambda S, k, v, strength: S + strength * torch.outer(k, v - S @ k)
        ),
        "reads with S^T k; the value that S holds for a key is S k": lambda S, k, v, strength: (
            S + strength * torch.outer(v - S.T @ k, k)
        ),
        "the strength multiplies the new value alone; it multiplies the whole correction v - S k": (
            lambda S, k, v, strength: S + torch.outer(strength * v - S @ k, k)
        ),
        "the strength multiplies the old value alone; it multiplies the whole correction v - S k": (
            lambda S, k, v, strength: S + torch.outer(v - strength * (S @ k), k)
        ),
        "the correction is subtracted; it must be added": lambda S, k, v, strength: (
            S - strength * torch.outer(v - S @ k, k)
        ),
        "the write has full strength: the argument strength is not used": lambda S, k, v, strength: (
            S + torch.outer(v - S @ k, k)
        ),
    },
)


# -- recall


def _draw_pairs(generator: Generator) -> dict:
    m, h = draw_size(generator, 3, 6), draw_size(generator, 3, 5)
    return {
        "keys": F.normalize(draw_normal(generator, m, h), dim=1),
        "values": draw_normal(generator, m, h),
        "erase": float(0.3 + 0.6 * torch.rand((), generator=generator)),
    }


def _stored(keys: Tensor, values: Tensor, erase: float) -> Tensor:
    S = torch.zeros(values.shape[1], keys.shape[1], dtype=keys.dtype)
    for k, v in zip(keys, values, strict=True):
        S = S + torch.outer(v - erase * (S @ k), k)
    return S


def _off(read: Tensor, values: Tensor) -> Tensor:
    return (read - values).square().sum(1) / values.square().sum(1)


def _read_at_once(keys: Tensor, values: Tensor, erase: float) -> Tensor:
    return torch.cat(
        [
            _off((_stored(keys[:i], values[:i], erase) @ keys[i - 1])[None], values[i - 1 : i])
            for i in range(1, 1 + len(keys))
        ]
    )


def _recall(keys: Tensor, values: Tensor, erase: float) -> Tensor:
    S = keys.new_zeros(values.shape[1], keys.shape[1])
    for k, v in zip(keys, values, strict=True):
        S = S + torch.outer(v - erase * (S @ k), k)
    off = keys @ S.mT - values
    return off.square().sum(1) / values.square().sum(1)


recall = Exercise(
    name="recall",
    answer=_recall,
    draw=_draw_pairs,
    mistakes={
        "nothing is erased: the argument erase is not used": lambda keys, values, erase: _recall(keys, values, 0.0),
        "all is erased: the argument erase is not used": lambda keys, values, erase: _recall(keys, values, 1.0),
        "the whole of S fades; only what S holds for this key may change": lambda keys, values, erase: _off(
            keys
            @ sum((1 - erase) ** (len(keys) - 1 - i) * torch.outer(values[i], keys[i]) for i in range(len(keys))).mT,
            values,
        ),
        "erase multiplies the new value; it multiplies what is taken away": lambda keys, values, erase: _off(
            keys @ _stored(keys, erase * values, 1.0).mT, values
        ),
        "reads with S^T: what S holds for a key k is S k": lambda keys, values, erase: _off(
            keys @ _stored(keys, values, erase), values
        ),
        "each pair is asked for as soon as it is written; ask after the last": _read_at_once,
        "the error is not divided by the value's squared length": lambda keys, values, erase: (
            (keys @ _stored(keys, values, erase).mT - values).square().sum(1)
        ),
        "divides by the mean squared length of all values; each has its own": lambda keys, values, erase: (
            (keys @ _stored(keys, values, erase).mT - values).square().sum(1) / values.square().sum(1).mean()
        ),
        "a ratio of lengths; of squared lengths is asked for": lambda keys, values, erase: _recall(
            keys, values, erase
        ).sqrt(),
    },
)
