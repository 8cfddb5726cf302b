"""The exercises of lesson 13, prediction against generation.

Each wrong function under ``mistakes`` is something that people really write; `companion.lesson.exercise` uses it to
name the mistake.
"""

import math

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size


def _between(generator: Generator, low: float, high: float) -> float:
    return low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64).item()


def _uniform(generator: Generator, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


# -- good_turing


def _draw_corpus(generator: Generator) -> dict:
    n = draw_size(generator, 24, 32)
    rank = torch.randint(1, 40, (n,), generator=generator)
    drawn = torch.where(_uniform(generator, n) < 0.5, rank, rank % 6)
    return {"drawn": drawn, "gamma": _between(generator, 0.3, 0.6)}


def _good_turing(drawn: Tensor, gamma: float) -> Tensor:
    n = len(drawn)
    _, times = drawn.unique(return_counts=True)
    once = (times == 1).sum() / n
    radius = 1 / n + 2.42 * math.sqrt(math.log(4 / gamma) / n)
    return torch.stack([once, once.new_tensor(radius)])


def _estimate(drawn: Tensor, gamma: float, *, once=lambda times, n: (times == 1).sum() / n, radius=None) -> Tensor:
    """Estimate and radius, one of them done differently."""
    n = len(drawn)
    width = _good_turing(drawn, gamma)[1] if radius is None else torch.tensor(radius(n, gamma))
    return torch.stack([once(drawn.unique(return_counts=True)[1], n), width])


good_turing = Exercise(
    name="good_turing",
    answer=_good_turing,
    draw=_draw_corpus,
    mistakes={
        "divided by the number of different facts; n is the number of documents": lambda drawn, gamma: _estimate(
            drawn, gamma, once=lambda times, n: (times == 1).sum() / len(times)
        ),
        "counts the different facts; only those that occur exactly once": lambda drawn, gamma: _estimate(
            drawn, gamma, once=lambda times, n: torch.tensor(len(times) / n)
        ),
        "counts the facts that occur more than once": lambda drawn, gamma: _estimate(
            drawn, gamma, once=lambda times, n: (times > 1).sum() / n
        ),
        "the radius lacks its first term, 1 / n": lambda drawn, gamma: _estimate(
            drawn, gamma, radius=lambda n, gamma: 2.42 * math.sqrt(math.log(4 / gamma) / n)
        ),
        "the radius lacks the square root": lambda drawn, gamma: _estimate(
            drawn, gamma, radius=lambda n, gamma: 1 / n + 2.42 * math.log(4 / gamma) / n
        ),
        "the root is not divided by n": lambda drawn, gamma: _estimate(
            drawn, gamma, radius=lambda n, gamma: 1 / n + 2.42 * math.sqrt(math.log(4 / gamma))
        ),
    },
)


# -- miscalibration


def _draw_bins(generator: Generator) -> dict:
    m = draw_size(generator, 9, 13)
    levels = 0.02 + 0.3 * _uniform(generator, 2)
    levels = torch.cat([levels, levels + 0.0003])  # two and two lie so near that bins of any width would join them
    value = levels[torch.randint(4, (m,), generator=generator)]  # some groups say the same
    value[:2] = value[0]
    p = torch.randint(4, (m,), generator=generator).double()  # and some facts are equally likely
    p[0] = 5
    return {"value": value[torch.randperm(m, generator=generator)], "g": _shares(generator, m), "p": p / p.sum()}


def _miscalibration(value: Tensor, g: Tensor, p: Tensor) -> Tensor:
    _, bins = value.unique(return_inverse=True)
    gap = torch.zeros_like(g).index_add(0, bins, g - p)
    return gap.abs().sum() / 2


def _gaps(bins: Tensor, g: Tensor, p: Tensor) -> Tensor:
    _, bins = bins.unique(return_inverse=True)
    return torch.zeros_like(g).index_add(0, bins, g - p)


miscalibration = Exercise(
    name="miscalibration",
    answer=_miscalibration,
    draw=_draw_bins,
    mistakes={
        "the factor 1/2 is missing: mass that is too much in one bin is missing in another": lambda value, g, p: (
            _gaps(value, g, p).abs().sum()
        ),
        "the groups are not put into bins: those of the same value belong together": lambda value, g, p: (
            (g - p).abs().sum() / 2
        ),
        "the bins are those of p; they must be of what the model says": lambda value, g, p: (
            _gaps(p, g, p).abs().sum() / 2
        ),
        "the largest gap; the sum over all bins was asked for": lambda value, g, p: _gaps(value, g, p).abs().max(),
        "gaps are squared; their absolute values are asked for": lambda value, g, p: (
            _gaps(value, g, p).square().sum() / 2
        ),
    },
)


# -- floor


def _draw_terms(generator: Generator) -> dict:
    models = draw_size(generator, 3, 5)
    return {
        "once": _uniform(generator, models),
        "mis": _uniform(generator, models) / 2,
        "sparsity": _between(generator, 1e-4, 1e-2),
        "n": draw_size(generator, 400, 4000),
        "delta": _between(generator, 0.02, 0.3),
    }


def _floor(once: Tensor, mis: Tensor, sparsity: float, n: int, delta: float) -> Tensor:
    crowding = 3 * sparsity / delta
    chance = math.sqrt(6 * math.log(6 / delta) / n)
    return once - mis - crowding - chance


floor = Exercise(
    name="floor",
    answer=_floor,
    draw=_draw_terms,
    mistakes={
        "1 / delta is missing: the sparsity costs 3 sparsity / delta": lambda once, mis, sparsity, n, delta: (
            once - mis - 3 * sparsity - math.sqrt(6 * math.log(6 / delta) / n)
        ),
        "the miscalibration is added; it lowers the floor": lambda once, mis, sparsity, n, delta: (
            once + mis - 3 * sparsity / delta - math.sqrt(6 * math.log(6 / delta) / n)
        ),
        "the term of chance is added; it lowers the floor": lambda once, mis, sparsity, n, delta: (
            once - mis - 3 * sparsity / delta + math.sqrt(6 * math.log(6 / delta) / n)
        ),
        "the term of chance is not divided by n": lambda once, mis, sparsity, n, delta: (
            once - mis - 3 * sparsity / delta - math.sqrt(6 * math.log(6 / delta))
        ),
        "the square root is missing": lambda once, mis, sparsity, n, delta: (
            once - mis - 3 * sparsity / delta - 6 * math.log(6 / delta) / n
        ),
        "the term of the sparsity is left out": lambda once, mis, sparsity, n, delta: (
            once - mis - math.sqrt(6 * math.log(6 / delta) / n)
        ),
        "the term of chance is left out": lambda once, mis, sparsity, n, delta: once - mis - 3 * sparsity / delta,
    },
)


# -- validity_bound


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


def _validity_bound(g: Tensor, p: Tensor, false: Tensor) -> Tensor:
    E, V = false.sum(), (~false).sum()
    says_valid = g > 1 / E
    missed = p[~says_valid].sum()
    fooled = (says_valid & false).sum() / E
    error = (missed + fooled) / 2
    delta = (g[says_valid].sum() - p[says_valid].sum()).abs()
    return 2 * error - V / E - delta


def _bounded(
    g,
    p,
    false,
    *,
    threshold=lambda g, E: 1 / E,
    error=lambda missed, fooled: (missed + fooled) / 2,
    rest=lambda E, V, delta: V / E + delta,
) -> Tensor:
    """The bound with one thing done differently."""
    E, V = false.sum(), (~false).sum()
    says_valid = g > threshold(g, E)
    missed, fooled = p[~says_valid].sum(), (says_valid & false).sum() / E
    delta = (g[says_valid].sum() - p[says_valid].sum()).abs()
    return 2 * error(missed, fooled) - rest(E, V, delta)


validity_bound = Exercise(
    name="validity_bound",
    answer=_validity_bound,
    draw=_draw_statements,
    mistakes={
        "the threshold is 1 over the number of all statements; it must be that of the false ones": (
            lambda g, p, false: _bounded(g, p, false, threshold=lambda g, E: 1 / len(g))
        ),
        "delta is left out: the bare inequality err >= 2 err_iiv - |V| / |E| is false": lambda g, p, false: _bounded(
            g, p, false, rest=lambda E, V, delta: V / E
        ),
        "|V| / |E| is left out": lambda g, p, false: _bounded(g, p, false, rest=lambda E, V, delta: delta),
        "delta is added; it lowers the bound": lambda g, p, false: _bounded(
            g, p, false, rest=lambda E, V, delta: V / E - delta
        ),
        "the error is not halved: each kind of statement is one half of the questions": lambda g, p, false: _bounded(
            g, p, false, error=lambda missed, fooled: missed + fooled
        ),
        "the false statements that pass are left out of the error": lambda g, p, false: _bounded(
            g, p, false, error=lambda missed, fooled: missed / 2
        ),
        "the facts that do not pass are left out of the error": lambda g, p, false: _bounded(
            g, p, false, error=lambda missed, fooled: fooled / 2
        ),
        "the factor 2 in front of the error is missing": lambda g, p, false: _bounded(
            g, p, false, error=lambda missed, fooled: (missed + fooled) / 4
        ),
    },
)


# -- best_score


def _draw_confidence(generator: Generator) -> dict:
    q = _uniform(generator, draw_size(generator, 8, 12))
    return {"q": q, "t": (0.2, 0.35, 0.6, 0.75)[draw_size(generator, 0, 3)]}


def _best_score(q: Tensor, t: float) -> Tensor:
    answer = q - (1 - q) * t / (1 - t)
    return answer.clamp_min(0)


def _guess(q: Tensor, t: float) -> Tensor:
    return q - (1 - q) * t / (1 - t)


best_score = Exercise(
    name="best_score",
    answer=_best_score,
    draw=_draw_confidence,
    mistakes={
        "never abstains: what would lose points is better left unsaid, for 0": _guess,
        "answers wherever q is above 1/2; the threshold is t": lambda q, t: torch.where(q > 0.5, _guess(q, t), 0.0),
        "a wrong answer costs t / (1 - t), not t": lambda q, t: (q - (1 - q) * t).clamp_min(0),
        "a wrong answer costs t / (1 - t), not (1 - t) / t": lambda q, t: (q - (1 - q) * (1 - t) / t).clamp_min(0),
        "a wrong answer costs nothing here; that is binary grading, t = 0": lambda q, t: q,
        "the penalty is paid whatever comes; only a wrong answer, with probability 1 - q, pays it": lambda q, t: (
            q - t / (1 - t)
        ).clamp_min(0),
        "abstaining is given 1 point; it is worth 0": lambda q, t: _guess(q, t).clamp_min(1),
    },
)


def _shares(generator: Generator, *shape: int) -> Tensor:
    """Distributions along the last axis."""
    return draw_normal(generator, *shape).softmax(-1)


# -- relative_entropy


def _draw_counts(generator: Generator) -> dict:
    m = draw_size(generator, 6, 9)
    return {
        "logits": 2 * draw_normal(generator, m),
        "counts": torch.randint(1, 20, (m,), generator=generator).double(),
    }


def _relative_entropy(logits: Tensor, counts: Tensor) -> Tensor:
    empirical = counts / counts.sum()
    loss = -(empirical * logits.log_softmax(0)).sum()
    entropy = -(empirical * empirical.log()).sum()
    return loss - entropy


def _share_of(counts: Tensor) -> Tensor:
    return counts / counts.sum()


relative_entropy = Exercise(
    name="relative_entropy",
    answer=_relative_entropy,
    draw=_draw_counts,
    mistakes={
        "this is the loss alone: the entropy of the counts is not taken away": lambda logits, counts: (
            -(_share_of(counts) * logits.log_softmax(0)).sum()
        ),
        "the entropy is added to the loss, not taken away": lambda logits, counts: (
            -(_share_of(counts) * logits.log_softmax(0)).sum() - (_share_of(counts) * _share_of(counts).log()).sum()
        ),
        "the entropy that is taken away is the model's; it must be that of the counts": lambda logits, counts: (
            (logits.softmax(0) - _share_of(counts)) * logits.log_softmax(0)
        ).sum(),
        "the order is reversed: the average is over what the model says; it must be over the counts": (
            lambda logits, counts: (logits.softmax(0) * (logits.log_softmax(0) - _share_of(counts).log())).sum()
        ),
        "summed over all tokens of the text; the mean per token is asked for": lambda logits, counts: (
            counts.sum() * _relative_entropy(logits, counts)
        ),
    },
)


# -- moment_gap


def _draw_features(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 10), draw_size(generator, 3, 5)
    return {
        "theta": draw_normal(generator, d),
        "features": draw_normal(generator, m, d),
        "counts": torch.randint(1, 20, (m,), generator=generator).double(),
    }


def _moment_gap(theta: Tensor, features: Tensor, counts: Tensor) -> Tensor:
    model = (features @ theta).softmax(0)
    empirical = counts / counts.sum()
    return features.mT @ (model - empirical)


moment_gap = Exercise(
    name="moment_gap",
    answer=_moment_gap,
    draw=_draw_features,
    mistakes={
        "the sign is turned round: the gradient of the loss is the model's moments minus the data's": (
            lambda theta, features, counts: -_moment_gap(theta, features, counts)
        ),
        "these are the data's moments alone; the model's are missing": lambda theta, features, counts: (
            features.mT @ _share_of(counts)
        ),
        "these are the model's moments alone; the data's are missing": lambda theta, features, counts: (
            features.mT @ (features @ theta).softmax(0)
        ),
        "the counts are not divided by their sum": lambda theta, features, counts: (
            features.mT @ ((features @ theta).softmax(0) - counts)
        ),
        "the logits are not made into probabilities": lambda theta, features, counts: (
            features.mT @ (features @ theta - _share_of(counts))
        ),
    },
)


# -- sampled_accuracy


def _draw_rows(generator: Generator) -> dict:
    contexts, tokens = draw_size(generator, 4, 6), draw_size(generator, 7, 9)
    return {
        "share": _shares(generator, contexts),
        "truth": _shares(generator, contexts, tokens),
        "tau": (0.4, 0.6, 1.7, 2.5)[draw_size(generator, 0, 3)],
    }


def _sampled_accuracy(share: Tensor, truth: Tensor, tau: float) -> Tensor:
    q = truth ** (1 / tau)
    q = q / q.sum(1, keepdim=True)
    return (share * (truth * q).sum(1)).sum()


def _drawn_from(share: Tensor, truth: Tensor, q: Tensor) -> Tensor:
    return (share * (truth * q).sum(1)).sum()


sampled_accuracy = Exercise(
    name="sampled_accuracy",
    answer=_sampled_accuracy,
    draw=_draw_rows,
    mistakes={
        "the power is tau; it must be 1 / tau, so that a small tau sharpens": lambda share, truth, tau: _drawn_from(
            share, truth, truth**tau / (truth**tau).sum(1, keepdim=True)
        ),
        "the rows are not normalised after the power": lambda share, truth, tau: _drawn_from(
            share, truth, truth ** (1 / tau)
        ),
        "the temperature is not used": lambda share, truth, tau: _drawn_from(share, truth, truth),
        "this is the accuracy of the likeliest token; a sample's was asked for": lambda share, truth, tau: (
            share * truth.amax(1)
        ).sum(),
        "the truth gets the temperature, too; only what is sampled has it": lambda share, truth, tau: _drawn_from(
            share,
            truth ** (1 / tau) / (truth ** (1 / tau)).sum(1, keepdim=True),
            truth ** (1 / tau) / (truth ** (1 / tau)).sum(1, keepdim=True),
        ),
        "every context counts alike; each has its own share": lambda share, truth, tau: _sampled_accuracy(
            torch.full_like(share, 1 / len(share)), truth, tau
        ),
        "normalised over the contexts; each row must have the sum 1": lambda share, truth, tau: _drawn_from(
            share, truth, truth ** (1 / tau) / (truth ** (1 / tau)).sum(0)
        ),
    },
)
