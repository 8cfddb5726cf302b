"""What lesson 13 shows of networks that learn biographies, seed by seed."""

import torch

from companion.core.measuring import Row, measurement
from companion.topics.calibration.data import biographies, corpus, even_facts
from companion.topics.calibration.exercises import floor, miscalibration
from companion.topics.calibration.model import BiographyModelConfig
from companion.topics.calibration.probes import by_probability, by_times_seen
from companion.topics.calibration.recipes import epoch_by_epoch

DELTA = 0.01  # the theorem's floor may fail in so many of all worlds


@measurement(
    "calibration-biographies",
    "hallucination, miscalibration and the theorem's floor, epoch by epoch, of networks that learn 1,500 biographies",
    tolerance=0.1,
    because="while it learns, rounding moves what a network gives to 16 million candidates",
)
def epochs_of_biographies(seed: int, scale: str) -> list[Row]:
    """Measure a network of one layer after each of 40 passes through 1,000 documents, 256 words a place."""
    words, true, n, epochs = (12, 60, 50, 2) if scale == "smoke" else (256, 1500, 1000, 40)
    facts, town = biographies(true, words, generator=1000 * seed + 20), even_facts(true, words**3)
    drawn = corpus(town, n, generator=1000 * seed + 21)
    once = (drawn.bincount() == 1).double().sum() / n
    missing = by_times_seen(drawn, town.p, town.candidates).p[0].item()
    rows = []
    for epoch, model in enumerate(epoch_by_epoch(BiographyModelConfig(words), facts[drawn], epochs=epochs, seed=seed)):
        bins = by_probability(model, facts, town.p)
        mis = miscalibration.answer(torch.arange(len(bins.g)), bins.g, bins.p)
        row = {"epoch": epoch, "once": once.item(), "missing": missing}
        row |= {"loss": -(town.p * bins.log_g).sum().item(), "hallucination": 1 - bins.log_g.exp().sum().item()}
        bound = floor.answer(once, mis, town.sparsity, n, DELTA)
        rows.append(row | {"miscalibration": mis.item(), "floor": bound.item()})
    return rows
