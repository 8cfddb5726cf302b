"""What lesson 05 shows of memories that are too wide, too many, or trained too often, for a lesson to draw."""

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import zeta
from torch import Tensor, nn

from companion.core.measuring import Row, measurement
from companion.core.recipe import TIMES
from companion.topics.memories.by_hand import mlp_logits, read, write
from companion.topics.memories.data import embeddings, tokens, zipf
from companion.topics.memories.probes import accuracy, capacity, weighted_error

ALPHAS = (1.25, 1.5, 2.0, 3.0)
ANSWERS, SWEEPS = 5, 4  # a token's answer is its number modulo 5; each figure is a mean over so many memories


@measurement(
    "memories-error-by-samples",
    "the error of a memory of the d/8 tokens most often seen in n samples, by n at d = 1,024 and by d at n = 10^6",
    seeds=range(8, 16),
    cells=[*({"alpha": alpha, "kept": "most seen"} for alpha in ALPHAS), {"alpha": 2.0, "kept": "at random"}],
    tolerance=0.01,
    because="sums of float32 round otherwise on another machine",
    quick=True,
)
def error_by_samples(seed: int, scale: str, alpha: float, kept: str) -> list[Row]:
    """Write memories from samples of tokens z = 1, 2, .. without end, with probabilities proportional to z^-alpha.

    Each stores, with equal weights, the d/8 tokens that it has seen most often, or d/8 of those that it has seen. What
    it has not stored is answered by chance, so that an infinite tail costs nothing to measure.
    """
    numbers, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    seen, widths = (10**3, 10**4), (64, 128)
    if scale != "smoke":
        seen, widths = (10, 30, 100, 300, 10**3, 3000, 10**4, 30_000, 10**5, 300_000, 10**6), (64, 128, 256, 512, 1024)
    sizes = [*((n, widths[-1]) for n in seen), *((seen[-1], d) for d in widths[:-1])]
    errors = np.zeros((SWEEPS, len(sizes)))
    for sweep in errors:
        drawn = numbers.zipf(alpha, seen[-1])
        for at, (n, d) in enumerate(sizes):
            found, times = np.unique(drawn[:n], return_counts=True)
            order = np.argsort(-times, kind="stable") if kept == "most seen" else numbers.permutation(len(found))
            stored = found[order[: d // 8]]
            p = torch.from_numpy(stored.astype(float) ** -alpha / zeta(alpha))
            answers = torch.from_numpy(stored % ANSWERS)
            U, V = (embeddings(many, d, generator=generator) for many in (len(stored), ANSWERS))
            known = weighted_error(read(write(U, V, answers), U, V), answers, p)
            sweep[at] = known.item() + (1 - p.sum().item()) * (1 - 1 / ANSWERS)
    return [{"n": n, "d": d, "error": error} for (n, d), error in zip(sizes, errors.mean(0).tolist(), strict=True)]


@measurement(
    "memories-errors-alike",
    "the error of a memory of 20 facts with five answers, by d from 20 to 160, stored all alike and by count",
    seeds=range(8),
    cells=[{"stored": "all alike"}, {"stored": "by count"}],
    tolerance=0.01,
    because="sums of float32 round otherwise on another machine",
)
def errors_alike(seed: int, scale: str, stored: str) -> list[Row]:
    """Write memories of tokens with probabilities proportional to z^-2, all alike or by them, and count what is wrong.

    All alike, no token is better off than another, so that the mean over tokens is that over their probabilities.
    """
    N, generator, rows = 20, torch.Generator().manual_seed(seed), []
    answers, p = torch.arange(N) % ANSWERS, zipf(N, 2.0).float()
    alike = torch.full((N,), 1 / N)
    weights = alike if stored == "all alike" else p
    for d in (20, 40) if scale == "smoke" else (20, 40, 60, 80, 120, 160):
        errors = []
        for _ in range(2 if scale == "smoke" else 50):
            U, V = (embeddings(many, d, runs=(1000,), generator=generator) for many in (N, ANSWERS))
            logits = read(write(U, V, answers, weights), U, V)
            errors.append(weighted_error(logits, answers, weights).mean().item())
        rows.append({"d": d, "error": float(np.mean(errors))})
    return rows


def _overlapping(n: int, d: int, generator: torch.Generator, part: float = 0.5) -> Tensor:
    """Unit vectors; of any two the inner product is about ``part``."""
    common, own = (embeddings(many, d, unit=True, generator=generator) for many in (1, n))
    return F.normalize(part**0.5 * common + (1 - part) ** 0.5 * own, dim=1)


@measurement(
    "memories-degrees",
    "how many facts hidden units of degree 1 to 3 hold without end of width, by d from 12 to 48",
    seeds=range(8),
    cells=[{"tokens": "independent"}, {"tokens": "overlapping"}],
    tolerance=0.1,
    because="where nine in ten are right hangs on single facts",
)
def facts_by_degree(seed: int, scale: str, tokens: str) -> list[Row]:
    """Measure the capacity at 90 % of the kernel (u . u')^degree, which is what ever more units come to."""
    generator = torch.Generator().manual_seed(seed)

    def right(N: int, d: int, degree: int) -> float:
        hits = []
        for _ in range(max(1, 500 // N)):
            U = (
                embeddings(N, d, unit=True, generator=generator)
                if tokens == "independent"
                else _overlapping(N, d, generator)
            )
            V = embeddings(N, d, unit=True, generator=generator)
            logits = ((U[:500] @ U.mT) ** degree @ V) @ V.mT
            hits.append(accuracy(logits, torch.arange(len(logits))))
        return float(np.mean(hits))

    return [
        {"degree": degree, "d": d, "facts": capacity(partial(right, d=d, degree=degree), start=1)}
        for degree in (1, 2, 3)
        for d in ((8, 12) if scale == "smoke" else (12, 16, 24, 32, 48))
    ]


@measurement(
    "memories-pairs",
    "how many facts with two keys, added up, hidden units of degree 1 and 3 hold, by units and by d",
    seeds=range(8),
    cells=[{"degree": 3}, {"degree": 1}],
    tolerance=0.1,
    because="where nine in ten are right hangs on single facts",
)
def facts_of_pairs(seed: int, scale: str, degree: int) -> list[Row]:
    """Measure the capacity at 90 % for N of the pairs of about sqrt(N) first and as many second keys, by m at d = 32
    and by d at m = 128.
    """
    generator = torch.Generator().manual_seed(seed)

    def right(N: int, m: int, d: int) -> float:
        keys, hits = int(np.ceil(N**0.5)), []
        for _ in range(max(1, 250 // N)):
            sides = [embeddings(keys, d, unit=True, generator=generator) for _ in range(2)]
            among = torch.randperm(keys**2, generator=generator)[:N]
            X = F.normalize(sides[0][among // keys] + sides[1][among % keys], dim=1)
            V = embeddings(N, d, unit=True, generator=generator)
            logits = mlp_logits(X, V, torch.arange(N), m, degree, generator=generator)
            hits.append(accuracy(logits, torch.arange(N)))
        return float(np.mean(hits))

    units, widths = ((32, 64), (16,)) if scale == "smoke" else ((64, 128, 256, 512, 1024), (64, 128))
    sizes = [*((m, 32) for m in units), *((128, d) for d in widths)]
    return [{"m": m, "d": d, "facts": capacity(partial(right, m=m, d=d), start=1)} for m, d in sizes]


def _trained_right(N: int, m: int, d: int, *, relu: bool, steps: int, seed: int) -> float:
    """The share of N facts that hidden units get right after full-batch Adam, over networks trained at once."""
    generator, runs = torch.Generator().manual_seed(seed), max(1, 250 // N)
    U, V = (embeddings(N, d, runs=(runs,), generator=generator) for _ in range(2))
    first = nn.Parameter(torch.randn(runs, m, d, generator=generator))
    second = nn.Parameter(torch.randn(runs, d, m, generator=generator) / m**0.5)
    optimizer = torch.optim.Adam([first, second], lr=0.03)
    target = torch.arange(N).expand(runs, N)

    def logits() -> Tensor:
        hidden = U @ first.mT
        return (hidden.relu() if relu else hidden) @ second.mT @ V.mT

    # A loop of its own: all facts at every step and a rate that falls in a line, for many networks at once.
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.03 * (1 - step / steps)
        loss = runs * F.cross_entropy(logits().flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return (logits().argmax(-1) == target).float().mean().item()


@measurement(
    "memories-trained-units",
    "how many facts trained hidden units hold, by units and by d, beside as many without their ReLU",
    cells=[{"units": "ReLU"}, {"units": "linear"}],
    tolerance=0.2,
    because="where nine in ten are right hangs on single facts, and what is trained on rounding",
)
def facts_of_trained_units(seed: int, scale: str, units: str) -> list[Row]:
    """Measure the capacity at 90 % after training, by m at d = 16 and by d at m = 32."""
    steps = 100 if scale == "smoke" else 600
    sizes = [(16, 16), (32, 16)] if scale == "smoke" else [(16, 16), (32, 16), (64, 16), (32, 8), (32, 32)]

    def right(N: int, m: int, d: int) -> float:
        return _trained_right(N, m, d, relu=units == "ReLU", steps=steps, seed=seed)

    return [{"m": m, "d": d, "steps": steps, "facts": capacity(partial(right, m=m, d=d), start=2)} for m, d in sizes]


SIZES_OF_STEPS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


@measurement(
    "memories-steps-budgets",
    "the error of a memory trained token by token, with steps of one size or ten times smaller later, by d",
    seeds=range(8),
    cells=[{"d": d, "times": times} for d in (16, 32, 256) for times in TIMES],
    tolerance=0.05,
    because="a large step makes much of rounding",
)
def errors_by_steps(seed: int, scale: str, d: int, times: int) -> list[Row]:
    """Train d x d memories of 100 tokens with probabilities proportional to z^-1.5, each its own answer, by SGD on one
    token a step; in the second half the steps are as large as before, or a tenth of it.
    """
    N, steps = 100, times * (10 if scale == "smoke" else 1000)
    generator, p = torch.Generator().manual_seed(seed), zipf(N, 1.5)
    U, V = (embeddings(N, d, generator=generator) for _ in range(2))
    seen = tokens(p, steps, generator=generator)[0]
    runs = [(size, later) for size in SIZES_OF_STEPS for later in ("the same", "a tenth")]
    first, second = (
        torch.tensor([size * (0.1 if half and later == "a tenth" else 1) for size, later in runs])[:, None, None]
        for half in (0, 1)
    )
    W = torch.zeros(len(runs), d, d)
    # A loop of its own: the size of its steps is the subject, all runs at once.
    for step, z in enumerate(seen.tolist()):
        residual = (U[z] @ W.mT @ V.mT).softmax(-1)  # (runs, answers)
        residual[:, z] -= 1
        W -= (first if 2 * step < steps else second) * (residual @ V)[:, :, None] * U[z]
    errors = weighted_error(read(W, U, V), torch.arange(N), p).tolist()
    return [
        {"steps": steps, "step": size, "later": later, "error": error}
        for (size, later), error in zip(runs, errors, strict=True)
    ]
