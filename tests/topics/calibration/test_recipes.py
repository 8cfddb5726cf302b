"""Epoch by epoch a model learns its corpus by heart, the same way every time."""

import math

import pytest
import torch

from companion.topics.calibration.data import biographies
from companion.topics.calibration.model import BiographyModelConfig
from companion.topics.calibration.probes import ask_what, by_probability
from companion.topics.calibration.recipes import epoch_by_epoch

FACTS = biographies(40, 8, generator=1)
EVEN = torch.full((30,), 1 / 30).double()


def losses(seed):
    config, row = BiographyModelConfig(8, width=16), FACTS[:30]
    models = epoch_by_epoch(config, row, epochs=40, batch=10, lr=1e-2, seed=seed)
    return [
        (-by_probability(model, row, EVEN).log_g.mean().item(), ask_what(model, row).right.mean()) for model in models
    ]


def test_a_corpus_is_learned_by_heart_and_a_seed_decides_all():
    first, again, other = losses(1), losses(1), losses(2)
    assert first == again and first != other
    assert len(first) == 41
    assert first[0][0] == pytest.approx(3 * math.log(8), abs=0.5)
    assert first[-1][0] < math.log(30) + 0.1  # the entropy of 30 biographies
    assert first[-1][1] > 0.8  # some share who and where, and no more can be known of them


@pytest.mark.parametrize(("wrong", "message"), [({"epochs": 0}, "epochs = 0"), ({"epochs": 1, "lr": 0}, "lr = 0")])
def test_bad_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        next(epoch_by_epoch(BiographyModelConfig(8), FACTS, **wrong))
