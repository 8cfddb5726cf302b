import re

import pytest
import torch

from companion.topics.language.data import (
    HOPS,
    MOODS,
    RELATIONS,
    REMARKS,
    SENTENCES,
    hop_questions,
    indirect_objects,
    invented_countries,
    mood_questions,
    paragraphs,
    said_again,
)


def test_a_giver_comes_again_in_either_order_and_another_name_in_the_others():
    drawn = indirect_objects(20, generator=1)
    first = 0
    for text, other, receiver, giver in zip(*drawn, strict=True):
        words = text.replace(",", "").split()
        assert (words.count(giver), words.count(receiver)) == (2, 1)
        [(was, third)] = [(a, b) for a, b in zip(words, other.replace(",", "").split(), strict=True) if a != b]
        assert was == giver and third not in words
        first += words[1] == giver
    assert first == 10
    assert indirect_objects(20, generator=1) == drawn != indirect_objects(20, generator=2)


@pytest.mark.parametrize("kind", HOPS)
def test_an_answer_stands_in_the_text_and_no_place_tells_it(kind):
    questions = hop_questions(kind, 30, generator=3)
    places = [re.findall(r"\w+\.", text).index(f"{choices[right]}.") for text, choices, right in questions]
    assert len(set(places)) == 3  # the answer's fact is the first, the second and the third of its kind
    for text, choices, right in questions:
        *facts, asks = (re.findall(r"[A-Z]\w+", said)[1:] for said in text.split(". "))
        told = dict(facts)
        answer = told[asks[-1]] if kind in HOPS[:2] else told[told[asks[-1]]]
        assert answer == choices[right] and len(set(choices)) == 3 and (len(told) == 6) == (kind != HOPS[0])
        assert (facts[-1] == [asks[-1], told[asks[-1]]]) == (kind == HOPS[3]) or kind in HOPS[:2]


def test_six_remarks_have_their_mood_and_the_seventh_is_another():
    lists = [remarks.split(", ") for remarks in REMARKS]
    asked = set()
    for text, choices, right in mood_questions(20):
        *told, last = text.split("\n")
        assert sorted(line.split(": ")[1] for line in told) == 3 * [MOODS[0]] + 3 * [MOODS[1]]
        assert all(line.split(": ")[0] in lists[MOODS.index(line.split(": ")[1])] for line in told)
        assert last[:-1] in lists[right] and last[:-1] not in " ".join(told) and choices == MOODS
        asked.add(last)
    assert len(asked) > 8


def test_invented_countries_are_all_others():
    assert len(set(invented_countries(100))) == 100
    assert invented_countries(5, generator=1) != invented_countries(5, generator=2)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: indirect_objects(0), "count = 0: must be at least 1"),
        (lambda: hop_questions("three hops", 1), "kind = 'three hops': must be one of one hop, one hop of six"),
        (lambda: hop_questions(HOPS[0], 0), "count = 0: must be at least 1"),
        (lambda: mood_questions(0), "count = 0: must be at least 1"),
        (lambda: invented_countries(1000), "count = 1000: must be 1 to 384"),
    ],
)
def test_what_cannot_be_drawn_is_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        asked()


def test_there_are_four_sentences_to_look_at():
    assert len(set(SENTENCES)) == 4


@pytest.mark.parametrize("again", [True, False])
def test_random_tokens_come_again_in_their_order_or_are_drawn_anew(again):
    tokens, second = said_again(40, 16, 20, again=again, generator=torch.Generator().manual_seed(0))
    periods = (~second).sum(1).tolist()
    assert set(periods) == set(range(8, 13))
    same = []
    for text, period in zip(tokens, periods, strict=True):
        assert len(text[:period].unique()) == period
        same.append(torch.equal(text[period:], text[: 16 - period]))
    assert all(same) if again else not any(same)


def test_a_saying_has_different_tokens():
    with pytest.raises(ValueError, match="vocabulary = 11: must be at least 12"):
        said_again(1, 16, 11, generator=torch.Generator())


def test_a_relation_is_asked_of_a_subject_and_has_several_answers():
    for prompt, facts in RELATIONS.values():
        assert prompt.count("{}") == 1
        assert len(facts) >= 14 and len(set(facts.values())) >= 4


def test_the_text_is_in_paragraphs():
    assert len(paragraphs()) == len(set(paragraphs())) == 93
    assert all(len(paragraph.split()) >= 35 for paragraph in paragraphs())
