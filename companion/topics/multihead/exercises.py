"""The exercises of lesson 09, PAC learning of attention."""

import torch
from torch import Generator, Tensor

from companion.lesson.bars import reaches, stays_within
from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.multihead.baselines import NotCertifiedError, fit_layer
from companion.topics.multihead.data import Teacher, hostile, sequences, teacher, with_noise
from companion.topics.multihead.model import relative_loss


def _draw_examples(generator: Generator) -> dict:
    n, k, d = draw_size(generator, 6, 9), draw_size(generator, 2, 4), draw_size(generator, 4, 5)
    return {"X": draw_normal(generator, n, k, d), "Y": draw_normal(generator, n, k, d)}


@exercise(now="a first, blunt look at all heads at once", draw=_draw_examples)
def first_step(X: Tensor, Y: Tensor) -> Tensor:
    n, k, _ = X.shape
    return X.sum(1).mT @ Y.sum(1) / (n * k)


def _draw_row(generator: Generator) -> dict:
    k, d = draw_size(generator, 2, 4), draw_size(generator, 5, 7)
    return {"Z": draw_normal(generator, k, d), "y": draw_normal(generator, d)}


@exercise(now="any row can be asked whether its heads agree", draw=_draw_row)
def shared_pattern(Z: Tensor, y: Tensor) -> Tensor:
    first = torch.linalg.lstsq((Z[:-1] - Z[-1]).mT, (y - Z[-1])[:, None]).solution[:, 0]
    return torch.cat([first, 1 - first.sum(0, keepdim=True)])


def _draw_certified(generator: Generator) -> dict:
    k, d = draw_size(generator, 2, 4), draw_size(generator, 3, 5)
    p = draw_normal(generator, k).softmax(0)
    return {"x": draw_normal(generator, d), "tokens": draw_normal(generator, k, d), "p": p}


@exercise(now="each certified row cuts a slab out of the space of matrices", draw=_draw_certified)
def constraint_rows(x: Tensor, tokens: Tensor, p: Tensor) -> Tensor:
    differences = tokens[:-1] - tokens[-1]
    rows = (x[:, None] * differences[:, None, :]).flatten(1)
    logs = (p[:-1] / p[-1]).log()
    return torch.cat([rows, logs[:, None]], dim=1)


def _draw_hull(generator: Generator) -> dict:
    free, d2 = draw_size(generator, 2, 3), draw_size(generator, 5, 8)
    directions = torch.linalg.qr(draw_normal(generator, d2, free)).Q.mT.contiguous()
    return {"theta": draw_normal(generator, d2), "base": draw_normal(generator, d2), "directions": directions}


@exercise(draw=_draw_hull)
def off_hull(theta: Tensor, base: Tensor, directions: Tensor) -> Tensor:
    off = theta - base
    return off - directions.mT @ (directions @ off)


def _draw_body(generator: Generator) -> dict:
    rows, d2 = draw_size(generator, 4, 6), draw_size(generator, 7, 9)
    A = draw_normal(generator, rows, d2)
    A = A * (0.5 + torch.rand(rows, 1, generator=generator, dtype=torch.float64))
    return {"A": A, "b": 2 * draw_normal(generator, rows), "eps": 0.3, "sweeps": draw_size(generator, 2, 4)}


@exercise(draw=_draw_body)
def minimum_norm_point(A: Tensor, b: Tensor, eps: float, sweeps: int) -> Tensor:
    theta, dual = torch.zeros_like(A[0]), torch.zeros_like(b)
    for _ in range(sweeps):
        for j in range(len(b)):
            size = A[j] @ A[j]
            goal = dual[j] + (b[j] - A[j] @ theta) / size
            new = goal.sign() * (goal.abs() - eps / size).clamp_min(0)
            theta = theta + (new - dual[j]) * A[j]
            dual[j] = new
    return theta


def _draw_sharp(generator: Generator) -> dict:
    n, k, d = draw_size(generator, 12, 16), draw_size(generator, 2, 3), draw_size(generator, 4, 5)
    X, Y = draw_normal(generator, n, k, d), draw_normal(generator, n, k, d)
    return {"X": X, "Y": Y, "theta": draw_normal(generator, d, d) / 2, "many": draw_size(generator, 8, 11)}


@exercise(draw=_draw_sharp)
def sum_by_margin(X: Tensor, Y: Tensor, theta: Tensor, many: int) -> Tensor:
    k = X.shape[1]
    weight, where = (X @ theta @ X.mT).softmax(-1).max(-1)
    sharpest = weight.flatten().topk(many).indices
    n, row = sharpest // k, sharpest % k
    looked_at = X[n, where[n, row]]
    return torch.linalg.lstsq(looked_at, Y[n, row]).solution


def _draw_gram(generator: Generator) -> dict:
    size, d = draw_size(generator, 4, 6), draw_size(generator, 2, 3)
    phi = draw_normal(generator, 3 * size, size)
    return {"G": phi.mT @ phi, "C": draw_normal(generator, size, d)}


@exercise(now="every pair of heads on the line can be scored without finding its W", draw=_draw_gram, tolerance=1e-7)
def explained(G: Tensor, C: Tensor) -> Tensor:
    return (C * torch.linalg.solve(G, C)).sum()


AGAIN = 50  # of the sequences come twice, so that one sees whether their labels are a rule


def _draw_victims(generator: Generator) -> dict:
    X = sequences(2500, 2, 8, generator=generator)
    return {"X": torch.cat([X, X[:AGAIN]])}


def _is_a_rule(_: dict, Y: Tensor) -> str | None:
    if torch.allclose(Y[:AGAIN], Y[-AGAIN:]):
        return None
    return (
        "the same sequence gets other labels when it comes again, so these labels are no rule that one could learn: "
        "let them depend on the sequence alone"
    )


def _is_let_through(inputs: dict, Y: Tensor) -> str | None:
    try:
        report = fit_layer(inputs["X"].to(Y), Y, heads=2)
    except (NotCertifiedError, ValueError) as error:
        return f"the learner does not get as far as the test, because {error}"
    bar = 5 * report.promised**2
    if not stays_within("what the answer leaves, as a share of what the first test allows", report.loss / bar, 1):
        return (
            f"the first test refuses: the answer leaves {report.loss:.2g} of the labels' square, and {bar:.2g} is "
            f"allowed, 5 times the square of the {report.promised:.2g} to which the certified rows fit. The "
            "worse those fit, the more is allowed"
        )
    if not reaches("share of the labels' square that is left", report.loss, 0.5):
        return (
            f"the first test accepts, but the answer is wrong about {report.loss:.2g} of the labels' square only: that "
            "is a layer with a fault. Ask for labels of which it explains less than half"
        )
    return None


@summit(
    now="the first test can be made to accept nonsense",
    draw=_draw_victims,
    shape=lambda inputs: tuple(inputs["X"].shape),
    stages=(_is_a_rule, _is_let_through),
    seconds=1,
)
def attack(X: Tensor) -> Tensor:
    k, d = X.shape[1:]
    generator = torch.Generator().manual_seed(1)
    mixed = torch.randn(k * d, k * d, generator=generator, dtype=torch.float64).to(X)
    return (X.flatten(1) @ mixed).sin().view(X.shape)


WORLDS = {  # and whether a test should accept what was learned there
    "a layer of two heads": True,
    "the same layer, with noise of .02 in its labels": True,
    "the same layer, in other units": True,
    "random labels": False,
    "as much noise as signal": False,
    "a layer of three heads": False,
    "a layer of two heads on half of the sequences, random labels on the others": False,
    "a layer of two heads, but one answer in 500 is 0": False,
    "a layer of two heads whose answers are a fifth too small, and whose rows fit badly": False,
    "a layer of two heads whose answers are a half too small, and whose rows fit badly": False,
}


def _learned(X: Tensor, Y: Tensor) -> tuple:
    """Held-out examples, the layer that was learned from the others, and what its rows promised."""
    report = fit_layer(X, Y, heads=2)
    return X[-500:], Y[-500:], report.thetas, report.ws, report.promised


def _draw_worlds(generator: Generator) -> dict:
    n, k, d = 2500, 2, 8
    X, layer = sequences(n, k, d, generator=generator), teacher(d, 2, sharpness=2.0, generator=generator)
    Y = layer(X)
    honest = _learned(X, Y)
    half = torch.rand(n, 1, 1, generator=generator, dtype=torch.float64) < 0.5
    rare = torch.ones(500, 1, 1, dtype=torch.float64)
    rare[-1] = 0
    worlds = [
        honest,
        _learned(X, with_noise(Y, 0.02, generator=generator)),
        (honest[0] / 10, 50 * honest[1], 100 * honest[2], 500 * honest[3], honest[4]),
        *(
            _learned(*hostile(kind, n, k, d, generator=generator))
            for kind in ("random labels", "as much noise as signal")
        ),
        _learned(*hostile("three heads", n, k, d, generator=generator)),
        (X[-500:], torch.where(half, Y, draw_normal(generator, n, k, d))[-500:], *honest[2:]),
        (X[-500:], rare * Y[-500:], *layer, 0.002),
        *((X[-500:], Y[-500:], layer.thetas, share * layer.ws, 0.5) for share in (0.8, 0.5)),
    ]
    X, Y, thetas, ws = (torch.stack([world[part] for world in worlds]) for part in range(4))
    return {"X": X, "Y": Y, "thetas": thetas, "ws": ws, "promised": torch.tensor([world[4] for world in worlds]).to(X)}


def _judges(inputs: dict, said: Tensor) -> str | None:
    if said.dtype != torch.bool:
        return f"the answer is of {said.dtype}; say True or False of each world"
    for world, (name, due) in enumerate(WORLDS.items()):
        X, Y, thetas, ws = (inputs[part][world] for part in ("X", "Y", "thetas", "ws"))
        if said[world] != due:
            loss = relative_loss(Teacher(thetas, ws), X, Y).item()
            return (
                f"world {world} ({name}) is {'accepted' if said[world] else 'refused'}: the answer leaves {loss:.2g} "
                f"of the labels' square, and the certified rows fit to {inputs['promised'][world]:.2g}"
            )
    return None


@summit(
    now="a learner can say that it does not know",
    draw=_draw_worlds,
    shape=lambda inputs: (len(inputs["X"]),),
    stages=(_judges,),
    seconds=3,
)
def accepts(X: Tensor, Y: Tensor, thetas: Tensor, ws: Tensor, promised: Tensor) -> Tensor:
    answer = torch.zeros_like(Y)
    for head in range(thetas.shape[1]):
        theta, w = thetas[:, head, None], ws[:, head, None]
        answer = answer + (X @ theta @ X.mT).softmax(-1) @ X @ w
    loss = (answer - Y).square().sum((1, 2, 3)) / Y.square().sum((1, 2, 3))
    bar = (5 * promised**2 + 1e-4).clamp(max=0.01)
    return loss < bar
