"""Facts and the sentences that tell them, counted."""

import torch
from refusals import refusals

from companion.topics.facts.data import World, counts, every_fact, random_world, sentences

WORLD = random_world(12, 3, 4, noise=5, generator=1)


def test_every_relation_shares_its_own_answers_evenly():
    assert WORLD.table.shape == (12, 3)
    for relation, column in enumerate(WORLD.table.mT):
        values, often = column.unique(return_counts=True)
        assert values.tolist() == list(range(4 * relation, 4 * relation + 4))
        assert often.tolist() == [3, 3, 3, 3]


def test_relations_do_not_share_an_order():
    table = random_world(60, 2, 6, generator=3).table
    assert (table[:, 0] == table[:, 1] - 6).float().mean() < 0.4


def test_a_sentence_tells_one_subject_one_relation_noise_and_the_end():
    tokens, subject, relation, answer = sentences(500, WORLD, 9, generator=2)
    assert tokens.shape == (500, 9)
    assert (tokens[:, -1] == WORLD.end).all()
    for row, s, r, a in zip(tokens[:, :-1].tolist(), subject.tolist(), relation.tolist(), answer.tolist(), strict=True):
        assert [word for word in row if word < 12] == [s]
        assert [word for word in row if 12 <= word < 15] == [12 + r]
        assert all(15 <= word < 20 for word in row if word >= 15)
        assert WORLD.table[s, r] == a


def test_places_and_words_are_uniform():
    tokens, subject, relation, _ = sentences(20_000, WORLD, 6, generator=3)
    assert torch.bincount(subject, minlength=12).float().std() < 5 * (20_000 / 12) ** 0.5 / 3
    assert torch.bincount(relation, minlength=3).min() > 6400
    where = (tokens < 12).float().argmax(1)
    assert torch.bincount(where, minlength=5).min() > 3700
    assert torch.bincount(tokens[tokens >= 15] - 15, minlength=6)[:5].min() > 11_500


def test_a_part_of_the_world_can_be_asked_about():
    drawn = sentences(400, WORLD, 6, subjects=5, relations=2, generator=4)
    assert set(drawn.subject.tolist()) == set(range(5))
    assert set(drawn.relation.tolist()) == {0, 1}


def test_every_fact_is_told_as_often():
    drawn = every_fact(WORLD, 7, rounds=2, generator=5)
    assert torch.bincount(drawn.subject * 3 + drawn.relation).tolist() == [2] * 36
    assert torch.equal((drawn.tokens < 12).sum(1), torch.ones(72, dtype=torch.long))


def test_counts_count():
    tokens = torch.tensor([[0, 3, 3, 5], [1, 1, 1, 5]])
    assert counts(tokens, 6).tolist() == [[1, 0, 0, 2, 0, 1], [0, 3, 0, 0, 0, 1]]


def test_the_same_seed_gives_the_same_sentences():
    first, again = (sentences(50, WORLD, 8, generator=9) for _ in range(2))
    assert torch.equal(first.tokens, again.tokens)
    assert not torch.equal(first.tokens, sentences(50, WORLD, 8, generator=10).tokens)


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
