"""Facts and the sentences that tell them, counted."""

from collections import Counter
from itertools import permutations, product

import torch
from laws import drawn, laws
from refusals import refusals

from companion.topics.facts.data import World, counts, every_fact, random_world, sentences

WORLD = random_world(12, 3, 4, noise=5, generator=1)


def test_every_relation_shares_its_own_answers_evenly():
    assert WORLD.table.shape == (12, 3)
    for relation, column in enumerate(WORLD.table.mT):
        values, often = column.unique(return_counts=True)
        assert values.tolist() == list(range(4 * relation, 4 * relation + 4))
        assert often.tolist() == [3, 3, 3, 3]


TINY = random_world(3, 2, 2, noise=2)  # words: three subjects, two relations, two of noise, the end
TOLD = Counter()
for subject, relation, *noise, places in product(range(3), range(2), (5, 6), (5, 6), permutations(range(4), 2)):
    said = dict(zip((*places, *({0, 1, 2, 3} - {*places})), (subject, 3 + relation, *noise), strict=True))
    TOLD[*(said[t] for t in range(4)), 7, subject, relation, TINY.table[subject, relation].item()] += 1

test_draws_follow_their_laws = laws(
    (
        drawn(1000, lambda g: tuple(random_world(3, 2, 2, generator=g).table.mT.flatten().tolist())),
        [
            tuple(i % 2 + 2 * r for r, order in enumerate(orders) for i in order)
            for orders in product(permutations(range(3)), repeat=2)
        ],
    ),
    (lambda g: torch.column_stack(sentences(20_000, TINY, 5, generator=g)), TOLD),
)


def test_a_part_of_the_world_can_be_asked_about():
    drawn = sentences(400, WORLD, 6, subjects=5, relations=2, generator=4)
    assert set(drawn.subject.tolist()) == set(range(5))
    assert set(drawn.relation.tolist()) == {0, 1}


def test_every_fact_is_told_as_often():
    drawn = every_fact(WORLD, 7, rounds=2, generator=5)
    assert (drawn.subject * 3 + drawn.relation).tolist() == [*range(36), *range(36)]
    assert torch.equal((drawn.tokens < 12).sum(1), torch.ones(72, dtype=torch.long))


def test_counts_count():
    tokens = torch.tensor([[0, 3, 3, 5], [1, 1, 1, 5]])
    assert counts(tokens, 6).tolist() == [[1, 0, 0, 2, 0, 1], [0, 3, 0, 0, 0, 1]]


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: random_world(0, 2, 1), "subjects = 0"),
    (lambda: random_world(4, 0, 1), "relations = 0"),
    (lambda: random_world(4, 2, 0), "answers = 0"),
    (lambda: random_world(4, 2, 5), "answers = 5: must be at most subjects = 4"),
    (lambda: random_world(4, 2, 2, noise=0), "noise = 0"),
    (lambda: sentences(0, WORLD, 5), "batch = 0"),
    (lambda: sentences(2, WORLD, 2), "length = 2: must be at least 3"),
    (lambda: sentences(2, WORLD, 5, subjects=13), "subjects = 13: must be 1 to 12"),
    (lambda: sentences(2, WORLD, 5, relations=4), "relations = 4: must be 1 to 3"),
    (lambda: every_fact(WORLD, 5, rounds=0), "rounds = 0"),
    (lambda: every_fact(WORLD, 2), "length = 2"),
    (lambda: counts(torch.tensor([[0, 6]]), 6), "tokens: 6 is out of range; must be 0 to 5"),
    (lambda: counts(torch.tensor([[0, -1]]), 6), "tokens: -1 is out of range"),
)


def test_a_world_names_its_sizes():
    assert (WORLD.subjects, WORLD.relations, WORLD.words, WORLD.all_answers, WORLD.end) == (12, 3, 21, 12, 20)
    assert isinstance(WORLD, World)
