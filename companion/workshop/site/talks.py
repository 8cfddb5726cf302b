"""The page of the talks: each of their claims opens on where it stands in the course."""

import html

from companion.lesson.claims import cite
from companion.workshop.site import atlas
from companion.workshop.site.course import Chapter, Course
from companion.workshop.talks import OUTCOMES, OWN, TalkClaim, outcomes_in_all, talks, verdicts_of


def page(course: Course) -> str:
    """Return the claims of the talks that the course began with, folded, with a choice of talk and of what became of
    them.
    """
    chapters = {chapter.name[:2]: chapter for chapter in course.chapters}
    verdicts, rows, sums = verdicts_of({"lessons": [chapter.entry for chapter in course.chapters]}), [], []
    told_by = {cite(key): claims for key, claims in talks().items()}
    for talk, claims in told_by.items():
        sums.append(f"- **{talk}.** {outcomes_in_all(claims, verdicts)}")
        rows += [_talk_row(claim, talk, chapters, verdicts) for claim in claims]
    told = "\n".join(sums)
    return f"""# The talks, claim by claim

The course began with five talks. Each line is one thing that a talk says, in our words. It opens on where the course
shows it, on the [claims](claims.md) that judge it, and on what is missing. *Shown, not judged* is what a lesson
defines, derives or draws; *not covered* says why.

{told}

{atlas.filterable({"talk": [*told_by], "verdict": list(OUTCOMES)}, rows)}
"""


def _talk_row(claim: TalkClaim, talk: str, chapters: dict[str, Chapter], verdicts: dict[str, str]) -> str:
    """A claim of a talk: what became of it, and what it says, which open to where it stands in the course."""
    outcome = claim.outcome(verdicts)
    lessons = [
        f'<div><a href="lessons/{chapters[number].name}/{chapters[number].name}.html">'
        f"{html.escape(chapters[number].title)}</a></div>"
        for number in claim.lessons
        if number in chapters
    ]
    rows = [
        f'<div><a href="claims.html#{row.replace(":", "-")}">{html.escape(_statement(row, chapters))}</a>: '
        f"{verdicts[row] or OWN}</div>"
        for row in claim.rows
        if row in verdicts
    ]
    terms = {"Note": [html.escape(claim.note)] * bool(claim.note), "Lessons": lessons, "Claims": rows}
    told = "".join(f"<dt>{term}</dt><dd>{''.join(found)}</dd>" for term, found in terms.items() if found)
    return (
        f'<details id="{claim.id}" data-talk="{html.escape(talk)}" data-verdict="{html.escape(outcome)}"><summary>'
        f'<span class="verdict">{html.escape(outcome)}</span> {html.escape(claim.claim)} '
        f"<small>{html.escape(' · '.join([*claim.lessons, talk]))}</small></summary><dl>{told}</dl></details>"
    )


def _statement(row: str, chapters: dict[str, Chapter]) -> str:
    """What the claim of a row states."""
    number, id = row.split(":")
    return next(claim["statement"] for claim in chapters[number].entry["claims"] if claim["id"] == id)
