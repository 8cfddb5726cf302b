"""The class's table holds no formula, wherever a spreadsheet divides it, and says what it should all the same."""

import csv
import itertools
import re

import pytest
from workshop.grading.reading import small_handout

from companion.workshop.grading.course.book import Book
from companion.workshop.grading.course.classroom import nothing
from companion.workshop.grading.course.feedback import spreadsheet, table
from companion.workshop.grading.course.settings import Settings

HEAD = ["student", "points", "said"]
BEGIN = ["", "a", '"', "'", " ", "a;", "a,", "a\t", "a\n", "a\r\n", 'a;"', 'a; "', ";;", "a,;", '";']
FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0", "＝1+1", "-", "-2"]
FOUND = re.compile(r"""[\s"]*[=+\-@＝＋－＠]""")


def as_read(text):
    """All cells as spreadsheets may read them: with each delimiter, with quotes taken for such or for letters."""
    for delimiter in ",;\t":
        yield from itertools.chain(*csv.reader(text.splitlines(keepends=True), delimiter=delimiter))
        yield from itertools.chain(*(line.split(delimiter) for line in text.splitlines()))
    yield from re.split(r"[,;\t\r\n]", text)


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula_and_no_cell_is_lost(formula):
    rows = [
        [f"{start}{formula}{end}", "1.5", f"{end}{start}{formula}"] for start in BEGIN for end in ("", ";x", '"', ",")
    ]
    rows = [row for row in rows if not {row[0], row[2]} & {"-", "-2"}]  # which are no formulas
    text = spreadsheet(HEAD, rows)
    assert [cell for cell in as_read(text) if FOUND.match(cell)] == []
    back = list(csv.DictReader(text.splitlines(keepends=True)))
    assert [list(row) for row in back] == [HEAD] * len(rows)
    for row, (student, points, said) in zip(back, rows, strict=True):
        assert row["points"] == points
        assert row["student"].replace("'", "") == student.replace("'", "")
        assert row["said"].replace("'", "") == said.replace("'", "")


@pytest.mark.parametrize("text", ["0", "-0.5", "1e-06", "2.25", "-", "", "Zoë; a-b, c=d", "a@b.c", "'<a>'"])
def test_numbers_and_plain_texts_stay_as_they_are(text):
    assert next(csv.DictReader(spreadsheet(["x", "y"], [["1", text]]).splitlines()))["y"] == text


def test_what_a_learner_writes_reaches_the_table_as_text():
    about = {"flags": ["mentions '<a;=1+1;'"], "remarks": [], "when": None, "days_late": 0}
    result = nothing("", small_handout()) | about
    text = table(Book(small_handout(), Settings(), {}, {}, results={"anna": result}))
    assert [cell for cell in as_read(text) if FOUND.match(cell)] == []
    [row] = csv.DictReader(text.splitlines())
    assert row["needs_a_person"].endswith("suspicious: mentions '<a;'=1+1;'")
