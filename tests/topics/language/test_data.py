import pytest

from companion.topics.language.data import SENTENCES, indirect_objects


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


def test_no_sentences_are_refused():
    with pytest.raises(ValueError, match="count = 0: must be at least 1"):
        indirect_objects(0)


def test_there_are_four_sentences_to_look_at():
    assert len(set(SENTENCES)) == 4
