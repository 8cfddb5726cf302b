"""The claims of the talks: each names what there is, and what became of it follows from its rows."""

import re
import tomllib
from pathlib import Path

import pytest

from companion.lesson.claims import PUBLISHED, bibliography
from companion.workshop.talks import LEFT_OUT, OWN, SEVERAL, SHOWN, TalkClaim, outcomes_in_all, talks, verdicts_of

VERDICTS = {"01:a": "reproduced", "01:b": "different", "02:a": "reproduced", "03:own": ""}
STATEMENTS = {
    f"{path.name[:2]}:{id}"
    for path in PUBLISHED.glob("*.toml")
    for id in tomllib.loads(path.read_text(encoding="utf-8"))
}
LESSONS = {path.name[:2] for path in Path(__file__).parents[2].glob("lessons/[0-9]*")}
CLAIMS = [claim for found in talks().values() for claim in found]


def claim(rows: str, lessons: str = "01", note: str = "") -> TalkClaim:
    return TalkClaim("X1", "a claim", tuple(lessons.split()), tuple(rows.split()), note)


@pytest.mark.parametrize(
    ("rows", "lessons", "outcome"),
    [
        ("01:a", "01", "reproduced"),
        ("01:a 02:a 03:own", "01", "reproduced"),
        ("01:a 01:b", "01", SEVERAL),
        ("03:own", "03", OWN),
        ("", "03", SHOWN),
        ("", "", LEFT_OUT),
    ],
)
def test_rows_say_what_became_of_a_claim(rows, lessons, outcome):
    assert claim(rows, lessons).outcome(VERDICTS) == outcome


def test_outcomes_are_counted():
    found = [claim("01:a"), claim("02:a"), claim("", "", "why")]
    assert outcomes_in_all(found, VERDICTS) == "Of 3 claims: 2 reproduced; 1 not covered."


def test_verdicts_are_named_by_lesson_and_claim():
    report = {"lessons": [{"lesson": "07-doubling", "claims": [{"id": "doubles", "verdict": "reproduced"}]}]}
    assert verdicts_of(report) == {"07:doubles": "reproduced"}


def test_each_talk_is_cited_and_each_claim_has_a_number_of_its_own():
    assert set(talks()) <= set(bibliography().entries)
    assert len({each.id for each in CLAIMS}) == len(CLAIMS) > 250


@pytest.mark.parametrize("each", CLAIMS, ids=lambda each: each.id)
def test_a_claim_names_what_there_is(each):
    assert set(each.rows) <= STATEMENTS
    assert {row[:2] for row in each.rows} <= set(each.lessons) <= LESSONS
    assert each.lessons or each.note
    assert not each.note or re.fullmatch(r"[A-Z`].+\.", each.note)
