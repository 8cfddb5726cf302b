"""What grading writes for people: the class's table and summary, and each student's page. All text of students is
escaped.
"""

import csv
import html
import io
import re
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from companion.workshop.grading.course.book import Book

PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    undefined=StrictUndefined,
)
OUTCOMES = ("right", "wrong", "not attempted", "missing", "crashed", "stopped")


def table(book: Book) -> str:
    """``grades.csv``: a row a student; a written answer that nobody has marked is empty."""
    questions, rows = [question.id for question in book.handout.questions], []
    for student in book.everybody():
        mine = book.scores(student)
        row = ["" if mine[name] is None else f"{mine[name]:g}" for name in questions]
        late = str(book.results[student]["days_late"]) if student in book.results else ""
        reasons = "; ".join(book.needs(student))
        points = [f"{book.total(student):g}", f"{book.handout.points:g}"]
        rows.append([student, *points, *row, book.when(student), late, reasons])
    return spreadsheet(["student", "points", "out_of", *questions, "handed_in", "days_late", "needs_a_person"], rows)


def spreadsheet(head: list[str], rows: list[list[str]]) -> str:
    """Return a table as CSV, no text of which a spreadsheet takes for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([map(_no_formula, row) for row in rows])
    return out.getvalue()


def _no_formula(text: str) -> str:
    return f"'{text}" if text != "-" and text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def diagnoses(book: Book, question: str) -> list[tuple[str, int]]:
    """Return what was said of wrong answers to one exercise, the most frequent first."""
    entries = [result["exercises"][question] for result in book.results.values()]
    wrong = Counter(entry["diagnosis"] for entry in entries if entry["outcome"] in ("wrong", "crashed", "stopped"))
    return sorted(wrong.items(), key=lambda item: (-item[1], item[0]))


def outcomes(book: Book, question: str) -> Counter:
    """Count how often an exercise ended in which way."""
    return Counter(result["exercises"][question]["outcome"] for result in book.results.values())


def summary(book: Book, failed: list[str]) -> str:
    """``summary.md``: how each exercise was answered, and who must be looked at."""
    handout = book.handout
    lines = [f"# {handout.name}: {len(book.results)} submissions", ""]
    if book.results:
        totals = [book.total(student) for student in book.results]
        low, middle, high = min(totals), median(totals), max(totals)
        lines += [f"Points so far: median {middle:g}, from {low:g} to {high:g}, of {handout.points:g}.", ""]
    lines += [
        "| Exercise | Right | Wrong | Not attempted | No answer, crashed, stopped | Most frequent diagnosis |",
        "|---|---|---|---|---|---|",
    ]
    for question in handout.automatic:
        many = outcomes(book, question.id)
        first = diagnoses(book, question.id)[:1]
        message = f"{markdown(first[0][0])} ({first[0][1]})" if first else "-"
        rest = many["missing"] + many["crashed"] + many["stopped"]
        counts = f"{many['right']} | {many['wrong']} | {many['not attempted']} | {rest}"
        lines.append(f"| {question.id} | {counts} | {message} |")
    for question in handout.written:
        waiting = sum(book.scores(student)[question.id] is None for student in book.results)
        lines += ["", f"{question.id}: {waiting} written answers to be marked by a person (`grade --formgrader`)."]
    people = [f"- {markdown(name)}: {markdown(why)}" for name, why in needing_a_person(book)]
    lines += ["", "## What needs a person", "", *people]
    lines += [f"- {markdown(book.label(name))}: NOT MARKED, the sandbox failed; run it again" for name in failed]
    return "\n".join(lines if lines[-1] else [*lines, "Nothing but the written answers."]) + "\n"


def needing_a_person(book: Book) -> list[tuple[str, str]]:
    """Return whom a person should look at, and why, but for written answers that wait."""
    found = []
    for student in book.everybody():
        reasons = [reason for reason in book.needs(student) if not reason.startswith("to be marked")]
        found += [(book.label(student), "; ".join(reasons))] if reasons else []
    return found


def page(book: Book, student: str) -> str:
    """Return a student's page: points and diagnosis of each exercise."""
    return PAGES.get_template("student.html").render(
        title=book.handout.name,
        student=student,
        points=f"{book.total(student):g}",
        out_of=f"{book.handout.points:g}",
        waiting=None in book.scores(student).values(),
        problem=book.results[student]["problem"],
        notes=book.notes(student),
        rows=list(_rows(book, student)),
    )


def _rows(book: Book, student: str) -> Any:
    scores, result = book.scores(student), book.results[student]
    for question in book.handout.questions:
        score = scores[question.id]
        entry = result["exercises"].get(question.id)
        unmarked = "no answer" if result["written"].get(question.id) == "" and not score else "marked by a person"
        message = entry["diagnosis"] if entry else "a person will mark it" if score is None else unmarked
        if question.id in result["elsewhere"]:
            message += ". Your notebook says that the check passed there: tell your instructor, who will look at it."
        points = "–" if score is None else f"{score:g}"
        yield {"name": question.answer_id, "points": points, "out_of": f"{question.points:g}", "said": message}


def markdown(text: str) -> str:
    """Return one line of Markdown that says this text and nothing else."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~$<>&-]|:(?=//)|(?<=\w)@(?=\w)|(?<=www)\.)", _escaped, " ".join(text.split()))


def _escaped(match: re.Match) -> str:
    return html.escape(match[0]) if match[0] in "<>&" else "\\" + match[0]
