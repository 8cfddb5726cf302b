"""What lesson 05 shows of memories that are too wide, or of too many samples, for a lesson to draw."""

import numpy as np
import torch
from scipy.special import zeta

from companion.core.measuring import Row, measurement
from companion.topics.memories.by_hand import read, write
from companion.topics.memories.data import embeddings
from companion.topics.memories.probes import weighted_error

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
