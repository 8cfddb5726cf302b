"""The pages that are not lessons, in MyST Markdown."""

import html
import re
import textwrap
import tomllib
from pathlib import Path

from companion.core.checkpoints import Header, read_header
from companion.lesson.claims import bibliography, cite
from companion.lesson.verdicts import tally
from companion.workshop.site import atlas
from companion.workshop.site.course import HUB, Chapter, Course
from companion.workshop.site.notebooks import answer_alt

GLOSSARY = Path(__file__).with_name("glossary.toml")
OWN_LETTERS = {  # of single lessons; the notation of the whole course stands on the first page
    r"K": "number of triggers (lesson 06)",
    r"S,\ \lambda,\ \kappa": "covariance of the inputs, an eigenvalue of it, its condition number (lessons 02 and 03)",
    r"S,\ R,\ D": "numbers of subjects, of relations, and of answers to a relation (lesson 07)",
    r"k,\ m,\ \Theta_i": "tokens of a sequence, number of heads, the $i$-th head's matrix (lesson 09)",
}
BOX, GAP, LETTERS = (220, 48), (60, 16), 27  # of the map: a box, what is between boxes, and what fits on a line of one


def every(course: Course) -> dict[str, str]:
    """Return the text of each page, by its name in the source folder."""
    return {
        "index.md": front(course),
        "claims.md": atlas.page(course),
        "sources.md": sources(course),
        "glossary.md": glossary(),
        "teaching.md": teaching(course),
        "made.md": checkpoints_page(course.root / "companion/weights"),
        **reference(course.modules),
    }


def front(course: Course) -> str:
    """Return the first page: what it is, for whom, the two commands, the map, and a card for each lesson."""
    cards = "\n".join(
        f":::{{grid-item-card}} {chapter.title}\n:link: lessons/{chapter.name}/{chapter.name}\n:link-type: doc\n"
        f"{_thumbnail(chapter)}"
        f"{chapter.facts['question']}\n\n*{chapter.facts['minutes']} minutes. Published claims: "
        f"{tally(claim['verdict'] for claim in chapter.entry['claims'])}*\n:::"
        for chapter in course.chapters
    )
    documents = "\n".join(
        f"lessons/{chapter.name}/{path.stem}" for chapter in course.chapters for path in chapter.notebooks
    )
    return f"""# Transformers as Algorithms

**Notebooks that build, run and try to break what is claimed of how transformers compute**

For people who know linear algebra and a little PyTorch, and would rather measure a claim than believe it.
Each published figure stands beside the one measured here; exercises name your mistake; all of it runs on a CPU, in
2 GB, offline.

To read: begin with a lesson below. To run, in a checkout, with Python 3.11 or newer:

```
python3 -m companion lab     # installs, and opens the lessons in JupyterLab
python3 -m companion test    # every test
```

## Which lesson needs which

{map_of(course.chapters)}

{course.notation}

## The lessons

::::{{grid}} 1 2 2 2
:gutter: 3

{cards}
::::

The course shares its title with a paper, {{cite:t}}`li2023`, and is not its authors'.

```{{toctree}}
:hidden:
:caption: Lessons

{documents}
```

```{{toctree}}
:hidden:
:caption: The course

claims
sources
glossary
teaching
made
reference/index
```
"""


def _thumbnail(chapter: Chapter) -> str:
    """The picture at a lesson's head, answered, as a card's option; empty if it is not."""
    if not chapter.answer:
        return ""
    return f":img-top: lessons/{chapter.name}/{chapter.answer.name}\n:img-alt: {answer_alt(chapter.executed)}\n"


def map_of(chapters: list[Chapter]) -> str:
    """Return the map as a picture (SVG): an arrow from each lesson to those that need it, and every lesson a link; a
    column holds what needs only lessons of the columns before it.
    """
    names = {chapter.name[:2]: chapter for chapter in chapters}
    needs = {number: [need for need in chapter.needed() if need in names] for number, chapter in names.items()}
    column: dict[str, int] = {}
    for number in names:  # what a lesson needs comes before it
        column[number] = max((column[need] + 1 for need in needs[number]), default=0)
    rows = [[number for number in names if column[number] == place] for place in range(max(column.values()) + 1)]
    places = {
        number: (10 + x * (BOX[0] + GAP[0]), 10 + y * (BOX[1] + GAP[1]))
        for x, numbers in enumerate(rows)
        for y, number in enumerate(numbers)
    }
    arrows = "".join(_arrow(places[need], places[number]) for number, before in needs.items() for need in before)
    boxes = "".join(
        f'<a href="lessons/{chapter.name}/{chapter.name}.html">'
        f'<rect x="{x}" y="{y}" width="{BOX[0]}" height="{BOX[1]}" rx="6"/>{_title(chapter.title, x, y)}</a>'
        for chapter, (x, y) in zip(chapters, (places[number] for number in names), strict=True)
    )
    said = ". ".join(f"{number} needs {' and '.join(before)}" for number, before in needs.items() if before)
    width = len(rows) * (BOX[0] + GAP[0]) + 20 - GAP[0]
    height = max(map(len, rows)) * (BOX[1] + GAP[1]) + 20 - GAP[1]
    return (
        f'<div class="wide"><svg class="map" viewBox="0 0 {width} {height}" role="group" aria-label="Which lesson '
        f'needs which: {html.escape(said or "none needs another")}">{arrows}{boxes}</svg></div>'
    )


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """From the right of the box at ``start`` to the left of the one at ``end``."""
    (x, y), (to, down) = (start[0] + BOX[0], start[1] + BOX[1] // 2), (end[0], end[1] + BOX[1] // 2)
    return f'<path d="M{x},{y} C{(x + to) // 2},{y} {(x + to) // 2},{down} {to},{down}"/>'


def _title(title: str, x: int, y: int) -> str:
    """A box's text, on two lines where it must be."""
    lines = textwrap.wrap(title, LETTERS)
    first = y + BOX[1] / 2 + 5 - 9 * (len(lines) - 1)
    return "".join(
        f'<text x="{x + 12}" y="{first + 18 * number:g}">{html.escape(line)}</text>'
        for number, line in enumerate(lines)
    )


def _box(label: str, kind: str, heads: tuple[str, ...], rows: list[str]) -> str:
    """A table of HTML that scrolls in a box of its own, so that a phone's page does not.

    ``label``: what a screen reader calls it.
    ``kind``: its class.
    ``heads``: its columns.
    ``rows``: as HTML.
    """
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    body = "\n".join(rows)
    return (
        f'<div class="claims-box" tabindex="0" role="region" aria-label="{label}"><table class="{kind}">'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def sources(course: Course) -> str:
    """Return what was taken from each source, place by place, and what became of it; then all of them."""
    taken: dict[str, list[tuple[str, Chapter, dict]]] = {}
    for chapter in course.chapters:
        known = atlas.known_statements(chapter)
        for claim in chapter.entry["claims"]:
            if claim["id"] in known and known[claim["id"]].source != "course":
                taken.setdefault(known[claim["id"]].source, []).append((claim["where"], chapter, claim))
    parts = [
        "# Sources\n\nWhat was measured of each, place by place. Then all that the course cites, "
        "[as BibTeX](references.bib), too."
    ]
    for key in sorted(taken, key=lambda key: cite(key).lower()):
        rows = "\n".join(
            f"| {_cell(where)} | [{chapter.name[:2]}](lessons/{chapter.name}/{chapter.name}.ipynb) "
            f"| {_cell(claim['statement'])} | {_cell(claim['published'])} | {atlas.verdict(claim)} |"
            for where, chapter, claim in taken[key]
        )
        title = re.sub(r"[{}]", "", bibliography().entries[key].fields["title"])
        parts.append(
            f"## {cite(key)}\n\n*{title}*: {{cite:t}}`{key}`\n\n| Where | Lesson | Claim | Published | Verdict |\n"
            f"|---|---|---|---|---|\n{rows}"
        )
    parts.append("## All\n\n```{bibliography}\n:all:\n```")
    return "\n\n".join(parts).replace("[as BibTeX](references.bib)", "{download}`as BibTeX <references.bib>`") + "\n"


def _cell(text: str) -> str:
    """A text in a table of Markdown, with nothing in it that Markdown would read."""
    return re.sub(r"([\\`*_{}\[\]<>$|#~])", r"\\\1", text)


def glossary() -> str:
    """Return the letters of single lessons, and terms."""
    terms = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))
    symbols = "\n".join(f"| ${symbol}$ | {meaning} |" for symbol, meaning in OWN_LETTERS.items())
    entries = "\n\n".join(f"{term}\n  {meaning}" for term, meaning in sorted(terms.items(), key=lambda e: e[0].lower()))
    head = "# Glossary\n\nThe letters of single lessons, beside [the notation of the whole course](index.md#notation)."
    return f"{head}\n\n| Symbol | Meaning |\n|---|---|\n{symbols}\n\n```{{glossary}}\n{entries}\n```\n"


def mentions() -> dict[str, re.Pattern]:
    """Return, for each term of the glossary, what a mention of it looks like, or of several of them."""
    terms = tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))
    return {term: re.compile(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", re.IGNORECASE) for term in terms}


def teaching(course: Course) -> str:
    """Return what an instructor reads, and a form that makes the link by which a class's own JupyterHub pulls a
    lesson.
    """
    text = (course.root / "TEACHING.md").read_text(encoding="utf-8")
    lessons = "".join(
        f'<option value="{html.escape(chapter.pulls)}">{html.escape(chapter.title)}</option>'
        for chapter in course.chapters
        if chapter.pulls
    )
    if not lessons:
        return text
    return f"""{text.rstrip()}

## A link for your JupyterHub

A hub with [nbgitpuller](https://nbgitpuller.readthedocs.io) fetches the course for whoever follows such a link, keeps
what they have changed, and opens the lesson. Its environment needs the course's packages: `binder/` has the recipe.

<p class="pull" data-hub="{HUB}"><label>The hub's address <input type="url" pattern="https?://.+" placeholder="https://"></label>
<label>The lesson <select>{lessons}</select></label>
<output aria-live="polite"></output></p>
"""


def checkpoints_page(weights: Path) -> str:
    """Return the shipped checkpoints: recipe, scale, seed, steps, machine, minutes and the loss on the way."""
    headers = [read_header(path) for path in weights.glob("*.safetensors")]
    headers.sort(key=lambda header: (header.recipe, header.scale, header.seed))
    rows = [
        f"<tr><td>{header.recipe}</td><td>{header.scale}</td><td>{header.seed}</td><td>{header.steps}</td>"
        f"<td>{html.escape(f'{header.device}: {header.machine}')}</td><td>{header.seconds / 60:.1f}</td>"
        f"<td>{_curve(header)}</td></tr>"
        for header in headers
    ]
    hours = sum(header.seconds for header in headers) / 3600
    heads = ("Recipe", "Scale", "Seed", "Steps", "Machine", "Minutes", "Loss")
    return f"""# How it was made

{len(headers)} checkpoints are shipped, made in {hours:.1f} hours in all. Each file's header says how;
`python3 -m companion train RECIPE --scale SCALE --seed SEED` makes one again. The curves are the training loss over the
steps, each on a scale of its own.

{_box("The checkpoints", "made", heads, rows)}
"""


def _curve(header: Header) -> str:
    """The loss curve as a small picture, from its first value to its last."""
    if len(header.loss_curve) < 2:
        return "–"
    steps, losses = zip(*header.loss_curve, strict=True)
    low, high = min(losses), max(losses)
    points = " ".join(
        f"{100 * step / steps[-1]:.0f},{28 - 26 * (loss - low) / (high - low or 1):.1f}"
        for step, loss in zip(steps, losses, strict=True)
    )
    return (
        f'<svg class="curve" viewBox="0 0 100 30" role="img" aria-label="from {losses[0]:.3g} to {losses[-1]:.3g}">'
        f'<polyline points="{points}"/></svg>'
    )


def reference(modules: tuple[str, ...]) -> dict[str, str]:
    """Return a page for each room of the companion, with its modules' docstrings, and an index of them."""
    rooms: dict[str, list[str]] = {}
    for module in modules:
        rooms.setdefault(module.rpartition(".")[0].removeprefix("companion."), []).append(module)
    texts = {}
    for room, inside in rooms.items():
        parts = [
            f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n   :show-inheritance:\n```"
            for module in inside
        ]
        texts[f"reference/{room.replace('.', '-')}.md"] = f"# companion.{room}\n\n" + "\n\n".join(parts) + "\n"
    listed = "\n".join(room.replace(".", "-") for room in rooms)
    texts["reference/index.md"] = (
        "# Reference\n\nThe companion, room by room, from its docstrings; *[source]* shows the code.\n\n"
        f"```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n"
    )
    return texts
