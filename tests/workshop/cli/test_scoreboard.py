"""The scoreboard: all claims in CLAIMS.md, their total in the README, and both are this course's."""

import re
import tomllib
from pathlib import Path

import pytest
from sample_lesson import CLAIM, NAME, checkout

from companion.lesson.claims import statements
from companion.lesson.verdicts import NONE_PUBLISHED
from companion.workshop.cli import scoreboard
from companion.workshop.cli.lessons import all_lessons, everything
from companion.workshop.cli.release import readme_table

ROOT = Path(__file__).resolve().parents[3]


def entry(*verdicts: str) -> dict:
    claims = [CLAIM | {"statement": f"Claim {number}", "verdict": each} for number, each in enumerate(verdicts, 1)]
    return {"lesson": NAME, "scale": "smoke", "seed": 3, "claims": claims}


TALLY = "1 reproduced; 0 same direction, weaker; 1 different; 0 not assessed"
OWN = {"kind": "course", "verdict": "", "why": "", "expected": {"run": "not as expected"}}


def test_what_became_of_claims_counts_those_of_sources_alone():
    claims = entry("reproduced", "different")["claims"]
    assert scoreboard.summary([*claims, CLAIM | OWN]) == f"Of 2 published claims: {TALLY}."
    assert scoreboard.summary([CLAIM | OWN]) == scoreboard.summary([]) == NONE_PUBLISHED


def test_it_takes_its_place(tmp_path):
    root, report = checkout(tmp_path), {"lessons": [entry("reproduced", "different")]}
    report["lessons"][0]["claims"] += [CLAIM | OWN, CLAIM | OWN | {"kind": "check", "expected": {}}]
    page = root / "README.md"
    page.write_text("before\n<!-- claims -->\nlast year\n<!-- /claims -->\nafter\n")
    scoreboard.update(report, root)
    text, claims = page.read_text(encoding="utf-8"), (root / "CLAIMS.md").read_text(encoding="utf-8")
    total = f"Of 2 published claims: {TALLY}. [Every one of them](CLAIMS.md)."
    assert text == f"before\n<!-- claims -->\n{total}\n<!-- /claims -->\nafter\n"
    assert f"## 07 · Doubling\n\nOf 2 published claims: {TALLY}." in claims
    why = "twice a number: 2 for 2"
    assert f"| Claim 1 | Euclid, book VII | 2 | – | 2 (as expected) | reproduced ({why}) |" in claims
    assert f"| Claim 2 | Euclid, book VII | 2 | – | 2 (as expected) | **different** ({why}) |" in claims
    assert "| The course's own | Our bar | Our checkpoint | This run |\n|---|---|---|---|\n" in claims
    assert "| Doubles | exactly 2 | – | 2 (not as expected) |\n\n| Check | Our bar" in claims
    assert "| Doubles | exactly 2 | – | 2 |\n\n# The talks, claim by claim\n\n## Bietti 2024\n\nOf 80 " in claims
    assert claims.endswith("(scale smoke, seed 3).\n")
    scoreboard.update(report, root)
    assert (page.read_text(encoding="utf-8"), (root / "CLAIMS.md").read_text(encoding="utf-8")) == (text, claims)
    page.write_text("no place for it")
    with pytest.raises(ValueError, match="has no <!-- claims -->"):
        scoreboard.update(report, root)


def test_badges_appear_with_a_repository(tmp_path):
    lessons = all_lessons(checkout(tmp_path))
    assert "](https://" not in readme_table(lessons, "")
    line = readme_table(lessons, "someone/course")
    assert re.findall(r"Open in (\w+)", line) == ["Binder", "Colab", "Codespaces"]


@pytest.mark.parametrize(("value", "cell"), [("-", "–"), ("not assessed", "not assessed"), ("a | b\nc", "a \\| b c")])
def test_a_cell(value, cell):
    assert scoreboard._cell(value) == cell


GENERATED = re.compile(r"<!-- (\w+) -->.*?<!-- /\1 -->", re.DOTALL)  # by `release` and `run --readme`


def test_the_readme_is_a_page_and_the_claims_are_the_lessons():
    first, claims = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CLAIMS.md"))
    assert GENERATED.findall(first) == ["lessons", "claims"]
    prose = len(GENERATED.sub("", first).encode())
    assert prose <= 3_600, f"README.md: {prose} bytes beside what is generated; shorten its text to at most 3,600"
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", first)
    assert pictures[0] == "solutions/15-language-model/answer.png" and (ROOT / pictures[0]).is_file()
    taster = f"(lessons/{everything(ROOT)[0].path})"
    assert first.index(taster) < first.index("## Start"), "whoever is not sure yet begins with the taster"
    counted = re.findall(r"\b(?:\d+|\w+teen|\w+ty) (?:lessons|notebooks)\b", GENERATED.sub("", first))
    assert not counted, f"README.md: {counted}: nobody keeps the number of lessons; leave it out"
    assert re.findall(r"git clone.*?(?= [A-Z])", first) == ["git clone --depth 1"], "its history is four times as large"
    for lesson in all_lessons(ROOT):
        assert f"(lessons/{lesson.name}/{lesson.name}.ipynb)" in first, "python3 -m companion release"
        missing = [
            each.id for each in statements(lesson.name).values() if scoreboard._cell(each.statement) not in claims
        ]
        assert not missing, f"{lesson.name}: CLAIMS.md is older than {missing}; python3 -m companion run --readme"


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'__version__ = "{version}"' in (ROOT / "companion/__init__.py").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert (ROOT / "CHANGELOG.md").read_text().startswith(f"# What changed\n\n## {version}\n")
