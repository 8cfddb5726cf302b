"""First guesses: of two hundred facts, of which some are invented."""

import pytest

from companion.pretrained.facts import FIRST_GUESSES
from companion.pretrained.guesses import guessed
from companion.pretrained.lesson import language_model


def test_two_hundred_facts_are_asked_for_and_guessed_among_all_words_and_among_the_answers():
    assert sum(len(facts) for _, facts in FIRST_GUESSES.values()) == 200
    model = language_model("smollm2", "smoke")
    rows = guessed(model, 0, 3)
    assert [row["kind"] for row in rows[:6]] == 3 * ["capital"] + 3 * ["invented"] and len(rows) == 18
    assert not any(row["right"] or row["right_among"] for row in rows[3:6])
    prompt, facts = FIRST_GUESSES["capital"]
    likely = model(model.batch([prompt.format("Germany")]), only_last=True)[0, -1].softmax(-1)
    answers = likely[[model.encode(f" {facts[country]}")[0] for country in ("France", "Germany", "Italy")]]
    assert rows[1]["subject"] == "Germany" and rows[1]["p"] == pytest.approx(likely.max().item())
    assert rows[1]["p_among"] == pytest.approx((answers.max() / answers.sum()).item())
    assert rows[1]["right_among"] == int(answers.argmax() == 1)
