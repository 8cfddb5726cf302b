"""The student of lesson 09: gradient descent on the layer that the algorithm learns without it."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from companion.arguments import at_least
from companion.models.multihead import MultiHead, MultiHeadConfig
from companion.recipes import recipe, register
from companion.samplers.multihead import Teacher, parity_teacher, sequences, teacher
from companion.training import Schedule


def relative_loss(model, X, Y):
    """Square loss over that of answering 0, |model(X) - Y|^2 / |Y|^2, for ``X`` and ``Y`` (batch, k, d)."""
    return (model(X) - Y).square().sum() / Y.square().sum()


def taught(config: MultiHeadConfig, k: int):
    """Sequences of ``k`` tokens, and a random teacher's answers."""

    def draw(batch, generator):
        X = sequences(batch, k, config.d, generator=generator)
        thetas, ws = teacher(config.d, config.heads, sharpness=2.0, generator=1234)
        return X, Teacher(thetas.to(X), ws.to(X))(X)

    return draw


register(
    "multihead-student",
    "a student of a random teacher, by Adam (lesson 09)",
    model=MultiHead,
    sampler=taught,
    loss=relative_loss,
    needs_float64=True,
    smoke=(MultiHeadConfig(6, 2), Schedule(steps=60, batch=64, lr=2e-2, warmup=5), {"k": 2}),
    course=(MultiHeadConfig(12, 2), Schedule(steps=1500, batch=256, lr=2e-2, warmup=20), {"k": 2}),
    paper=(MultiHeadConfig(64, 4), Schedule(steps=20_000, batch=1024, lr=5e-3, warmup=200), {"k": 4}),
)


def parity_parts(
    support: int, *, hidden: bool = True, steps: int = 1200, every: int = 20, d: int = 12, seed: int = 0
) -> Float[Tensor, "marks 2"]:
    """What a student has still to learn of a `parity_teacher`, every so many steps: its relative loss on sequences
    whose tokens differ in their first coordinate, where the parity is asked for, and on the others.

    What lesson 09 draws is in published/students_of_parities.csv. Raises ValueError for a number below 1.

    ``support``: how many coordinates the parity is of; the student has three times as many heads.
    ``hidden``: whether the heads' signs alternate, which makes the parity; if not, all W_i have the same sign.
    ``steps``, ``every``: of Adam, on 256 fresh sequences each; and from one measurement to the next.
    ``d``: dimensions of a token.
    ``seed``: of the student and its sequences.
    """
    at_least(support=(support, 1), steps=(steps, 1), every=(every, 1), d=(d, support + 1))
    layer = parity_teacher(d, support)
    if not hidden:
        layer = Teacher(layer.thetas, layer.ws.abs())
    held = sequences(2000, 2, d, generator=10_000 + seed)
    asked = held[:, 0, 0] != held[:, 1, 0]

    def draw(batch, generator):
        X = sequences(batch, 2, d, generator=generator)
        return X, Teacher(layer.thetas.to(X), layer.ws.to(X))(X)

    @torch.no_grad()
    def parts(model):
        return torch.stack([relative_loss(model, held[these], layer(held[these])) for these in (asked, ~asked)])

    course, config = recipe("multihead-student"), MultiHeadConfig(d, 3 * support)
    schedule = replace(course.schedule, steps=steps)
    student = replace(course, build=lambda: MultiHead(config), draw=draw, schedule=schedule)
    _, history = student.train(seed=seed, each=parts, every=every)
    return torch.stack(history.looks)
