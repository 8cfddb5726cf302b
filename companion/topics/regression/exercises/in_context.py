"""The exercises of lesson 02, in-context regression.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size
from companion.topics.regression.model import InContextRegressor, RegressorConfig

__all__ = [
    "gd_closed_form",
    "newton_layer",
    "newton_step",
    "triplet_tokens",
]


def _draw_prompt(generator: Generator) -> dict:
    batch, n, d = draw_size(generator, 2, 4), draw_size(generator, 4, 7), draw_size(generator, 2, 5)
    return {"xs": draw_normal(generator, batch, n, d), "ys": draw_normal(generator, batch, n)}


# -- triplet_tokens


def _triplets(xs: Tensor, ys: Tensor) -> Tensor:
    batch, n, d = xs.shape
    return InContextRegressor(RegressorConfig(d=d, n=n, width=1, layers=1, heads=1)).tokens(xs, ys)


def _tokens_from(before_x: Tensor, before_y: Tensor, xs: Tensor) -> Tensor:
    return torch.cat([before_x, before_y[..., None], xs], dim=-1)


def _shift(values: Tensor, by: int = 1) -> Tensor:
    """Each position gets what stood ``by`` places before it, or 0."""
    return torch.cat([torch.zeros_like(values[:, :by]), values[:, :-by]], dim=1)


def _triplet_tokens(xs: Tensor, ys: Tensor) -> Tensor:
    examples = torch.cat([xs, ys[..., None]], dim=-1)
    before = torch.cat([torch.zeros_like(examples[:, :1]), examples[:, :-1]], dim=1)
    return torch.cat([before, xs], dim=-1)


triplet_tokens = Exercise(
    name="triplet_tokens",
    answer=_triplet_tokens,
    draw=_draw_prompt,
    mistakes={
        "token t holds y_t, the label that it must predict: the answer leaks. Use the example before, t - 1": (
            lambda xs, ys: _tokens_from(_shift(xs), ys, xs)
        ),
        "token t holds its own example (x_t, y_t): shift the examples by one place": lambda xs, ys: _tokens_from(
            xs, ys, xs
        ),
        "the first token holds the last example: torch.roll wraps around; the first token has no example "
        "before it, so zeros": (lambda xs, ys: _tokens_from(xs.roll(1, dims=1), ys.roll(1, dims=1), xs)),
        "the examples are shifted by two places, not one": lambda xs, ys: _tokens_from(
            _shift(xs, 2), _shift(ys, 2), xs
        ),
        "the shift goes the wrong way: token t holds example t + 1, which lies in the future": lambda xs, ys: (
            _tokens_from(_shift(xs.flip(1)).flip(1), _shift(ys.flip(1)).flip(1), xs)
        ),
        "the order within a token is [x_{t-1}, y_{t-1}, x_t]; here x_t comes first": (
            lambda xs, ys: torch.cat([xs, _shift(xs), _shift(ys)[..., None]], dim=-1)
        ),
        "the order within a token is [x_{t-1}, y_{t-1}, x_t]; here y_{t-1} comes last": (
            lambda xs, ys: torch.cat([_shift(xs), xs, _shift(ys)[..., None]], dim=-1)
        ),
        "the order within a token is [x_{t-1}, y_{t-1}, x_t]; here y_{t-1} comes first": (
            lambda xs, ys: torch.cat([_shift(ys)[..., None], _shift(xs), xs], dim=-1)
        ),
        "the last part of token t is x_t itself, the question; here it is shifted, too": (
            lambda xs, ys: _tokens_from(_shift(xs), _shift(ys), _shift(xs))
        ),
        "the first token holds its own example, label included; it has no example before it, so zeros": (
            lambda xs, ys: _tokens_from(
                torch.cat([xs[:, :1], xs[:, :-1]], 1), torch.cat([ys[:, :1], ys[:, :-1]], 1), xs
            )
        ),
        "the labels are shifted but the inputs beside them are not: x_{t-1} belongs to y_{t-1}": (
            lambda xs, ys: _tokens_from(xs, _shift(ys), xs)
        ),
        "the examples are shifted along the batch; the position is dimension 1": lambda xs, ys: _tokens_from(
            torch.cat([torch.zeros_like(xs[:1]), xs[:-1]]), torch.cat([torch.zeros_like(ys[:1]), ys[:-1]]), xs
        ),
    },
)


# -- newton_step


def _draw_newton(generator: Generator) -> dict:
    d = draw_size(generator, 2, 6)
    x = draw_normal(generator, 2 * d, d)
    S = x.T @ x
    return {
        "M": torch.linalg.inv(S + 0.3 * d * torch.eye(d, dtype=S.dtype)) + 0.01 * draw_normal(generator, d, d),
        "S": S,
    }


def _newton_twice(M: Tensor, S: Tensor) -> Tensor:
    M = 2 * M - M @ S @ M
    return 2 * M - M @ S @ M


def _newton_step(M: Tensor, S: Tensor) -> Tensor:
    return 2 * M - M @ S @ M


newton_step = Exercise(
    name="newton_step",
    answer=_newton_step,
    draw=_draw_newton,
    mistakes={
        "the factor 2 is missing: M S M is subtracted from 2 M, not from M": lambda M, S: M - M @ S @ M,
        "M S M is added; it must be subtracted": lambda M, S: 2 * M + M @ S @ M,
        "S M S is subtracted; it is S that stands in the middle: M S M": lambda M, S: 2 * M - S @ M @ S,
        "only one M: the product has three factors, M S M": lambda M, S: 2 * M - M @ S,
        "only one M: the product has three factors, M S M (not S M)": lambda M, S: 2 * M - S @ M,
        "`*` multiplies entry by entry; matrices are multiplied by `@`": lambda M, S: 2 * M - M * S * M,
        "the second product is entry by entry: `*` where `@` belongs": lambda M, S: 2 * M - (M @ S) * M,
        "the first product is entry by entry: `*` where `@` belongs": lambda M, S: 2 * M - (M * S) @ M,
        "S must stand in the middle, M S M; here it comes last: M M S": lambda M, S: 2 * M - M @ M @ S,
        "S must stand in the middle, M S M; here it comes first: S M M": lambda M, S: 2 * M - S @ M @ M,
        "the factor 2 belongs to M alone, not to M S M": lambda M, S: 2 * (M - M @ S @ M),
        "the error I - S M is added as it is; M times the error must be added": lambda M, S: (
            M + torch.eye(len(S)).to(S) - S @ M
        ),
        "2 I - S M is the error, not yet the update: multiply by M": lambda M, S: 2 * torch.eye(len(S)).to(S) - S @ M,
        "this is the answer after two steps; make one": _newton_twice,
        "this is where the iteration ends, the inverse of S; make one step towards it": lambda M, S: torch.linalg.inv(
            S
        ),
        "the last factor is transposed; M need not be symmetric": lambda M, S: 2 * M - M @ S @ M.mT,
        "the two are swapped: S is updated as if it were M": lambda M, S: 2 * S - S @ M @ S,
    },
)


# -- gd_closed_form


def _draw_gd(generator: Generator) -> dict:
    d = draw_size(generator, 2, 6)
    x = draw_normal(generator, 3 * d, d)
    S = x.T @ x
    lr = float(0.05 / torch.linalg.eigvalsh(S)[-1])
    # at least 3: of 2 steps, one too few is just one; at most 7: not even 2^steps steps must arrive
    steps = draw_size(generator, 3, 7)
    return {"S": S, "b": S @ draw_normal(generator, d), "lr": lr, "steps": steps}


def _gd(S: Tensor, b: Tensor, lr: float, steps: int) -> Tensor:
    eigenvalues, V = torch.linalg.eigh(S)
    return V @ ((1 - (1 - lr * eigenvalues).pow(steps)) / eigenvalues * (V.mT @ b))


def _gd_wrong(share, rotate_in: bool = True, rotate_out: bool = True):
    """`_gd` with another share of each direction, or with one of its two rotations left out."""

    def wrong(S: Tensor, b: Tensor, lr: float, steps: int) -> Tensor:
        eigenvalues, V = torch.linalg.eigh(S)
        solved = share(eigenvalues, lr, steps) * (V.mT @ b if rotate_in else b)
        return V @ solved if rotate_out else solved

    return wrong


def _share(e: Tensor, lr: float, steps: float) -> Tensor:
    return (1 - (1 - lr * e).pow(steps)) / e


def _exchanged(V: Tensor, eigenvalues: Tensor, b: Tensor, lr: float, steps: int) -> Tensor:
    return V @ (_share(eigenvalues, lr, steps) * (V @ b))


def _gd_closed_form(S: Tensor, b: Tensor, lr: float, steps: int) -> Tensor:
    eigenvalues, V = torch.linalg.eigh(S)
    share = 1 - (1 - lr * eigenvalues) ** steps
    return V @ (share / eigenvalues * (V.mT @ b))


gd_closed_form = Exercise(
    name="gd_closed_form",
    answer=_gd_closed_form,
    draw=_draw_gd,
    mistakes={
        "one step too many: from w = 0, the power is `steps`": _gd_wrong(lambda e, lr, s: _share(e, lr, s + 1)),
        "one step too few: from w = 0, the power is `steps`": _gd_wrong(lambda e, lr, s: _share(e, lr, s - 1)),
        "eigh returns the eigenvalues first and V second; here they are exchanged": lambda S, b, lr, steps: _exchanged(
            *torch.linalg.eigh(S), b, lr, steps
        ),
        "this is the answer after one step: is the `return` inside the loop?": _gd_wrong(lambda e, lr, s: lr + 0 * e),
        "e^(-lr lambda steps) is what infinitely small steps leave; each of these leaves the factor 1 - lr lambda": (
            _gd_wrong(lambda e, lr, s: (1 - torch.exp(-lr * e * s)) / e)
        ),
        "each direction must be divided by its eigenvalue: b = S w has it once too often": _gd_wrong(
            lambda e, lr, s: e * _share(e, lr, s)
        ),
        "this is what is left to do, (1 - lr lambda)^steps; the share that is done is 1 minus that": (
            _gd_wrong(lambda e, lr, s: (1 - lr * e).pow(s) / e)
        ),
        "the answer is still in the eigenbasis: rotate back with V": _gd_wrong(_share, rotate_out=False),
        "b was not rotated into the eigenbasis: V^T b": _gd_wrong(_share, rotate_in=False),
        "V and V^T are swapped: eigh gives S = V diag(lambda) V^T, so V^T goes in and "
        "V comes back": lambda S, b, lr, steps: (
            torch.linalg.eigh(S)[1].mT @ (_share(torch.linalg.eigh(S)[0], lr, steps) * (torch.linalg.eigh(S)[1] @ b))
        ),
        "this is where gradient descent ends, S^-1 b; the number of steps must matter": _gd_wrong(
            lambda e, lr, s: 1 / e
        ),
        "the power and the product are exchanged: (1 - lr lambda)^steps, not 1 - lr lambda steps": _gd_wrong(
            lambda e, lr, s: lr * s + 0 * e
        ),
        "the power belongs to the whole bracket: (1 - lr lambda)^steps, not 1 - lr lambda^steps": (
            _gd_wrong(lambda e, lr, s: (lr * e.pow(s)) / e)
        ),
        "the steps go uphill: each subtracts lr times the gradient, so the bracket is 1 - lr lambda": (
            _gd_wrong(lambda e, lr, s: (1 - (1 + lr * e).pow(s)) / e)
        ),
        "this is Iterative Newton's share, with the power 2^steps; gradient descent's power is `steps`": (
            _gd_wrong(lambda e, lr, s: (1 - (1 - lr * e).pow(2.0**s)) / e)
        ),
        "the gradient of |X w - y|^2 / 2 is S w - b, without a factor 2": _gd_wrong(
            lambda e, lr, s: _share(e, 2 * lr, s)
        ),
        "the gradient is not divided by the number of dimensions or examples": lambda S, b, lr, steps: _gd(
            S, b, lr / len(b), steps
        ),
    },
    tolerance=1e-8,
)


# -- newton_layer


def _draw_layer(generator: Generator) -> dict:
    # d = 4 would hide sqrt(d) behind another factor of 2
    n, d = draw_size(generator, 6, 9), (2, 3, 5)[draw_size(generator, 0, 2)]
    x = draw_normal(generator, n, d)
    return {"a": 0.5 * x @ draw_normal(generator, d, d), "b": x}


def _layer(a: Tensor, b: Tensor) -> Tensor:
    return 2 * (a - (a @ b.mT) @ a / 2)


def _heads(a: Tensor, b: Tensor, second_value: float, factor: float = -0.5) -> Tensor:
    scores = factor * a @ b.mT
    return torch.relu(scores) @ a + torch.relu(-scores) @ (second_value * a)


def _newton_layer(a: Tensor, b: Tensor) -> Tensor:
    scores = -0.5 * a @ b.mT
    attended = torch.relu(scores) @ a + torch.relu(-scores) @ (-a)
    return 2 * (a + attended)


newton_layer = Exercise(
    name="newton_layer",
    answer=_newton_layer,
    draw=_draw_layer,
    mistakes={
        "both heads have the value +a, as printed: relu(s) + relu(-s) = |s|. The second head's value must be -a": (
            lambda a, b: 2 * (a + _heads(a, b, +1))
        ),
        "only the head with relu(s) is there; negative scores are lost. Add the head with relu(-s) and value -a": (
            lambda a, b: 2 * (a + torch.relu(-0.5 * a @ b.mT) @ a)
        ),
        "attention adds nothing: both heads have the same scores, and cancel. The second head's "
        "are relu(-s)": lambda a, b: 2 * a,
        "the scores are divided by sqrt(d); this construction does not scale them": lambda a, b: (
            2 * (a + _heads(a, b, -1, factor=-0.5 / a.shape[1] ** 0.5))
        ),
        "the scores are masked; this attention is full, every token sees all": lambda a, b: (
            2 * (a - 0.5 * (a @ b.mT).tril() @ a)
        ),
        "the scores have the wrong sign: they are -1/2 times a_i . b_j": lambda a, b: (
            2 * (a + _heads(a, b, -1, factor=0.5))
        ),
        "the factor 1/2 of the scores is missing: the MLP doubles what attention adds, too": lambda a, b: (
            2 * (a + _heads(a, b, -1, factor=-1))
        ),
        "the MLP is missing: block a is doubled after attention": lambda a, b: a + _heads(a, b, -1),
        "attention's output replaces the stream; a layer adds to it": lambda a, b: 2 * _heads(a, b, -1),
        "only the stream is doubled, not what attention added to it: the MLP comes after": lambda a, b: (
            2 * a + _heads(a, b, -1)
        ),
        "the values are b; what is summed up is a_j = M x_j": lambda a, b: 2 * (a - 0.5 * (a @ b.mT) @ b),
        "the scores compare a with a; query a_i and key b_j (or the other way round) belong together": lambda a, b: (
            2 * (a - 0.5 * (a @ a.mT) @ a)
        ),
        "the scores compare b with b; query a_i and key b_j belong together": lambda a, b: (
            2 * (a - 0.5 * (b @ b.mT) @ a)
        ),
        "the score of token i on token j is a_i . b_j; yours is b_i . a_j, the transpose": lambda a, b: (
            2 * (a - 0.5 * (b @ a.mT) @ a)
        ),
        "the attention is a softmax; this construction uses relu, without normalisation over the tokens": lambda a, b: (
            2 * (a + torch.softmax(-0.5 * a @ b.mT, -1) @ a)
        ),
        "the sum over tokens is divided by their number": lambda a, b: 2 * (a - 0.5 * (a @ b.mT) @ a / len(a)),
    },
)
