"""Words, phrases that repeat and conjunctions are what their docstrings say, for other sizes and seeds too."""

from itertools import permutations, product

import pytest
import torch
from laws import drawn, laws
from refusals import refusals

from companion.topics.attention.data import Vocabulary, conjunctions, families, repetitions, shuffled_facts


def test_words_and_numbers_go_both_ways():
    vocabulary = Vocabulary(["the", "cat", "saw", "the", "dog"])
    assert (len(vocabulary), vocabulary.words) == (4, ["the", "cat", "saw", "dog"])
    numbers = vocabulary.encode(["the", "dog", "saw", "the", "cat"])
    assert numbers.tolist() == [0, 3, 2, 0, 1]
    assert vocabulary.decode(numbers) == ["the", "dog", "saw", "the", "cat"]


test_what_is_no_sentence_of_the_vocabulary_is_refused = refusals(
    (["the", "fish"], "unknown token 'fish'.*'the', 'cat'"),
    (["the"], "words = .*at least 2"),
    ([], "words = "),
    of=lambda words: Vocabulary(["the", "cat"]).encode(words),
)


@pytest.mark.parametrize(
    ("length", "vocabulary", "shortest", "longest"), [(40, 32, 6, 14), (12, 5, 2, 5), (30, 9, 9, 9)]
)
def test_a_phrase_of_different_tokens_is_said_over_and_over(length, vocabulary, shortest, longest):
    tokens, periods = drawn = repetitions(300, length, vocabulary, shortest=shortest, longest=longest, generator=3)
    assert drawn.settled.tolist() == [[t >= period for t in range(1, length)] for period in periods.tolist()]
    assert tokens.shape == (300, length)
    assert periods.unique().tolist() == list(range(shortest, longest + 1))
    for sequence, period in zip(tokens.tolist(), periods.tolist(), strict=True):
        assert len(set(sequence[:period])) == min(period, length)
        assert all(sequence[t] == sequence[t - period] for t in range(period, length))


@pytest.mark.parametrize("seed", range(4))
def test_the_answers_to_a_question_about_families_stand_in_its_facts(seed):
    text, mother, profession = families(seed)
    told, _, question = text.rpartition(" . ")
    facts = f"{told} .".split(" . ")
    assert len(facts) == len(set(facts)) == 12
    assert f"The mother of John is {mother}" in " . ".join(facts)
    assert f"{mother} is a {profession}" in " . ".join(facts)
    assert question == "What is the profession of John 's mother ?"
    assert families(seed) == (text, mother, profession) != families(seed + 1)


NAMES = ["Ann", "Bob", "Cy"]
PHRASES = [phrase for n in (2, 3) for phrase in permutations(range(3), n)]  # six of either length
FACTS = [  # who is asked about, whom each likes, and the order of the facts
    (" ".join(["<s>", *(f"{a} likes {likes[a]} ." for a in order), name]), [likes[name], likes[likes[name]]])
    for likes in ({"Ann": "Bob", "Bob": "Cy", "Cy": "Ann"}, {"Ann": "Cy", "Cy": "Bob", "Bob": "Ann"})
    for name, order in product(NAMES, permutations(NAMES))
]


def facts_of_family(generator):
    """John's mother and what she does, as thirds of their lists; and in which halves of the text it is said."""
    text, mother, profession = families(generator)
    facts = text.split(" . ")
    told = f"The mother of John is {mother}", f"{mother} is a {profession}"
    return (
        "HEAIRV".index(mother[0]) // 2,
        "dtbpjn".index(profession[0]) // 2,
        *(facts.index(fact) // 6 for fact in told),
    )


def which_bit(generator):
    """The place of the one bit that the label is."""
    xs, ys = conjunctions(64, 3, 1, which=generator, generator=5)
    return [torch.equal(x > 0, ys > 0) for x in xs.T].index(True)


test_draws_follow_their_laws = laws(
    (
        lambda g: torch.column_stack(repetitions(30_000, 5, 3, shortest=2, longest=3, generator=g)),
        [(*(phrase[t % len(phrase)] for t in range(5)), len(phrase)) for phrase in PHRASES],
    ),
    (
        drawn(1500, lambda g: " ".join([*(text := shuffled_facts(NAMES, hops=2, generator=g)).words, *text.answers])),
        [" ".join([words, *answers]) for words, answers in FACTS],
    ),
    (
        drawn(400, facts_of_family),
        [(m // 2, p // 2, a // 6, b // 6) for m in range(6) for p in range(6) for a, b in permutations(range(12), 2)],
    ),
    (drawn(600, which_bit), range(3)),
    (
        lambda g: torch.column_stack(conjunctions(20_000, 3, 3, generator=g)),
        {
            (*bits, float(bits == (1, 1, 1))): 0.5 ** (bits.count(1) / 3) * (1 - 0.5 ** (1 / 3)) ** bits.count(-1)
            for bits in product((-1, 1), repeat=3)
        },
    ),
)


@pytest.mark.parametrize(("count", "hops", "seed"), [(5, 4, 0), (12, 4, 1), (3, 1, 2)])
def test_the_facts_say_what_the_answers_need(count, hops, seed):
    names = [f"name{i}" for i in range(count)]
    words, answers = shuffled_facts(names, hops=hops, generator=seed)
    assert (words[0], len(words)) == ("<s>", 4 * count + 2)
    facts = [words[i : i + 4] for i in range(1, len(words) - 1, 4)]
    assert {(verb, stop) for _, verb, _, stop in facts} == {("likes", ".")}
    likes = {subject: found for subject, _, found, _ in facts}
    assert set(likes) == set(likes.values()) == set(names)
    name = words[-1]
    for answer in answers:
        name = likes[name]
        assert name == answer
    assert len({words[-1], *answers}) == hops + 1


@pytest.mark.parametrize("support", [1, 3, 5])
def test_a_conjunction_is_the_and_of_some_bits_and_true_half_of_the_time(support):
    xs, ys = conjunctions(20_000, 12, support, which=5, generator=6)
    assert set(xs.unique().tolist()) == {-1.0, 1.0}
    assert ys.mean().item() == pytest.approx(0.5, abs=0.02)
    always = [bit for bit in range(12) if (xs[ys > 0, bit] > 0).all()]
    assert len(always) == support
    assert torch.equal(ys, (xs[:, always] > 0).all(1).float())


def test_the_rule_is_one_seed_and_the_samples_another():
    first, again = conjunctions(200, 9, which=1, generator=2), conjunctions(200, 9, which=1, generator=2)
    assert torch.equal(first.xs, again.xs)
    assert torch.equal(first.ys, again.ys)
    other_rule = conjunctions(200, 9, which=3, generator=2)
    assert torch.equal(first.xs, other_rule.xs)
    assert not torch.equal(first.ys, other_rule.ys)
    assert not torch.equal(first.xs, conjunctions(200, 9, which=1, generator=4).xs)


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: repetitions(0, 10, 12), "batch = 0"),
    (lambda: repetitions(3, 1, 12), "length = 1"),
    (lambda: repetitions(3, 10, 9), "vocabulary = 9: must be at least 10"),
    (lambda: repetitions(3, 10, 12, shortest=1), "shortest = 1"),
    (lambda: repetitions(3, 10, 12, shortest=6, longest=5), "longest = 5: must be at least shortest = 6"),
    (lambda: shuffled_facts(["a", "b", "a"], hops=1), "names = .*must be different"),
    (lambda: shuffled_facts(["a", "b"], hops=2), r"at least hops \+ 1 = 3"),
    (lambda: shuffled_facts(["a", "b"], hops=0), "hops = 0"),
    (lambda: conjunctions(0, 8), "batch = 0"),
    (lambda: conjunctions(4, 1), "length = 1"),
    (lambda: conjunctions(4, 8, 0), "support = 0"),
    (lambda: conjunctions(4, 8, 9), "support = 9: must be at most length = 8"),
)
