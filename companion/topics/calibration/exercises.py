"""The exercises of lesson 13, prediction against generation."""

import math

import torch
from torch import Generator, Tensor

from companion.lesson.bars import stays_within
from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.calibration.data import corpus, zipf_facts
from companion.topics.calibration.probes import by_times_seen


def _between(generator: Generator, low: float, high: float) -> float:
    return low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64).item()


def _uniform(generator: Generator, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def _draw_corpus(generator: Generator) -> dict:
    n = draw_size(generator, 24, 32)
    rank = torch.randint(1, 40, (n,), generator=generator)
    drawn = torch.where(_uniform(generator, n) < 0.5, rank, rank % 6)
    return {"drawn": drawn, "gamma": _between(generator, 0.3, 0.6)}


@exercise(draw=_draw_corpus, now="you can say how much a corpus has not shown, from the corpus alone")
def good_turing(drawn: Tensor, gamma: float) -> Tensor:
    n = len(drawn)
    _, times = drawn.unique(return_counts=True)
    once = (times == 1).sum() / n
    radius = 1 / n + 2.42 * math.sqrt(math.log(4 / gamma) / n)
    return torch.stack([once, once.new_tensor(radius)])


def _draw_bins(generator: Generator) -> dict:
    m = draw_size(generator, 9, 13)
    levels = 0.02 + 0.3 * _uniform(generator, 2)
    levels = torch.cat([levels, levels + 0.0003])  # two and two lie so near that bins of any width would join them
    value = levels[torch.randint(4, (m,), generator=generator)]  # some groups say the same
    value[:2] = value[0]
    value = value[torch.randperm(m, generator=generator)]
    p = torch.randint(4, (m,), generator=generator).double()  # and some facts are equally likely
    g = _shares(generator, m)
    other = int((value != value[0]).int().argmax())  # of another bin than the first, though as much is written there
    p[0], p[other] = 5, 0
    g[other] = g[0] = g.median()
    return {"value": value, "g": g / g.sum(), "p": p / p.sum()}


@exercise(draw=_draw_bins, now="you can judge a model whose every sentence is new")
def miscalibration(value: Tensor, g: Tensor, p: Tensor) -> Tensor:
    _, bins = value.unique(return_inverse=True)
    gap = torch.zeros_like(g).index_add(0, bins, g - p)
    return gap.abs().sum() / 2


def _draw_terms(generator: Generator) -> dict:
    models = draw_size(generator, 3, 5)
    return {
        "once": _uniform(generator, models),
        "mis": _uniform(generator, models) / 2,
        "sparsity": _between(generator, 1e-4, 1e-2),
        "n": draw_size(generator, 400, 4000),
        "delta": _between(generator, 0.02, 0.3),
    }


@exercise(draw=_draw_terms, now="you know how honest and how truthful a model can be at once")
def floor(once: Tensor, mis: Tensor, sparsity: float, n: int, delta: float) -> Tensor:
    crowding = 3 * sparsity / delta
    chance = math.sqrt(6 * math.log(6 / delta) / n)
    return once - mis - crowding - chance


def _draw_statements(generator: Generator) -> dict:
    tie = generator.initial_seed() % 3 == 0
    V, E = draw_size(generator, 4, 5), 16 if tie else draw_size(generator, 14, 20)  # 1 / 16 is exact in every dtype
    p = torch.zeros(V + E, dtype=torch.float64)
    p[:V] = _shares(generator, V)
    g = 0.7 + 0.6 * _uniform(generator, V + E)
    loud = torch.tensor([0, 1, V, V + 1, V + 2])  # two facts and three false statements are said often
    near = torch.tensor([2, V + 3])  # and one of each a little less often than 1 / |E|, or the fact just as often
    g[loud] = 0
    g[near] = 0
    often = (1.4 + 0.6 * _uniform(generator, 5)) / E
    between = torch.full((2,), (1 / E + 1 / (V + E)) / 2, dtype=torch.float64)
    between[0] = 1 / E if tie else between[0]
    g = g / g.sum() * (1 - often.sum() - between.sum())
    g[loud], g[near] = often, between
    order = torch.randperm(V + E, generator=generator)
    return {"g": g[order], "p": p[order], "false": (torch.arange(V + E) >= V)[order]}


@exercise(draw=_draw_statements, tolerance=1e-4)  # whole numbers divide into float32, and the answer may be near 0
def validity_bound(g: Tensor, p: Tensor, false: Tensor) -> Tensor:
    E, V = false.sum(), (~false).sum()
    says_valid = g > 1 / E
    missed = p[~says_valid].sum()
    fooled = (says_valid & false).sum() / E
    error = (missed + fooled) / 2
    delta = (g[says_valid].sum() - p[says_valid].sum()).abs()
    return 2 * error - V / E - delta


def _draw_confidence(generator: Generator) -> dict:
    q = _uniform(generator, draw_size(generator, 8, 12))
    return {"q": q, "t": (0.2, 0.35, 0.6, 0.75)[draw_size(generator, 0, 3)]}


@exercise(draw=_draw_confidence, now="you can say from which confidence on an answer pays")
def best_score(q: Tensor, t: float) -> Tensor:
    answer = q - (1 - q) * t / (1 - t)
    return answer.clamp_min(0)


CANDIDATES, BAR = 10**9, 0.04  # and how far a writer may be from calibrated, and from the line


def _draw_budgets(generator: Generator) -> dict:
    """A corpus in which some number of times does not occur, though the next larger one does."""
    # with 20,000 draws, the excess of a right answer, .013 with a deviation of .007, was above the bar once in 500
    n = 80_000
    while True:
        facts = draw_size(generator, 64_000, 120_000)
        world = zipf_facts(facts, CANDIDATES, _between(generator, 0.2, 0.5))
        drawn = corpus(world, n, generator=generator)
        empty = drawn.bincount().bincount()[1:] == 0
        if (empty[:-1] & ~empty[1:]).any():  # or it would not show who gives a mass to nobody
            break
    return {
        "drawn": drawn,
        "budgets": torch.tensor([0, 0.05, 0.1, 0.2, 1], dtype=torch.float64),
        "_p": world.p,
    }


def _is_a_distribution(inputs: dict, g: Tensor) -> str | None:
    if g.min() < 0:
        return f"a mass of {g.min():.3g}; none may be below 0"
    row = int((g.sum(1) - 1).abs().argmax())
    if (total := g[row].sum()).sub(1).abs() > 1e-3:
        return f"the masses of row {row} (budget {inputs['budgets'][row]:g}) have the sum {total:.3f}; it must be 1"
    empty = inputs["drawn"].bincount().bincount() == 0
    empty[0] = False
    if (g[:, empty] > 1e-9).any():
        k = int((g * empty).amax(0).argmax())
        return f"no fact came {k} times, and yet a mass of {g[:, k].max():.3g} is given to those that did"
    return None


def _judged(inputs: dict, g: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Hallucination and miscalibration of each row, its masses by times seen, and the world's."""
    groups = by_times_seen(inputs["drawn"], inputs["_p"], CANDIDATES)
    g = g[:, groups.seen]
    mis = torch.stack([miscalibration.answer(row / groups.size, row, groups.p) for row in g])
    return (g * ((groups.size - groups.true) / groups.size)).sum(1), mis, g, groups.p


def _keeps_its_budgets(inputs: dict, g: Tensor) -> str | None:
    wrong, _, _, _ = _judged(inputs, g)
    row = int((wrong - inputs["budgets"]).argmax())
    if stays_within("share that is false beside its budget", wrong[row].item(), inputs["budgets"][row].item() + 0.005):
        return None
    return f"with a budget of {inputs['budgets'][row]:g}, a share {wrong[row]:.2f} of what it writes is false"


def _is_calibrated_when_free(inputs: dict, g: Tensor) -> str | None:
    _, mis, g, p = _judged(inputs, g)
    if stays_within("miscalibration with a budget of 1", mis[-1].item(), BAR):
        return None
    k = int((g[-1] - p).abs().argmax())
    name = "has never come" if k == 0 else f"came {k} time{'s' * (k > 1)}"
    return (
        f"with a budget of 1 it may write as it likes, and is miscalibrated by {mis[-1]:.2f}, not at most {BAR}: what "
        f"{name} gets {g[-1, k]:.2f}, and is {p[k]:.2f} of what the world writes"
    )


def _is_on_the_line(inputs: dict, g: Tensor) -> str | None:
    wrong, mis, g, p = _judged(inputs, g)
    excess = wrong + mis - p[0]
    row = int(excess.argmax())
    if stays_within("sum above the missing mass", excess[row].item(), BAR):
        return None
    k = 1 + int((p - g[row])[1:].argmax())
    return (
        f"with a budget of {inputs['budgets'][row]:g} hallucination and miscalibration have the sum "
        f"{wrong[row] + mis[row]:.2f}, {excess[row]:.2f} above the missing mass, where {BAR} is allowed: what came "
        f"{k} time{'s' * (k > 1)} gets {g[row, k]:.2f}, less than the {p[k]:.2f} that the world writes"
    )


@summit(
    draw=_draw_budgets,
    shape=lambda inputs: (len(inputs["budgets"]), int(inputs["drawn"].bincount().max()) + 1),
    stages=(_is_a_distribution, _keeps_its_budgets, _is_calibrated_when_free, _is_on_the_line),
    seconds=4,
    now="you choose where on the line a writer stands, without having seen the world",
)
def budgeted_writer(drawn: Tensor, budgets: Tensor) -> Tensor:
    n = len(drawn)
    size = drawn.bincount().bincount()
    times = torch.arange(len(size), device=drawn.device)
    memory = (times * size / n).to(budgets.dtype)
    thin = int((size[1:] < 30).nonzero()[0])
    g = memory.clone()
    g[:thin] = memory[1 : thin + 1]
    g[thin:] *= (1 - g[:thin].sum()) / memory[thin:].sum()
    new = budgets.clamp(max=g[0])[:, None]
    seen = g[1:] / g[1:].sum()
    return torch.cat([new, (1 - new) * seen], dim=1)


def _shares(generator: Generator, *shape: int) -> Tensor:
    """Distributions along the last axis."""
    return draw_normal(generator, *shape).softmax(-1)


def _draw_counts(generator: Generator) -> dict:
    m = draw_size(generator, 6, 9)
    return {"logits": 2 * draw_normal(generator, m), "counts": torch.randint(1, 20, (m,), generator=generator).double()}


@exercise(draw=_draw_counts)
def relative_entropy(logits: Tensor, counts: Tensor) -> Tensor:
    empirical = counts / counts.sum()
    loss = -(empirical * logits.log_softmax(0)).sum()
    entropy = -(empirical * empirical.log()).sum()
    return loss - entropy


def _draw_features(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 10), draw_size(generator, 3, 5)
    return {
        "theta": draw_normal(generator, d),
        "features": draw_normal(generator, m, d),
        "counts": torch.randint(1, 20, (m,), generator=generator).double(),
    }


@exercise(draw=_draw_features)
def moment_gap(theta: Tensor, features: Tensor, counts: Tensor) -> Tensor:
    model = (features @ theta).softmax(0)
    empirical = counts / counts.sum()
    return features.mT @ (model - empirical)
