"""What grading writes for people: the class's table and summary, and each student's page. All text of students is escaped."""

import csv
import html
import io
from collections import Counter
from statistics import median
from typing import Any

from companion.cli.submissions import Handout

Scores = dict[str, dict[str, float | None]]  # student -> question -> points; None where a person has not marked it yet
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; vertical-align: top; border-bottom: 1px solid #ccc; padding: .4rem }}
td:nth-child(2) {{ white-space: nowrap }}</style></head>
<body><h1>{title}</h1><p>{student}: <strong>{points} of {out_of} points</strong>{waiting}</p>{problem}
<table><thead><tr><th scope="col">Exercise</th><th scope="col">Points</th><th scope="col">What the check says</th></tr></thead>
<tbody>
{rows}
</tbody></table></body></html>
"""


def table(given: Handout, results: dict[str, dict[str, Any]], scores: Scores) -> str:
    """``grades.csv``: a row a student; a written answer that nobody has marked is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["student", "points", "out_of", *(question.id for question in given.questions), "needs_a_person"])
    for student in sorted(results):
        mine = scores[student]
        row = ["" if mine[question.id] is None else f"{mine[question.id]:g}" for question in given.questions]
        # A spreadsheet takes what begins with one of these for a formula
        name = f"'{student}" if student.startswith(("=", "+", "-", "@", "\t", "\r")) else student
        reasons = "; ".join(needs(given, results[student], mine))
        writer.writerow([name, f"{_total(mine):g}", f"{_full(given):g}", *row, reasons])
    return out.getvalue()


def needs(given: Handout, result: dict[str, Any], scores: dict[str, float | None]) -> list[str]:
    """Why a person should look at a submission."""
    reasons = [f"cannot be read: {result['problem']}"] if result["problem"] else []
    waiting = [question.id for question in given.questions if not question.exercise and scores[question.id] is None]
    reasons += [f"to be marked: {', '.join(waiting)}"] if waiting else []
    ended = [f"{name} {entry['outcome']}" for name, entry in result["exercises"].items() if entry["outcome"] in ("stopped", "crashed")]
    reasons += [", ".join(ended)] if ended else []
    return reasons + [f"suspicious: {flag}" for flag in result["flags"]]


def summary(given: Handout, results: dict[str, dict[str, Any]], scores: Scores, failed: list[str]) -> str:
    """``summary.md``: how each exercise was answered, and who must be looked at."""
    lines = [f"# {given.name}: {len(results)} submissions", ""]
    if results:
        totals = [_total(mine) for mine in scores.values()]
        lines += [f"Points so far: median {median(totals):g}, from {min(totals):g} to {max(totals):g}, of {_full(given):g}.", ""]
    lines += [
        "| Exercise | Right | Wrong | Not attempted | No answer, crashed, stopped | Most frequent diagnosis |",
        "|---|---|---|---|---|---|",
    ]
    for question in given.automatic:
        entries = [result["exercises"][question.id] for result in results.values()]
        many = Counter(entry["outcome"] for entry in entries)
        wrong = Counter(entry["diagnosis"] for entry in entries if entry["outcome"] in ("wrong", "crashed", "stopped"))
        often = min(wrong.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
        said = f"{_line(often[0])} ({often[1]})" if often[1] else "-"
        rest = many["missing"] + many["crashed"] + many["stopped"]
        lines.append(f"| {question.id} | {many['right']} | {many['wrong']} | {many['not attempted']} | {rest} | {said} |")
    written = [question.id for question in given.questions if not question.exercise]
    for name in written:
        waiting = sum(mine[name] is None for mine in scores.values())
        lines += ["", f"{name}: {waiting} written answers to be marked by a person (`grade --formgrader`)."]
    lines += ["", "## What needs a person", ""]
    for student in sorted(results):
        reasons = [reason for reason in needs(given, results[student], scores[student]) if not reason.startswith("to be marked")]
        lines += [f"- {_line(student)}: {_line('; '.join(reasons))}"] if reasons else []
    lines += [f"- {_line(student)}: NOT MARKED, the sandbox failed; run it again" for student in failed]
    return "\n".join(lines if lines[-1] else [*lines, "Nothing but the written answers."]) + "\n"


def page(given: Handout, student: str, result: dict[str, Any], scores: Scores) -> str:
    """A student's page: points and diagnosis of each exercise."""
    mine, rows = scores[student], []
    for question in given.questions:
        score = mine[question.id]
        entry = result["exercises"].get(question.id)
        unmarked = "no answer" if result["written"].get(question.id) == "" and not score else "marked by a person"
        said = entry["diagnosis"] if entry else "a person will mark it" if score is None else unmarked
        points = f"{'–' if score is None else f'{score:g}'} of {question.points:g}"
        rows.append(f"<tr><td>{html.escape(question.answer_id)}</td><td>{points}</td><td>{html.escape(said)}</td></tr>")
    waiting = ", and what a person still has to mark" if None in mine.values() else ""
    problem = f"<p><strong>The notebook could not be read: {html.escape(result['problem'])}.</strong></p>" if result["problem"] else ""
    return PAGE.format(
        title=html.escape(given.name),
        student=html.escape(student),
        points=f"{_total(mine):g}",
        out_of=f"{_full(given):g}",
        waiting=waiting,
        problem=problem,
        rows="\n".join(rows),
    )


def _total(scores: dict[str, float | None]) -> float:
    return sum(score or 0 for score in scores.values())


def _full(given: Handout) -> float:
    return sum(question.points for question in given.questions)


def _line(text: str) -> str:
    """One line of Markdown that no text of a student breaks out of."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("[", "\\[")
