"""Links from one file of the course to another, or to a heading of it, lead there."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from companion.workshop.cli.lessons import all_lessons

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("lessons/README.md")),
    *(path for folder in ("lessons", "solutions") for path in sorted((ROOT / folder).glob("*/*.ipynb"))),
]
LINK = re.compile(r"\]\(([^()\s]+)\)")


def text(path: Path) -> str:
    """The page's Markdown, without code."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(source)["cells"] if cell["cell_type"] == "markdown"]
        source = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", "", source, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The page's headings, as JupyterLab addresses them in a notebook, and GitHub in Markdown."""
    titles = re.findall(r"^#+ (.+?)\s*$", text(path), re.M)
    if path.suffix == ".ipynb":
        return {title.replace(" ", "-") for title in titles}
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(path: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in LINK.findall(text(path)):
        if re.match(r"https?:|mailto:|attachment:|data:", link):
            continue
        file, _, anchor = unquote(link).partition("#")
        target = (path.parent / file).resolve() if file else path
        if target == ROOT / "solutions" / "README.md":  # the map is made by `release`, beside the lessons alone
            target = ROOT / "lessons" / "README.md"
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: "/".join(path.relative_to(ROOT).parts[:2]))
def test_every_link_leads_somewhere(path):
    assert broken(path) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A · title\n\n[a](page.md) [b](#a--title) [c](nowhere.md) [d](page.md#nothing) `[e](f)`\n")
    assert broken(page) == ["nowhere.md", "page.md#nothing"]
    (tmp_path / "other.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "markdown", "source": ["## 2 · Heads write\n"]}]})
    )
    page.write_text("[a](other.ipynb#2-·-Heads-write) [b](other.ipynb#2--heads-write)")
    assert broken(page) == ["other.ipynb#2--heads-write"]


def test_every_reference_to_arxiv_is_a_link():
    bare = re.compile(r"(?<![\[/])arXiv:\d{4}\.\d{4,5}")
    assert not [f"{path.name}: {found[0]}" for path in PAGES if (found := bare.search(text(path)))]


@pytest.mark.parametrize("lesson", all_lessons(ROOT), ids=lambda lesson: lesson.name)
def test_what_a_lesson_needs_of_another_is_linked_to_the_section_that_teaches_it(lesson):
    linked = re.findall(
        r"\]\(\.\./(\d\d)-[^)#]+#[^)]+\)", re.search(r"^\| You need \|.*$", text(lesson.source), re.M)[0]
    )
    assert {need[7:9] for need in lesson.facts()["needs"] if need.startswith("lesson ")} <= set(linked)
