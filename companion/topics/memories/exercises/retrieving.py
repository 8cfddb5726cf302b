"""The exercises on retrieving from a memory: Hopfield's network, attention, and tokens that attend to each other.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

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
