"""A mistake that nobody listed is named by the near misses of the answer, in time; a right answer costs nothing."""

import re
import time

import pytest
import torch

from companion.checks.exercise import Exercise, Mistake
from companion.checks.near_misses import search as machine


def scaled(Q, K):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    return scores.softmax(-1)


def draw(generator):
    n, d = (int(torch.randint(low, high, (), generator=generator)) for low, high in ((4, 7), (2, 4)))
    Q, K = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
    return {"Q": Q, "K": K}


toy = Exercise("scaled", scaled, draw)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda Q, K: (Q @ K.mT / Q.shape[-1]).softmax(-1), "the square root is missing"),
        (lambda Q, K: (Q @ K.mT / len(Q) ** 0.5).softmax(-1), "the number of rows of Q is used"),
        (lambda Q, K: (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(0), "runs along the first axis"),
        (lambda Q, K: (K @ Q.mT / Q.shape[-1] ** 0.5).softmax(-1), "Q and K are exchanged"),
        (lambda Q, K: (Q @ K.mT / Q.shape[-1] ** 0.5).exp(), "are not divided by their sum"),
        (lambda Q, K: (Q @ K.mT / Q.shape[-1]).softmax(0), "; and "),
        (lambda Q, K: (Q @ Q.mT / Q.shape[-1] ** 0.5).softmax(-1), "does not use its argument K: "),
        (lambda Q, K: (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1).sum(0), "The reason: "),
        (lambda Q, K: (Q @ K.mT).pow(3).cumsum(0).cos(), "wrong values in "),
    ],
)
def test_a_mistake_that_nobody_listed_is_named(wrong, said):
    before = time.process_time()
    with pytest.raises(Mistake, match=re.escape(said)):
        toy.check(wrong)
    assert time.process_time() - before < 2.5


def test_a_right_answer_costs_nothing_and_makes_no_near_misses(capsys):
    fresh = Exercise("scaled", scaled, draw)
    fresh.check(lambda Q, K: torch.softmax(torch.einsum("td,sd->ts", Q, K) / Q.shape[1] ** 0.5, 1))
    assert capsys.readouterr().out == "scaled: correct\n"
    assert id(fresh) not in machine._families
