"""The page of the talks, read as a person reads it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from sample_lesson import CLAIM, FACTS

from companion.workshop.site import talks
from companion.workshop.site.course import Chapter, Course
from companion.workshop.talks import TalkClaim


@pytest.fixture
def page(monkeypatch) -> str:
    told = [
        TalkClaim("S01", "x < 1 & y", ("01",), ("01:doubles",), "Of two numbers."),
        TalkClaim("S02", "z", (), (), "Not covered: a view."),
    ]
    monkeypatch.setattr(talks, "talks", lambda: {"sharan2024": told})
    entry = {"lesson": "01-a", "scale": "smoke", "seed": 3, "claims": [CLAIM | {"id": "doubles"}]}
    return talks.page(Course(Path(), [Chapter("01-a", FACTS, Path("01-a.ipynb"), Path(), entry)]))


def test_a_claim_opens_on_where_it_stands(page):
    first, second = ElementTree.fromstring(page[page.index('<div class="claims">') :]).iter("details")
    assert ["".join(each.find("summary").itertext()) for each in (first, second)] == [
        "reproduced x < 1 & y 01 · Sharan 2024",
        "not covered z Sharan 2024",
    ]
    assert ["".join(each.itertext()) for each in first.iter("dd")] == [
        "Of two numbers.",
        f"01 · {FACTS['title']}",
        f"{CLAIM['statement']}: reproduced",
    ]
    assert [each.get("href") for each in first.iter("a")] == ["lessons/01-a/01-a.html", "claims.html#01-doubles"]


def test_one_chooses_talk_and_verdict(page):
    assert "- **Sharan 2024.** Of 2 claims: 1 reproduced; 1 not covered." in page
    assert '<select name="talk"><option value="">all</option><option>Sharan 2024</option></select>' in page
    assert 'data-talk="Sharan 2024" data-verdict="not covered"' in page
