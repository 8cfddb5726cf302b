"""The pages that are not lessons."""

import re
import tomllib
from pathlib import Path

from sample_lesson import CLAIM, FACTS

from companion.workshop.site import pages
from companion.workshop.site.course import Chapter

ROOT = Path(__file__).resolve().parents[3]


def chapter(name: str, *needs: str) -> Chapter:
    entry = {"scale": "smoke", "seed": 3, "claims": [CLAIM]}
    return Chapter(name, FACTS | {"needs": list(needs)}, Path(), Path(), entry)


def test_the_map_draws_an_arrow_for_each_need():
    drawn = pages.map_of(
        [chapter("01-a"), chapter("02-b", "sums"), chapter("03-c", "lesson 01: sums", "lesson 02: more")]
    )
    assert drawn.count("<path") == 2
    assert re.findall(r'href="lessons/([^/]+)/', drawn) == ["01-a", "02-b", "03-c"]
    assert 'aria-label="Which lesson needs which: 03 needs 01 and 02"' in drawn


def test_the_map_has_a_column_for_what_comes_after_what():
    lessons = [chapter("01-a"), chapter("02-b", "lesson 01: sums"), chapter("03-c"), chapter("04-d", "lesson 02: more")]
    places = re.findall(r'<rect x="(\d+)" y="(\d+)"', pages.map_of(lessons))
    first, second, third, fourth = ((int(x), int(y)) for x, y in places)
    assert first[0] == third[0] < second[0] < fourth[0]
    assert first[1] == second[1] == fourth[1] < third[1]


def test_the_shipped_checkpoints_say_how_they_were_made():
    page = pages.checkpoints_page(ROOT / "companion/weights")
    there = len(list((ROOT / "companion/weights").glob("*.safetensors")))
    assert page.startswith(f"# How it was made\n\n{there} checkpoints are shipped")
    assert page.count("<tr><td>") == there


def test_the_glossary_is_sorted_and_every_term_is_looked_for():
    terms = tomllib.loads(pages.GLOSSARY.read_text(encoding="utf-8"))
    assert list(pages.mentions()) == list(terms)
    bigram = pages.mentions()["bigram"]
    assert [bigram.search(text)[0] for text in ("a Bigram, and", "two bigrams")] == ["Bigram", "bigrams"]
    assert not bigram.search("a non-bigram, bigramsy")
    assert (
        pages.glossary().index("\nablation\n")
        < pages.glossary().index("\nLSTM\n")
        < pages.glossary().index("\ntrigger\n")
    )


def test_the_reference_has_a_page_for_each_room():
    texts = pages.reference(("companion.core.lstm", "companion.core.decoder", "companion.topics.regression.data"))
    assert list(texts) == ["reference/core.md", "reference/topics-regression.md", "reference/index.md"]
    assert texts["reference/core.md"].count("automodule") == 2
