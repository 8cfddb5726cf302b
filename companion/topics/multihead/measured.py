"""What lesson 09 shows of students of parities, and of labels that no layer of two heads gives."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import at_least
from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.multihead.baselines import NotCertifiedError, learn
from companion.topics.multihead.baselines import relative_loss as loss_of_rows
from companion.topics.multihead.data import HOSTILE, Teacher, hostile, parity_teacher, sequences
from companion.topics.multihead.model import MultiHeadConfig
from companion.topics.multihead.recipes import relative_loss

RIGHT = 0.02  # the relative loss on unseen sequences, below which an answer is right


def parity_parts(
    support: int, *, hidden: bool = True, steps: int = 1200, every: int = 20, d: int = 12, seed: int = 0
) -> Float[Tensor, "marks 2"]:
    """What a student has still to learn of a `parity_teacher`, every so many steps: its relative loss on sequences
    whose tokens differ in their first coordinate, where the parity is asked for, and on the others.

    Raises ValueError for a number below 1.

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

    def labelled(config):
        def draw(batch, generator):
            X = sequences(batch, 2, config.d, generator=generator)
            return X, Teacher(layer.thetas.to(X), layer.ws.to(X))(X)

        return draw

    @torch.no_grad()
    def parts(model):
        return torch.stack([relative_loss(model, held[these], layer(held[these])) for these in (asked, ~asked)])

    student = recipe("multihead-student").with_(config=MultiHeadConfig(d, 3 * support), task={}, steps=steps)
    student = replace(student, sampler=labelled)
    _, history = student.train(seed=seed, each=parts, every=every)
    return torch.stack(history.looks)


@measurement(
    "multihead-students-of-parities",
    "what students of a parity of 3 or 5 coordinates have still to learn, and of controls whose heads' signs agree",
    seeds=(0, 1),
    cells=[{"support": support, "signs": signs} for support in (3, 5) for signs in ("alternate", "agree")],
    recipes=lambda scale: [recipe("multihead-student", scale)],
    tolerance=0.1,
    because="while a part is being learned, rounding moves the step by some, and the loss with it",
)
def students_of_parities(seed: int, scale: str, support: int, signs: str) -> list[Row]:
    """Measure, every 20 steps of 1,200, the loss where the parity is asked for and elsewhere."""
    steps = 40 if scale == "smoke" else 1200
    parts = parity_parts(support, hidden=signs == "alternate", steps=steps, every=20, seed=seed)
    return [{"step": 20 * i, "asked": asked, "elsewhere": other} for i, (asked, other) in enumerate(parts.tolist())]


@measurement(
    "multihead-hostile",
    "what `learn` says of 4,000 sequences whose labels no layer of two heads gives: refused, right or wrong",
    seeds=range(10),
    cells=[{"kind": kind} for kind in HOSTILE],
    tolerance=0.0,
    because="it either answers or refuses, far from the bar",
    quick=True,
)
def what_learn_says(seed: int, scale: str, kind: str) -> list[Row]:
    """Judge an answer on a tenth of the sequences, which `learn` has not seen."""
    X, Y = hostile(kind, 2500 if scale == "smoke" else 4000, 2, 12, generator=seed + 80)
    fresh = len(X) // 10
    try:
        report = learn(X[fresh:], Y[fresh:], heads=2)
    except NotCertifiedError:
        return [{"said": "refused"}]
    loss = loss_of_rows(X[:fresh], Y[:fresh], report.thetas, report.ws)
    return [{"said": "right" if loss < RIGHT else "wrong"}]
