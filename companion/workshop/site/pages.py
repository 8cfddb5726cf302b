"""The pages that are not lessons, in MyST Markdown."""

import html
import re
from pathlib import Path

from companion.core.checkpoints import Header, read_header
from companion.core.files import read_toml
from companion.lesson.claims import bibliography, cite
from companion.lesson.verdicts import tally
from companion.workshop.site import atlas, talks
from companion.workshop.site.course import HUB, Chapter, Course
from companion.workshop.site.notebooks import answer_alt

GLOSSARY = Path(__file__).with_name("glossary.toml")
TOUR = Path(__file__).with_name("tour.md")
OWN_LETTERS = {  # of single lessons; the notation of the whole course stands on the first page
    r"K": "number of triggers (lesson 06)",
    r"S,\ \lambda,\ \kappa": "covariance of the inputs, an eigenvalue of it, its condition number (lessons 02 and 03)",
    r"S,\ R,\ D": "numbers of subjects, of relations, and of answers to a relation (lesson 07)",
    r"k,\ m,\ \Theta_i": "tokens of a sequence, number of heads, the $i$-th head's matrix (lesson 09)",
}
SHOWN = "15"  # the lesson whose picture the first page begins with
PATHS = {  # each lesson after those that it builds on
    "Three evenings": ("01", "05", "06"),
    "Learning in context": ("02", "03"),
    "A layer of your own": ("02", "03", "05", "14"),
    "Interpretability": ("01", "04", "05", "06", "07", "08", "11", "15"),
    "Theory": ("05", "01", "07", "09", "10", "12", "13"),
}


def every(course: Course) -> dict[str, str]:
    """Return the text of each page, by its name in the source folder."""
    return {
        "index.md": front(course),
        "claims.md": atlas.page(course),
        "talks.md": talks.page(course),
        "sources.md": sources(course),
        "glossary.md": glossary(),
        "teaching.md": teaching(course),
        "made.md": checkpoints_page(course.root / "companion/weights"),
        **reference(course.modules),
    }


def front(course: Course) -> str:
    """Return the first page: a picture of what one can do, a door for each who comes, paths, and a card for each
    chapter.
    """
    first, there = course.chapters[0], {chapter.name[:2]: chapter for chapter in course.chapters}
    shown = there.get(SHOWN, first)
    theory = next((there[number] for number in PATHS["Theory"] if number in there), first)
    cards = "\n".join(
        f":::{{grid-item-card}} {chapter.title}\n:link: {_page(chapter)}\n:link-type: doc\n"
        f":img-top: lessons/{chapter.name}/{(chapter.answer or chapter.picture).name}\n:img-alt: {_alt(chapter)}\n"
        f"{chapter.facts['question']}\n\n*{chapter.facts['minutes']} minutes{_after(chapter)}{_claims(chapter)}*\n:::"
        for chapter in course.chapters
    )
    checks = "Each lesson is an evening, and its checks name your mistake."
    doors = {
        "Learn": (_page(first), f"Begin with *{first.facts['title']}*. {checks}"),
        "Teach": ("teaching", "Release lessons, grade in a sandbox what comes back, and send each student a page."),
        "Do research": (
            "claims",
            "Each claim of a paper beside what we measured, and how to measure it again.",
        ),
        "Open models": (
            "reference/index",
            "Name a circuit and have it scored; attribution, patches, wires; your own layer beside known ones.",
        ),
        "Prove": (_page(theory), "Theorems as code that runs: heads, memories and learners with explicit weights."),
        "Maintain": ("made", "How every checkpoint was made, and how to make it again."),
    }
    ways = "\n".join(
        f":::{{grid-item-card}} {who}\n:link: {page}\n:link-type: doc\n{what}\n:::"
        for who, (page, what) in doors.items()
    )
    documents = "\n".join(
        f"lessons/{chapter.name}/{path.stem}" for chapter in course.chapters for path in chapter.notebooks
    )
    return f"""# Transformers as Algorithms

**Point at a word, see where a head of a real language model looks, cut one of its wires, and watch the head forget.
Then write such algorithms by hand, find them in models that you train, and measure what papers say of them.**

[![{_alt(shown)}](lessons/{shown.name}/{(shown.answer or shown.picture).name})]({_page(shown)}.ipynb)

*{shown.facts["question"]}* [{shown.title}]({_page(shown)}.ipynb)

::::{{grid}} 1 2 3 3
:gutter: 3

{ways}
::::

All of it runs on a CPU, in 2 GB, offline. In a checkout, with Python 3.11 or newer, this installs the course and opens
the lessons in JupyterLab:

```
python3 -m companion lab
```

## The lessons

{paths(course.chapters)}

::::{{grid}} 1 2 2 2
:gutter: 3

{cards}
::::

{course.notation}

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
talks
sources
glossary
teaching
made
reference/index
```
"""


def _page(chapter: Chapter) -> str:
    """A chapter's page, as Sphinx calls it."""
    return f"lessons/{chapter.name}/{chapter.name}"


def _alt(chapter: Chapter) -> str:
    """What is to be seen on a lesson's card."""
    return answer_alt(chapter.executed) if chapter.answer else chapter.facts["title"]


def _claims(chapter: Chapter) -> str:
    """What became of the published claims, of a chapter that makes claims."""
    claims = chapter.entry["claims"]
    return f". Published claims: {tally(claim['verdict'] for claim in claims)}" * bool(claims)


def _after(chapter: Chapter) -> str:
    return f", after {' and '.join(chapter.needed())}" if chapter.needed() else ""


def paths(chapters: list[Chapter]) -> str:
    """Return the ways through the lessons, as a list: of those that are there."""
    there = {chapter.name[:2]: chapter for chapter in chapters}
    lines = []
    for name, numbers in PATHS.items():
        links = [f"[{n}](lessons/{there[n].name}/{there[n].name}.ipynb)" for n in numbers if n in there]
        lines += [f"- **{name}**: {', '.join(links)}"] * bool(links)
    return "\n".join(lines)


def sources(course: Course) -> str:
    """Return what was taken from each source, place by place, and what became of it; then all of them."""
    taken: dict[str, list[tuple[str, Chapter, dict]]] = {}
    for chapter in course.chapters:
        for claim, statement in atlas.claims(chapter):
            if statement and statement.source != "course":
                taken.setdefault(statement.source, []).append((claim["where"], chapter, claim))
    parts = [
        "# Sources\n\nWhat was measured of each, place by place. Then all that the course cites, "
        "{download}`as BibTeX <references.bib>`, too."
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
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """A text in a table of Markdown, with nothing in it that Markdown would read."""
    return re.sub(r"([\\`*_{}\[\]<>$|#~])", r"\\\1", text)


def glossary() -> str:
    """Return the letters of single lessons, and terms."""
    terms = read_toml(GLOSSARY)
    symbols = "\n".join(f"| ${symbol}$ | {meaning} |" for symbol, meaning in OWN_LETTERS.items())
    entries = "\n\n".join(f"{term}\n  {meaning}" for term, meaning in sorted(terms.items(), key=lambda e: e[0].lower()))
    head = "# Glossary\n\nThe letters of single lessons, beside [the notation of the whole course](index.md#notation)."
    return f"{head}\n\n| Symbol | Meaning |\n|---|---|\n{symbols}\n\n```{{glossary}}\n{entries}\n```\n"


def mentions() -> dict[str, re.Pattern]:
    """Return, for each term of the glossary, what a mention of it looks like, or of several of them."""
    terms = read_toml(GLOSSARY)
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
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    return f"""# How it was made

{len(headers)} checkpoints are shipped, made in {hours:.1f} hours in all. Each file's header says how;
`python3 -m companion train RECIPE --scale SCALE --seed SEED` makes one again. The curves are the training loss over the
steps, each on a scale of its own.

{atlas.scrolling_table("The checkpoints", "made", head, rows)}
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
    """Return a page for each room of the companion, with its modules' docstrings, and a tour above their index."""
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
        f"{TOUR.read_text(encoding='utf-8')}\n## Every room\n\nFrom the docstrings; *[source]* shows the code.\n\n"
        f"```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n"
    )
    return texts
