"""Teachers answer by the formula, are degenerate where they say so, and bad sizes are named."""

import math
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from laws import laws, quarters
from refusals import refusals
from scipy.special import softmax

from companion.topics.multihead.data import (
    HOSTILE,
    cancelling_teacher,
    hostile,
    parity_teacher,
    sequences,
    teacher,
    with_noise,
)


def test_a_teacher_is_its_formula():
    layer, X = teacher(5, 3, sharpness=2.0, generator=1), sequences(4, 3, 5, kind="gaussian", generator=2)
    for x, answer in zip(X.numpy(), layer(X), strict=True):
        reference = sum(
            softmax(x @ theta @ x.T, axis=1) @ x @ w
            for theta, w in zip(layer.thetas.numpy(), layer.ws.numpy(), strict=True)
        )
        np.testing.assert_allclose(answer, reference, atol=1e-12)


@pytest.mark.parametrize("sharpness", [0.5, 2.0])
def test_scores_have_the_stated_sharpness_and_w_its_size(sharpness):
    layer, X = teacher(40, 8, sharpness=sharpness, generator=3), sequences(500, 2, 40, generator=4)
    assert (X @ layer.thetas[0] @ X.mT).std().item() == pytest.approx(sharpness, rel=0.1)
    assert layer.ws.var().item() == pytest.approx(1 / 40, rel=0.1)


def entries(generator):
    """An entry of each matrix of two heads after the other, in quarters of what its law should be."""
    layer = teacher(60, 2, sharpness=2.0, generator=generator)
    return quarters(torch.cat([30 * layer.thetas, 60**0.5 * layer.ws]).flatten(1).mT)


LABELS = torch.arange(4.0, dtype=torch.float64).view(1, 2, 2).expand(9000, 2, 2)
test_draws_follow_their_laws = laws(
    (lambda g: sequences(20_000, 2, 2, generator=g), product((-1, 1), repeat=4)),
    (lambda g: quarters(sequences(20_000, 2, 2, kind="gaussian", generator=g)), product(range(4), repeat=4)),
    (entries, product(range(4), repeat=4)),
    (lambda g: quarters(hostile("random labels", 20_000, 2, 2, generator=g)[1]), product(range(4), repeat=4)),
    (lambda g: quarters(with_noise(LABELS, 0.5, generator=g).sub(LABELS) / 0.5), product(range(4), repeat=4)),
)


def attending(attend):
    """The answers of two heads, token by token, to ``attend(scores)``."""

    def label(X, generator):
        heads = teacher(X.shape[2], 2, generator=generator)
        pairs = [*zip(heads.thetas, heads.ws, strict=True)]
        return torch.stack(
            [torch.stack([sum(attend(x @ (t.mT @ here)) @ x @ w for t, w in pairs) for here in x]) for x in X]
        )

    return label


WRONG = {
    "another sequence's labels": lambda X, g: teacher(6, 2, generator=g)(X[[-1, *range(len(X) - 1)]]),
    "hard attention": attending(lambda scores: F.one_hot(scores.argmax(), len(scores)).double()),
    "attention without a softmax": attending(lambda scores: scores / len(scores)),
    "three heads": lambda X, g: teacher(6, 3, generator=g)(X),
    "as much noise as signal": lambda X, g: with_noise(Y := teacher(6, 2, generator=g)(X), Y.std().item(), generator=g),
}


@pytest.mark.parametrize("kind", WRONG)
def test_hostile_labels_are_what_their_name_says(kind):
    generator = torch.Generator().manual_seed(3)
    X = sequences(20, 3, 6, generator=generator)
    torch.testing.assert_close(hostile(kind, 20, 3, 6, generator=3)[1], WRONG[kind](X, generator))


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_cancelling_teacher_has_a_sum_of_the_given_rank(rank):
    singular = torch.linalg.svdvals(cancelling_teacher(8, rank=rank, generator=5).ws.sum(0))
    assert int((singular > 1e-10).sum()) == rank
    if rank:  # of entries sum_r L_ir R_jr / d
        assert cancelling_teacher(60, rank=rank).ws.sum(0).std().item() == pytest.approx(rank**0.5 / 60, rel=0.2)


@pytest.mark.parametrize("support", [2, 3, 4])
def test_a_parity_teacher_answers_by_a_parity_of_the_token(support):
    X = sequences(4000, 2, 9, generator=6)
    X = X[X[:, 0, 0] != X[:, 1, 0]]
    answer = parity_teacher(9, support)(X)[:, 0, 0]
    parity = X[:, 0, 1 : support + 1].prod(dim=1)
    promised = parity if support % 2 else X[:, 0, 0] * (1 - parity)
    assert (answer - promised).abs().max() < 0.02


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_labels_come_from_the_seed_and_are_no_two_heads(kind):
    (X, Y), (_, again) = (hostile(kind, 400, 2, 6, generator=8) for _ in range(2))
    assert torch.equal(Y, again)
    assert Y.shape == X.shape
    assert 0.1 < Y.std() < 5
    good = teacher(6, 2, generator=torch.Generator().manual_seed(8))(X)
    assert (Y - good).abs().mean() > 0.01


def test_no_noise_changes_nothing():
    Y = torch.ones(2, 2, 5, dtype=torch.float64)
    assert torch.equal(with_noise(Y, 0.0), Y)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: sequences(3, 1, 5), "k = 1: must be at least 2"),
    (lambda: sequences(3, 6, 5), "d = 5: must be at least 6"),
    (lambda: sequences(0, 2, 5), "n = 0"),
    (lambda: teacher(5, 0), "heads = 0"),
    (lambda: teacher(0, 2), "d = 0"),
    (lambda: teacher(5, 2, sharpness=0), "sharpness = 0"),
    (lambda: teacher(5, 2, sharpness=math.nan), "sharpness = nan"),
    (lambda: cancelling_teacher(5, rank=-1), "rank = -1"),
    (lambda: parity_teacher(3, 3), "d = 3: must be at least 4"),
    (lambda: parity_teacher(3, 0), "support = 0"),
    (lambda: hostile("friendly", 9, 2, 5, generator=0), "kind = 'friendly': must be one of random labels, "),
    (lambda: with_noise(torch.zeros(1, 2, 3), math.inf), "noise = inf"),
    (lambda: with_noise(torch.zeros(1, 2, 3), math.nan), "noise = nan"),
    (lambda: with_noise(torch.zeros(1, 2, 3), -0.1), "noise = -0.1"),
)
