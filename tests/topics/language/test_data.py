import re
from itertools import combinations, permutations, product

import pytest
import torch
from laws import drawn, laws
from refusals import refusals

from companion.topics.language.data import (
    HOPS,
    INVENTED,
    MOODS,
    NAMES,
    PLACES,
    RELATIONS,
    REMARKS,
    SENTENCES,
    THINGS,
    WORDINGS,
    hop_questions,
    indirect_objects,
    invented_countries,
    known_facts,
    mood_questions,
    paragraphs,
    said_again,
)


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_giver_comes_again_in_either_order_and_another_name_in_the_others(wording):
    drawn = indirect_objects(20, wording=wording, generator=1)
    first = 0
    for text, other, receiver, giver in zip(*drawn, strict=True):
        words = text.replace(",", "").split()
        assert (words.count(giver), words.count(receiver)) == (2, 1)
        [(was, third)] = [(a, b) for a, b in zip(words, other.replace(",", "").split(), strict=True) if a != b]
        assert was == giver and third not in words
        first += words[1] == giver
    assert first == 10


def test_wordings_have_nothing_in_common_and_sentences_take_turns():
    lesson, other = ({word for part in each[:3] for word in part.split()} for each in WORDINGS.values())
    assert not lesson & other
    begun = [text.split()[0] for text in indirect_objects(8, wording="other").texts]
    assert begun == [word for word in ("While", "After", "Since", "Before") for _ in range(2)]
    with pytest.raises(ValueError, match="wording = 'mine': must be one of lesson, other"):
        indirect_objects(2, wording="mine")


def handed_over(generator):
    """In which half of the names giver and receiver are, in which third the place, and in which half the thing."""
    [text], _, [receiver], [giver] = indirect_objects(1, generator=generator)
    words = re.findall(r"\w+", text)
    assert words[1::2][:1] + words[3:4] == [giver, receiver]
    lists = (NAMES, 8), (NAMES, 8), (PLACES, 2), (THINGS, 3)
    return tuple(each.split().index(words[at]) // n for (each, n), at in zip(lists, (1, 3, 7, 11), strict=True))


def order_told(generator):
    """The order in which the first three children's mothers' teachers are told, and of whom it is asked."""
    [(text, teachers, right)] = hop_questions(HOPS[1], 1, generator=generator)
    return *sorted(range(3), key=lambda i: text.index(f"is {teachers[i]}.")), right


def moods_told(generator):
    """The order of six moods, and in which half of its list the last remark stands."""
    [(text, _, _)] = mood_questions(1, generator=generator)
    *told, last = text.split("\n")
    return *(line.endswith(MOODS[1]) for line in told), REMARKS[0].split(", ").index(last[:-1]) // 4


def again_law(again):
    """The law of four of three tokens, said again, or not, after two or three, and of the mask of the second saying."""
    for period, first, anew in product((2, 3), permutations(range(3)), permutations(range(3))):
        second = first if again else anew
        yield *first[:period], *second[: 4 - period], *(t >= period for t in range(4))


COUNTRIES = ["".join(parts) for parts in product(*map(str.split, INVENTED))]
test_draws_follow_their_laws = laws(
    (
        drawn(400, handed_over),
        [(a // 8, b // 8, c, d) for a, b in permutations(range(16), 2) for c in range(3) for d in range(2)],
    ),
    (drawn(300, order_told), [(*order, 0) for order in permutations(range(3))]),
    (
        drawn(400, moods_told),
        [(*(i in up for i in range(6)), q) for up in combinations(range(6), 3) for q in range(2)],
    ),
    (
        drawn(150, lambda g: tuple(COUNTRIES.index(name) // 96 for name in invented_countries(2, generator=g))),
        [(a // 96, b // 96) for a, b in permutations(range(384), 2)],
    ),
    *(
        (lambda g, again=again: torch.cat(said_again(20_000, 4, 3, again=again, generator=g), 1), again_law(again))
        for again in (True, False)
    ),
)


def test_a_fact_is_a_subject_and_all_that_follows():
    assert known_facts("France French, Peru Peruvian Spanish") == {"France": "French", "Peru": "Peruvian Spanish"}


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


test_what_cannot_be_drawn_is_refused = refusals(
    (lambda: indirect_objects(0), "count = 0: must be at least 1"),
    (lambda: hop_questions("three hops", 1), "kind = 'three hops': must be one of one hop, one hop of six"),
    (lambda: hop_questions(HOPS[0], 0), "count = 0: must be at least 1"),
    (lambda: mood_questions(0), "count = 0: must be at least 1"),
    (lambda: invented_countries(1000), "count = 1000: must be 1 to 384"),
    (lambda: said_again(1, 16, 11, generator=torch.Generator()), "vocabulary = 11: must be at least 12"),
)


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


def test_a_relation_is_asked_of_a_subject_and_has_several_answers():
    for prompt, facts in RELATIONS.values():
        assert prompt.count("{}") == 1
        assert len(facts) >= 14 and len(set(facts.values())) >= 4


def test_the_text_is_in_paragraphs():
    assert len(paragraphs()) == len(set(paragraphs())) == 93
    assert all(len(paragraph.split()) >= 35 for paragraph in paragraphs())
