"""What the taster shows where there is no model."""

import pytest

from companion.core.measuring import measured_table
from companion.pretrained.lesson import language_model
from companion.pretrained.taster import HEADS, SPOKEN, TEXT, stand_ins, stored_pattern


@pytest.fixture(scope="module")
def table():
    return measured_table("language-first-look")


def test_a_pattern_is_read_as_it_was_stored(table):
    words = TEXT.replace(",", " ,").split()
    for name in [*HEADS, "head 18.6, cut"]:
        pattern = stored_pattern(table, name)
        assert pattern.shape == (len(words), len(words)) and (pattern.triu(1) == 0).all()
        assert ((pattern.sum(1) - 1).abs() < 1e-3).all()


def test_what_is_stored_is_what_the_taster_says_of_it(table):
    """It ends its sentence; at the last word 18.6 looks at what followed the first time, and with the wire cut at the
    first word; the model knows it all the same.
    """
    assert "".join(table.where(what="says").columns["word"]).endswith("not a planet.")
    whole, cut = (stored_pattern(table, name)[-1] for name in ("head 18.6", "head 18.6, cut"))
    assert whole.argmax() == TEXT.replace(",", " ,").split().index("stone") and whole.max() > 0.8
    assert cut.argmax() == 0 and cut[0] > 0.9
    assert stored_pattern(table, "head 16.0").diagonal(-1).mean() > 0.8
    for what in ("next", "next, cut"):
        last = table.where(what=what).rows[-1]
        assert last["word"] == " stone" and last["value"] > 0.8


def test_what_stands_in_has_a_row_for_each_thing_that_is_shown():
    rows = stand_ins(language_model("smollm2", "smoke"))
    counts = {what: sum(row["what"] == what for row in rows) for what in dict.fromkeys(row["what"] for row in rows)}
    length = counts["next"]
    patterns = dict.fromkeys([*HEADS, "head 18.6, cut"], length * (length + 1) // 2)
    assert counts == {"says": SPOKEN, "next": length, "next, cut": length} | patterns
    look = {cut: [row["value"] for row in rows if row["what"] == f"head 18.6{cut}"] for cut in ("", ", cut")}
    assert look[""] != look[", cut"]
