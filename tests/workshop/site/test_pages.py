"""The pages that are not lessons."""

import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
from sample_lesson import CLAIM, FACTS

import companion
from companion.workshop.cli.lessons import all_lessons
from companion.workshop.site import pages
from companion.workshop.site.course import Chapter, Course

ROOT = Path(__file__).resolve().parents[3]


def chapter(name: str, *needs: str) -> Chapter:
    entry = {"scale": "smoke", "seed": 3, "claims": [CLAIM]}
    return Chapter(name, FACTS | {"needs": list(needs)}, Path(), Path("figure.png"), entry)


def test_a_path_leads_to_lessons_that_are_there_each_after_what_it_builds_on_and_each_is_on_one():
    there = {lesson.name[:2]: chapter("", *lesson.facts()["needs"]).needed() for lesson in all_lessons(ROOT)}
    assert set().union(*pages.PATHS.values()) == set(there), (
        "put it on a path: PATHS in companion/workshop/site/pages.py"
    )
    for name, numbers in pages.PATHS.items():
        for place, number in enumerate(numbers):
            assert not set(there[number]) & set(numbers[place + 1 :]), f"{name}: {number} comes too early"
    assert pages.paths([chapter("01-a"), chapter("03-c")]).splitlines()[:2] == [
        "- **Three evenings**: [01](lessons/01-a/01-a.ipynb)",
        "- **Learning in context**: [03](lessons/03-c/03-c.ipynb)",
    ]


def test_a_card_has_a_picture_and_says_what_comes_before(tmp_path):
    page = pages.front(Course(ROOT, [chapter("01-a"), chapter("02-b", "sums", "lesson 01: more")]))
    assert page.count(":img-top: lessons/") == 2 and ":img-top: lessons/02-b/figure.png" in page
    assert "```\npython3 -m companion lab\n" in page
    assert "*5 minutes, after 01. Published claims: 1 reproduced" in page
    own = chapter("01-a")
    own.entry["claims"] = [CLAIM | {"kind": "course", "verdict": ""}]
    assert "*5 minutes. Published claims: none*" in pages.front(Course(ROOT, [own]))


def test_the_first_page_begins_with_a_model_and_has_a_door_for_each_who_comes():
    taster, model = chapter("00-first"), chapter("15-model")
    taster.entry["claims"] = []
    page = pages.front(Course(ROOT, [taster, chapter("05-memory"), model]))
    picture = "[![Doubling](lessons/15-model/figure.png)](lessons/15-model/15-model.ipynb)"
    assert page.index("**Point at a word") < page.index(picture) < page.index("python3 -m companion lab")
    doors = dict(re.findall(r"grid-item-card\} ([A-Z][a-z ]+)\n:link: (\S+)", page))
    assert doors == {
        "Learn": "lessons/00-first/00-first",
        "Teach": "teaching",
        "Do research": "claims",
        "Open models": "reference/index",
        "Prove": "lessons/05-memory/05-memory",
        "Maintain": "made",
    }
    assert page.count("*5 minutes*") == 1 and page.count("*5 minutes. Published claims:") == 2, "a taster makes none"


def test_the_tour_leads_to_every_public_name_and_each_that_it_names_is_there():
    listed = pages.TOUR.read_text(encoding="utf-8").split("## ")[0]
    missing = [name for name in companion.__all__ if f"`{name}`" not in listed]
    assert not missing, f"say in companion/workshop/site/tour.md what others may use of {missing}"
    for topic, line in re.findall(r"^- `(\w+)`: (.*)$", listed, re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", line):
            pkgutil.resolve_name(f"companion.{topic}.{name}")


EXAMPLES = re.findall(r"```python\n(.*?)```", pages.TOUR.read_text(encoding="utf-8"), re.DOTALL)
SAID = (
    r"gradient descent: most similar at step \d+, 0\.\d\d\nNewton: .*\nleast squares: .*\n",
    r"(\d hops: -?\d\.\d\d, floor 0\.\d\d, ceiling 1\.00\n){3}",
    r"\w+: after 10 examples 0\.\d\d, after 40 \d\.\de-1\d\n",
    r"regression-isotropic, 16000 steps; a pattern is \(64, 4, 21, 21\)\nwhole: error 0\.00\d\n.*error 0\.01\d\n",
)


@pytest.mark.parametrize(
    ("example", "said"), list(zip(EXAMPLES, SAID, strict=True)), ids=["compare", "bench", "draw", "open"]
)
def test_each_example_of_the_tour_runs_and_is_short(example, said, capsys):
    exec(example, {})
    assert re.fullmatch(said, capsys.readouterr().out)
    assert len(example.splitlines()) <= 20


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
