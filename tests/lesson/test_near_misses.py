"""A mistake that nobody listed is named by the near misses of the answer, in time; a right answer costs nothing."""

import re
import time

import numpy as np
import pytest
import torch
from wrong_answers.cases import EXERCISES

from companion.lesson.exercise import Exercise, Mistake
from companion.lesson.near_misses import families
from companion.lesson.near_misses.edits import edits
from companion.lesson.near_misses.running import called
from companion.lesson.near_misses.table import near_miss_table
from companion.lesson.summit import Summit


def scaled(Q, K):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    return scores.softmax(-1)


def draw(generator):
    n, d = (int(torch.randint(low, high, (), generator=generator)) for low, high in ((4, 7), (2, 4)))
    Q, K = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
    return {"Q": Q, "K": K}


toy = Exercise("scaled", scaled, draw)


@pytest.mark.types_unchecked
@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda Q, K: (Q @ K.mT / Q.shape[-1]).softmax(-1), "the square root is missing"),
        (lambda Q, K: (Q @ K.mT / len(Q) ** 0.5).softmax(-1), "the number of rows of Q is used"),
        (lambda Q, K: (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(0), "runs along the first axis"),
        (lambda Q, K: (K @ Q.mT / Q.shape[-1] ** 0.5).softmax(-1), "Q and K are exchanged"),
        (lambda Q, K: (Q @ K.mT / Q.shape[-1] ** 0.5).exp(), "are not divided by their sum"),
        (
            lambda Q, K: (Q @ Q.mT / Q.shape[-1] ** 0.5).softmax(-1),
            "its argument K: Q is used where K belongs",
        ),
        (lambda Q, K: (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1).sum(0), "The reason: "),
        (lambda Q, K: (Q @ K.mT).pow(3).cumsum(0).cos(), "wrong values in "),
    ],
)
def test_a_mistake_that_nobody_listed_is_named(wrong, said):
    assert families.family(toy).singles  # a busy or slow machine has no time for all of them while it searches
    before = time.process_time()
    with pytest.raises(Mistake, match=re.escape(said)):
        toy.check(wrong)
    assert time.process_time() - before < 2.5


@pytest.mark.types_unchecked
def test_every_row_of_the_table_applies_to_some_answer():
    applied = set()
    for exercise in EXERCISES.values():
        if not isinstance(exercise, Summit):
            family = families.family(exercise)
            applied |= {edit.row for edit in edits(family.context())}
    rows = [row for block in near_miss_table() for row in block.rows]
    assert not [row.text for row in rows if row.line not in applied]


# The first line of each is what an answer does; the second, what a program of the same values does.
@pytest.mark.types_unchecked
@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda Q, K: (-(Q @ K.mT) / Q.shape[-1] ** 0.5).softmax(-1), "the sign within the softmax is turned"),
        (
            lambda Q, K: torch.nn.functional.softmin(Q @ K.mT / Q.shape[-1] ** 0.5, -1),
            "the values are those that come out when the sign within the softmax is turned",
        ),
    ],
)
def test_what_the_program_does_not_bear_out_is_told_as_what_comes_out(wrong, said):
    with pytest.raises(Mistake, match=f"^scaled: {said}"):
        toy.check(wrong)


def test_a_right_answer_costs_nothing_and_makes_no_near_misses(capsys):
    fresh = Exercise("scaled", scaled, draw)
    fresh.check(lambda Q, K: torch.softmax(torch.einsum("td,sd->ts", Q, K) / Q.shape[1] ** 0.5, 1))
    assert capsys.readouterr().out == "scaled: correct\n"
    assert id(fresh) not in families._families


def longest(values):
    best = run = 0
    for value in values:
        run = run + 1 if value > 0 else 0
        best = max(best, run)
    return torch.tensor(best)


def stretches(values):
    signs = "".join("+" if value > 0 else " " for value in values)
    return [len(run) for run in signs.split()] or [0]


counting = Exercise(
    "longest", longest, lambda generator: {"values": torch.randn(12, generator=generator, dtype=torch.float64)}
)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda values: (values > 0).sum(), "the count is never begun again"),
        (lambda values: torch.tensor(stretches(values)[0]), "only the first stretch is looked at"),
        (lambda values: torch.tensor(stretches(values)[-1]), "the last one is kept"),
        (lambda values: (at := (values > 0).nonzero()[:, 0])[-1] - at[0] + 1, "what lies between the first stretch"),
    ],
)
def test_a_loop_that_counts_wrongly_is_named(wrong, said):
    assert families.family(counting).singles
    with pytest.raises(Mistake, match=re.escape(said)):
        counting.check(wrong)


def parities(bits):
    running, tokens = bits[0], []
    for bit in bits[1:]:
        both = running * bit
        running = running + bit - 2 * both
        tokens.append(both)
    return torch.stack(tokens)


def test_a_variable_is_not_read_as_what_it_would_be_now():
    """The new parity is not the AND without a factor, though ``running`` is the new one where ``both`` is used."""
    exercise = Exercise("parities", parities, lambda generator: {"bits": torch.randint(2, (6, 8), generator=generator)})
    with pytest.raises(
        Mistake, match="the value that begins as the first of bits is used where what is computed from bits belongs"
    ):
        exercise.check(lambda bits: bits.cumsum(0)[1:] % 2)


def picked(table, rows, columns):
    for _ in range(6):
        columns = table[rows, columns].long() % len(table)
    return columns


@pytest.mark.types_unchecked
def test_what_grows_in_a_loop_is_no_near_miss():
    def places(generator):
        table = torch.randint(20, (20, 20), generator=generator)
        return {"table": table, "rows": torch.arange(20), "columns": torch.randint(20, (20,), generator=generator)}

    exercise = Exercise("picked", picked, places)
    before = time.process_time()
    assert families.family(exercise).singles
    assert time.process_time() - before < 2.5


def halvings(values):
    rounds = torch.zeros_like(values)
    while (values > 1).any():
        rounds = rounds + (values > 1)
        values = values / 2
    return rounds


def halvings_to_two(values):
    rounds = torch.zeros_like(values)
    while (values > 2).any():
        rounds = rounds + (values > 2)
        values = values / 2
    return rounds


def test_a_near_miss_that_never_ends_is_none():
    exercise = Exercise("halvings", halvings, lambda generator: {"values": 50 * torch.rand(9, generator=generator)})
    assert len(families.family(exercise).singles) > 100  # among them: what is not halved, but doubled
    with pytest.raises(Mistake, match="the number 2 stands where 1 belongs"):
        exercise.check(halvings_to_two)


def fitted(columns, values):
    return columns @ torch.linalg.lstsq(columns, values[:, None]).solution


def test_least_squares_of_too_low_a_rank_are_the_same_each_time():
    def drawn(generator):
        return {"columns": torch.randn(6, 3, generator=generator), "values": torch.randn(6, generator=generator)}

    family = families.family(Exercise("fitted", fitted, drawn))
    generator = torch.Generator().manual_seed(1)
    columns = torch.cat([torch.randn(6, 3, generator=generator), torch.zeros(6, 1)], 1).double()
    values = torch.randn(6, generator=generator).double()
    with family.guard:
        said = torch.stack([called(fitted, [columns, values]) for _ in range(300)])
    due = torch.from_numpy(columns.numpy() @ np.linalg.pinv(columns.numpy()) @ values.numpy())[:, None]
    torch.testing.assert_close(said, due.expand_as(said))
