"""What lesson 09 shows of students of parities, of more teachers and heads, and of labels that no layer gives."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.arguments import at_least
from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.multihead.baselines import NotCertifiedError, learn
from companion.topics.multihead.data import HOSTILE, Teacher, hostile, parity_teacher, sequences, teacher, with_noise
from companion.topics.multihead.model import MultiHead, MultiHeadConfig, relative_loss

RIGHT = 0.02  # the relative loss on unseen sequences, below which an answer is right


ARMS = ("a parity", "signs agree", "told where to look", "a coin")


def parity_parts(
    support: int, *, arm: str = "a parity", steps: int = 1200, every: int = 20, d: int = 12, seed: int = 0
) -> Float[Tensor, "marks 2"]:
    """What a student has still to learn of a `parity_teacher`, every so many steps: its relative loss on sequences
    whose tokens differ in their first coordinate, where the parity is asked for, and on the others.

    Raises ValueError for a number below 1, and for another arm, naming what there is.

    ``support``: how many coordinates the parity is of; the student has three times as many heads.
    ``arm``: what is taught, and to whom. "a parity"; "signs agree", the same heads with all W_i of one sign, so that
        there is no parity; "told where to look", the parity, but the student begins with the teacher's Theta_i in a
        third of its heads, and what is left for it is a linear fit; "a coin", as told, but for the sign of the
        answer where the parity is asked for, which is drawn anew each time, so that nobody can learn it.
    ``steps``, ``every``: of Adam, on 256 fresh sequences each; and from one measurement to the next.
    ``d``: dimensions of a token.
    ``seed``: of the student and its sequences.
    """
    at_least(support=(support, 1), steps=(steps, 1), every=(every, 1), d=(d, support + 1))
    if arm not in ARMS:
        raise ValueError(f"arm = {arm!r}: must be one of {', '.join(ARMS)}")
    layer = parity_teacher(d, support)
    if arm == "signs agree":
        layer = Teacher(layer.thetas, layer.ws.abs())

    def labels(X, generator):
        Y = Teacher(layer.thetas.to(X), layer.ws.to(X))(X)
        coins = torch.randint(2, (len(X),), generator=generator, device=generator.device).bool()
        flipped = coins & (arm == "a coin") & (X[:, 0, 0] != X[:, 1, 0])
        return torch.where(flipped[:, None, None], -Y, Y)

    def sampler(config):
        def draw(batch, generator):
            X = sequences(batch, 2, config.d, generator=generator)
            return X, labels(X, generator)

        return draw

    def make(config):
        student = MultiHead(config)
        if arm in ("told where to look", "a coin"):
            student.thetas.data[:support] = layer.thetas
        return student

    held = sequences(2000, 2, d, generator=10_000 + seed)
    due, asked = labels(held, torch.Generator().manual_seed(20_000 + seed)), held[:, 0, 0] != held[:, 1, 0]

    @torch.no_grad()
    def parts(model):
        return torch.stack([relative_loss(model, held[these], due[these]) for these in (asked, ~asked)])

    student = recipe("multihead-student").with_(config=MultiHeadConfig(d, 3 * support), task={}, steps=steps)
    _, history = replace(student, sampler=sampler, make=make).train(seed=seed, each=parts, every=every)
    return torch.stack(history.looks)


@measurement(
    "multihead-students-of-parities",
    "what students of a parity of 3 or 5 coordinates have still to learn, and those in three other arms",
    cells=[{"support": support, "arm": arm} for support in (3, 5) for arm in ARMS],
    recipes=lambda scale: [recipe("multihead-student", scale)],
    tolerance=0.1,
    because="while a part is being learned, rounding moves the step by some, and the loss with it",
)
def students_of_parities(seed: int, scale: str, support: int, arm: str) -> list[Row]:
    """Measure, every 20 steps of 1,200, the loss where the parity is asked for and elsewhere."""
    parts = parity_parts(support, arm=arm, steps=40 if scale == "smoke" else 1200, seed=seed)
    return [{"step": 20 * i, "asked": asked, "elsewhere": other} for i, (asked, other) in enumerate(parts.tolist())]


@measurement(
    "multihead-teachers",
    "the relative loss of what `learn` answers to 20,000 sequences of a teacher of two heads, on fresh ones",
    seeds=range(20),
    cells=[{"sharpness": sharpness, "noise": noise} for sharpness, noise in ((1.0, 0.0), (2.0, 0.0), (1.0, 0.02))],
    tolerance=1e-3,
    because="the descent at its end stops where rounding lets it",
)
def of_teachers(seed: int, scale: str, sharpness: float, noise: float) -> list[Row]:
    """Judge an answer without noise, on 2,000 sequences; a refusal has the loss 1, which answering 0 has."""
    layer, n = teacher(12, 2, sharpness=sharpness, generator=seed + 300), 2500 if scale == "smoke" else 20_000
    X, fresh = (sequences(many, 2, 12, generator=seed + start) for many, start in ((n, 400), (2000, 500)))
    try:
        report = learn(X, with_noise(layer(X), noise, generator=seed), heads=2)
    except NotCertifiedError:
        return [{"answered": 0, "loss": 1.0}]
    return [{"answered": 1, "loss": relative_loss(Teacher(report.thetas, report.ws), fresh, layer(fresh)).item()}]


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
    loss = relative_loss(Teacher(report.thetas, report.ws), X[:fresh], Y[:fresh])
    return [{"said": "right" if loss < RIGHT else "wrong"}]


def _said(X: Tensor, Y: Tensor, asked: Tensor, due: Tensor, heads: int) -> Row:
    """Whether `learn` answers to X and Y, and the relative loss of that on fresh sequences; 1 if it refuses."""
    try:
        report = learn(X, Y, heads=heads)
    except NotCertifiedError:
        return {"answered": 0, "loss": 1.0}
    return {"answered": 1, "loss": relative_loss(Teacher(report.thetas, report.ws), asked, due).item()}


LABELS = ("its own", "another's")  # of a sequence: the teacher's answer to it, or to another one


@measurement(
    "multihead-gaussian",
    "the same of sequences of Gaussian tokens, and of labels that are another sequence's",
    seeds=range(10),
    cells=[{"sharpness": 2.0, "labels": labels} for labels in LABELS] + [{"sharpness": 1.0, "labels": LABELS[0]}],
    tolerance=1e-3,
    because="the descent at its end stops where rounding lets it",
)
def of_gaussian_tokens(seed: int, scale: str, sharpness: float, labels: str) -> list[Row]:
    """Judge an answer on 2,000 fresh sequences, Gaussian as well."""
    layer, n = teacher(12, 2, sharpness=sharpness, generator=seed + 300), 2500 if scale == "smoke" else 20_000
    X, asked = (
        sequences(many, 2, 12, kind="gaussian", generator=seed + start) for many, start in ((n, 400), (2000, 500))
    )
    Y = layer(X) if labels == LABELS[0] else layer(X).roll(1, 0)
    return [_said(X, Y, asked, layer(asked), 2)]


@measurement(
    "multihead-three-heads",
    "the relative loss of what `learn` answers to 40,000 sequences of a teacher of three heads, on fresh ones",
    cells=[{"labels": labels} for labels in LABELS],
    tolerance=1e-3,
    because="the descent at its end stops where rounding lets it",
)
def of_three_heads(seed: int, scale: str, labels: str) -> list[Row]:
    """Judge an answer on 2,000 fresh sequences."""
    layer, n = teacher(12, 3, generator=seed + 600), 6000 if scale == "smoke" else 40_000
    X, asked = (sequences(many, 2, 12, generator=seed + start) for many, start in ((n, 700), (2000, 800)))
    Y = layer(X) if labels == LABELS[0] else layer(X).roll(1, 0)
    return [_said(X, Y, asked, layer(asked), 3)]


ALIKE = {"random": False, "nearly alike": True}  # heads
MOST_HEADS = 6


def lucky_shares(thetas: Float[Tensor, "heads d d"], within: float = 0.02) -> list[float]:
    """How often the first two heads, three, .. put nearly the same weight on a token, over all pairs of different
    tokens on {-1, 1}^d: the weight on x where x looks at x and y. Where y looks, it is that of the pair in turn.

    ``thetas``: of the heads.
    ``within``: how far apart their weights may lie.
    """
    d = thetas.shape[1]
    every = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * d)
    counts = [0] * (len(thetas) - 1)
    for some in every.split(256):
        scores = [some @ theta.float() for theta in thetas]
        low = high = ((scores[0] * some).sum(1, keepdim=True) - scores[0] @ every.mT).sigmoid()
        x, y = (low < 2).nonzero(as_tuple=True)
        low, high = low.flatten(), high.flatten()
        for m, score in enumerate(scores[1:]):
            weight = ((score * some).sum(1, keepdim=True) - score @ every.mT).sigmoid()[x, y]
            low, high = torch.minimum(low, weight), torch.maximum(high, weight)
            left = high - low < within
            x, y, low, high = x[left], y[left], low[left], high[left]
            counts[m] += len(x)
    return [(count - len(every)) / (len(every) ** 2 - len(every)) for count in counts]  # all agree where x is y


@measurement(
    "multihead-luck",
    "how often two to six heads put nearly the same weight on a token, over all sequences of two, of ten teachers",
    cells=[{"heads": heads} for heads in ALIKE],
    tolerance=1e-6,
    because="single precision counts a pair or two otherwise",
)
def luck(seed: int, scale: str, heads: str) -> list[Row]:
    """Measure the mean share, where heads are random and where they are alike but for a tenth of their length."""
    many, d = (2, 6) if scale == "smoke" else (10, 12)
    drawn = [teacher(d, MOST_HEADS, generator=1000 * seed + place).thetas for place in range(many)]
    shares = [lucky_shares(thetas[:1] + 0.1 * thetas if ALIKE[heads] else thetas) for thetas in drawn]
    means = torch.tensor(shares, dtype=torch.float64).mean(0).tolist()
    return [{"m": m, "share": share} for m, share in enumerate(means, 2)]
