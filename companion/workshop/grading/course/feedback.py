"""What grading writes for people: the class's table and summary, and each student's page. All text of students is
escaped.
"""

import csv
import html
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from jinja2 import StrictUndefined, Template

from companion.workshop.grading.course.book import Book

PAGE = Template(
    Path(__file__).with_name("student.html").read_text(encoding="utf-8"),
    autoescape=True,
    trim_blocks=True,
    undefined=StrictUndefined,
)
MOST = 10  # diagnoses of one exercise in the summary
NUMBER = re.compile(r"-?(\d+(\.\d+)?(e[+-]?\d+)?)?")  # and what Moodle writes for none
# Where some spreadsheet begins a cell, and before what it takes for a formula's begin, on East Asian keyboards, too.
# Blanks and quotes in between may be taken off
FORMULA = re.compile(r"""(^|[;,\t\r\n])(?=[\s"]*[=+\-@＝＋－＠])""")


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
    """Return a table as CSV, no text of which a spreadsheet takes for a formula, wherever it divides the cells: where
    numbers have decimal commas, a file with commas is read with semicolons.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([text if NUMBER.fullmatch(text) else FORMULA.sub(r"\1'", text) for text in row] for row in rows)
    return out.getvalue()


def summary(book: Book, failed: list[str]) -> str:
    """``summary.md``: how each exercise was answered, what its check said most often, and who must be looked at."""
    handout = book.handout
    lines = [f"# {handout.name}: {len(book.results)} submissions", ""]
    if book.results:
        totals = [book.total(student) for student in book.results]
        low, middle, high = min(totals), median(totals), max(totals)
        lines += [f"Points so far: median {middle:g}, from {low:g} to {high:g}, of {handout.points:g}.", ""]
    lines += ["| Exercise | Right | Wrong | Not attempted | No answer, crashed, stopped |", "|---|---|---|---|---|"]
    said = []
    for question in handout.automatic:
        entries = [result["exercises"][question.id] for result in book.results.values()]
        many = Counter(entry["outcome"] for entry in entries)
        rest = many["missing"] + many["crashed"] + many["stopped"] + many["older"]
        lines.append(f"| {question.id} | {many['right']} | {many['wrong']} | {many['not attempted']} | {rest} |")
        wrong = Counter(entry["diagnosis"] for entry in entries if entry["outcome"] in ("wrong", "crashed", "stopped"))
        first = sorted(wrong.items(), key=lambda each: (-each[1], each[0]))[:MOST]
        said += [f"- {question.id}, {count} of {len(entries)}: {markdown(message)}" for message, count in first]
    for question in handout.written:
        waiting = sum(book.scores(student)[question.id] is None for student in book.results)
        lines += ["", f"{question.id}: {waiting} written answers to be marked by a person (`grade --formgrader`)."]
    lines += ["", "## What the checks say", "", *said] if said else []
    lines += ["", "## What needs a person", ""]
    lines += [f"- {markdown(remark)}" for remark in book.remarks]
    for student in book.everybody():
        reasons = [reason for reason in book.needs(student) if not reason.startswith("to be marked")]
        lines += [f"- {markdown(book.label(student))}: {markdown('; '.join(reasons))}"] if reasons else []
    lines += [f"- {markdown(book.label(name))}: NOT MARKED, the sandbox failed; run it again" for name in failed]
    return "\n".join(lines if lines[-1] else [*lines, "Nothing but the written answers."]) + "\n"


def page(book: Book, student: str) -> str:
    """Return a student's page: points and diagnosis of each exercise."""
    return PAGE.render(
        title=book.handout.name,
        student=student,
        points=f"{book.total(student):g}",
        out_of=f"{book.handout.points:g}",
        waiting=None in book.scores(student).values(),
        problem=book.results[student]["problem"],
        notes=book.notes(student),
        rows=list(_rows(book, student)),
    )


def _rows(book: Book, student: str) -> Iterator[dict[str, str]]:
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
    text, special = " ".join(text.split()), r"([\\`*_{}\[\]()#+!|~$<>&-]|:(?=//)|(?<=\w)@(?=\w)|(?<=www)\.)"
    return re.sub(special, lambda found: html.escape(found[0]) if found[0] in "<>&" else f"\\{found[0]}", text)
