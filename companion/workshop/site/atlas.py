"""The atlas of claims: a page on which each of them opens, and the same as JSON for a program."""

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict

import nbformat

from companion.core.measuring import measured_table
from companion.lesson.claims import Statement, cite, figure, statements
from companion.lesson.verdicts import VERDICTS, in_all
from companion.workshop.site.again import MEASURES, commands, rests_on
from companion.workshop.site.course import Chapter, Course

VERSION = 2  # of the form of claims.json, which claims.schema.json describes
UNJUDGED = {"course": "the course's own", "check": "check"}  # what is no claim of a source
BAR = (420, 14)  # of the summary picture: how wide the longest one is, and how high each


def page(course: Course) -> str:
    """Return every claim, folded, with a choice of lesson, verdict and source, and a search, below the `summary`."""
    made, rows = commands(course.root / "companion"), []
    for chapter in course.chapters:
        found, made_again = places(chapter), again(chapter, made)
        for claim, statement in claims(chapter):
            rows.append(_row(chapter, claim, _source(statement), found.get(claim["id"]), made_again[claim["id"]]))
    kinds = {
        "lesson": [chapter.title for chapter in course.chapters if chapter.entry["claims"]],
        "verdict": [*VERDICTS, *UNJUDGED.values()],
        "source": sorted({_source(each) for chapter in course.chapters for _, each in claims(chapter)}, key=str.lower),
    }
    runs = sorted({f"scale {chapter.entry['scale']}, seed {chapter.entry['seed']}" for chapter in course.chapters})
    published = [each["verdict"] for chapter in course.chapters for each in chapter.entry["claims"] if each["verdict"]]
    return f"""# Claims, and what became of them

Each line opens on one claim: what its source says, and where; what we found, and what that rests on; what could have
made it fail; and the commands that measure it again. The figures are those of the shipped checkpoints and of one run
({"; ".join(runs)}). One rule decides what became of a published claim, from the numbers that are stored with it. Our
own bars say whether a figure is as expected, and decide nothing. A program reads
<a href="claims.json">claims.json</a>, whose form <a href="claims.schema.json">a schema</a> describes.

{in_all(published)} The other {len(rows) - len(published)} lines are claims of the course's own, and checks, which only
a bug could fail.

{summary(course)}

What takes more than a lesson has was measured once, at these sizes, and is stored as tables that took so many minutes
of one process.

{sizes(course)}

{filterable(kinds, rows)}
"""


def filterable(kinds: dict[str, list[str]], rows: list[str]) -> str:
    """Return ``rows``, each a ``details`` with ``data-`` attributes, below a choice for each of ``kinds`` and a search
    (HTML).
    """
    choices = "".join(
        f'<label>{kind} <select name="{kind}"><option value="">all</option>'
        + "".join(f"<option>{html.escape(value)}</option>" for value in values)
        + "</select></label>"
        for kind, values in kinds.items()
    )
    body = "\n".join(rows)
    return f"""<div class="claims-filter">{choices}<label>search <input type="search" name="search"></label>
<span>showing <span class="claims-count" aria-live="polite">{len(rows)}</span></span></div>

<div class="claims">
{body}
</div>"""


def claims(chapter: Chapter) -> Iterator[tuple[dict, Statement | None]]:
    """Yield each claim that the run reports of a chapter, and what the chapter's file says of it, if it does."""
    try:
        known = statements(chapter.name)
    except ValueError:  # it has no file
        known = {}
    for claim in chapter.entry["claims"]:
        yield claim, known.get(claim["id"])


def verdict(claim: dict) -> str:
    """Return what became of a source's claim; of another row, what it is."""
    return claim["verdict"] or UNJUDGED[claim["kind"]]


def anchor(id: str) -> str:
    """Return the id of the place, on a lesson's page, where the claim ``id`` is measured."""
    return f"measured-{id}"


def places(chapter: Chapter) -> dict[str, tuple[str, str]]:
    """Return, for each claim whose cell names it, the page on which it is measured and the picture above that cell, as
    file names without their endings; an empty one where its section has no picture.
    """
    found = {}
    for path in chapter.notebooks:
        picture = ""
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
            if cell.cell_type == "markdown" and re.search(r"^##? ", cell.source, re.MULTILINE):
                picture = ""
            for place, output in enumerate(cell.get("outputs", [])):
                if "image/png" in output.get("data", {}):
                    picture = f"{path.stem}-{number}-{place}"
            found |= dict.fromkeys(MEASURES.findall(cell.source), (path.stem, picture))
    return found


def again(chapter: Chapter, made: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return, for each claim of a chapter, what measures it again: the run, and what makes the checkpoints and tables
    that its figures and its evidence rest on (``made``, by name).
    """
    run = f"run {chapter.name[:2]} --scale {chapter.entry['scale']} --seed {chapter.entry['seed']}"
    names, listed = defaultdict(list), {}
    for path in chapter.notebooks:
        for id, found in rests_on(nbformat.read(path, as_version=4), set(made)).items():
            names[id] += found
    for claim, statement in claims(chapter):
        rests = [*names[claim["id"]], *(getattr(statement.evidence, "stored", ()) if statement else ())]
        due = dict.fromkeys([run, *(each for name in rests for each in made[name])])
        listed[claim["id"]] = [f"python3 -m companion {command}" for command in due]
    return listed


def _source(statement: Statement | None) -> str:
    return cite(statement.source if statement else "course")


def _row(chapter: Chapter, claim: dict, source: str, place: tuple[str, str] | None, made_again: list[str]) -> str:
    """A claim: its verdict and its statement, which open to all that is known of it."""
    found, name = verdict(claim), f"{chapter.name[:2]}-{claim['id']}"
    told = {
        "Published": claim["published"],
        "Where": claim["source"],
        "Ours": claim["why"],
        "Our checkpoint": figure(claim, "checkpoint"),
        "This run": figure(claim, "run"),
        "Our bar": claim["threshold"],
        "Control": claim["control"],
        "Interval": claim["interval"],
        "Reference": claim["reference"],
    }
    terms = "".join(
        f"<dt>{term}</dt><dd>{html.escape(text)}</dd>" for term, text in told.items() if text not in ("", "-")
    )
    folder = f"lessons/{chapter.name}"
    link, shown = f"{folder}/{chapter.name}.html", ""
    if place:
        link = f"{folder}/{place[0]}.html#{anchor(claim['id'])}"
    if place and place[1]:
        shown = f'<img data-src="_static/pictures/{place[1]}.png" alt="The picture above this claim in its lesson">'
    terms += f'<dt>Measured in</dt><dd><a href="{link}">{html.escape(chapter.title)}</a></dd>'
    lines = "".join(f"<div><code>{command}</code></div>" for command in made_again)
    terms += f"<dt>Again</dt><dd>{lines}</dd>"
    terms += f'<dt>Address</dt><dd><a href="#{name}">#{name}</a></dd>'
    facts = {"lesson": chapter.title, "verdict": found, "source": source}
    data = " ".join(f'data-{key}="{html.escape(value)}"' for key, value in facts.items())
    return (
        f'<details id="{name}" {data}><summary><span class="verdict">{html.escape(found)}</span> '
        f"{html.escape(claim['statement'])} <small>{chapter.name[:2]} · {html.escape(source)}</small></summary>"
        f"<dl>{terms}</dl>{shown}</details>"
    )


def summary(course: Course) -> str:
    """Return sources by verdict (HTML): a row for each source, its numbers, and a bar with a stretch for each."""
    counts: dict[str, dict[str, int]] = {}
    for claim, statement in (each for chapter in course.chapters for each in claims(chapter)):
        if claim["verdict"]:
            row = counts.setdefault(_source(statement), dict.fromkeys(VERDICTS, 0))
            row[claim["verdict"]] += 1
    longest = max((sum(row.values()) for row in counts.values()), default=1)
    head = '<th scope="col">Source</th>'
    head += "".join(f'<th scope="col" data-verdict="{each}">{each}</th>' for each in VERDICTS)
    rows = [
        f'<tr><th scope="row">{html.escape(source)}</th>'
        + "".join(f"<td>{row[each] or '–'}</td>" for each in VERDICTS)
        + f"<td>{_bar(row, longest)}</td></tr>"
        for source, row in sorted(counts.items(), key=lambda each: (-sum(each[1].values()), each[0].lower()))
    ]
    return scrolling_table("Sources by verdict", "summary", f"{head}<td></td>", rows)


def sizes(course: Course) -> str:
    """Return the published claims that rest on measured tables (HTML): what was published, our size, what became of
    each, and the minutes of one process that its tables took.
    """
    rows = []
    for chapter in course.chapters:
        for claim, statement in claims(chapter):
            evidence = statement.evidence if statement else None
            if names := getattr(evidence, "stored", ()):
                minutes = " + ".join(measured_table(name).header["minutes"] for name in names)
                cells = [claim["published"], evidence.size or "the published one", verdict(claim), minutes]
                name = f'<a href="#{chapter.name[:2]}-{claim["id"]}">{html.escape(claim["statement"])}</a>'
                said = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
                rows.append(f'<tr><th scope="row">{name}</th>{said}</tr>')
    head = "".join(f'<th scope="col">{each}</th>' for each in ("Claim", "Published", "Our size", "Verdict", "Minutes"))
    return scrolling_table("Sizes of what was trained", "sizes", head, rows)


def scrolling_table(label: str, kind: str, head: str, rows: list[str]) -> str:
    """Return a table (HTML) that scrolls in a box of its own, so that a phone's page does not: ``label`` is what a
    screen reader calls it, ``kind`` its class, ``head`` the cells of its first row, ``rows`` the others.
    """
    return (
        f'<div class="claims-box" tabindex="0" role="region" aria-label="{label}"><table class="{kind}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _bar(row: dict[str, int], longest: int) -> str:
    """The numbers of a row, as stretches one behind the other; ``data-claim`` is how wide one claim is."""
    x, parts, (width, height) = 0.0, "", BAR
    for each, number in row.items():
        part = width * number / longest
        parts += f'<rect data-verdict="{each}" x="{x:.1f}" width="{part:.1f}" height="{height}"/>'
        x += part
    data = f'data-claim="{width / longest:.2f}"'
    return f'<svg class="bar" viewBox="0 0 {width} {height}" {data} aria-hidden="true">{parts}</svg>'


def as_json(course: Course) -> str:
    """Return every claim as JSON, with what decides its verdict."""
    found, made = [], commands(course.root / "companion")
    for chapter in course.chapters:
        entry, made_again = chapter.entry, again(chapter, made)
        for claim, statement in claims(chapter):
            found.append(
                {
                    "lesson": chapter.name,
                    "scale": entry["scale"],
                    "seed": entry["seed"],
                    **claim,
                    "key": statement.source if statement else "course",
                    "again": made_again[claim["id"]],
                    "evidence": asdict(statement.evidence) if statement and statement.evidence else None,
                }
            )
    return json.dumps({"version": VERSION, "claims": found}, indent=1, ensure_ascii=False) + "\n"
