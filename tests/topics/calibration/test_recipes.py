"""Epoch by epoch a model learns its corpus by heart, the same way every time."""

import math

import pytest
import torch
from refusals import refusals

from companion.topics.calibration.data import biographies
from companion.topics.calibration.model import BiographyModelConfig
from companion.topics.calibration.probes import by_probability
from companion.topics.calibration.recipes import epoch_by_epoch

FACTS = biographies(40, 8, generator=1)
EVEN = torch.full((30,), 1 / 30).double()


def losses(seed, epochs):
    config, row = BiographyModelConfig(8, width=16), FACTS[:30]
    right = lambda model: (model(row[:, :2])[:, 2].argmax(-1) == row[:, 2]).double().mean()  # noqa: E731
    models = epoch_by_epoch(config, row, epochs=epochs, seed=seed)
    return [(-by_probability(model, row, EVEN).log_g.mean().item(), right(model)) for model in models]


@pytest.mark.types_unchecked
def test_a_corpus_is_learned_by_heart_and_a_seed_decides_all():
    first = losses(1, epochs=300)
    assert losses(1, epochs=20) == first[:21] != losses(2, epochs=20)
    assert len(first) == 301
    assert first[0][0] == pytest.approx(3 * math.log(8), abs=0.5)
    assert first[-1][0] < math.log(30) + 0.1  # the entropy of 30 biographies
    assert first[-1][1] > 0.8  # some share who and where, and no more can be known of them


test_no_epoch_is_named = refusals(
    (lambda: next(epoch_by_epoch(BiographyModelConfig(8), FACTS, epochs=0)), "epochs = 0")
)
