"""What readers found in the lessons, and what became of it: `findings.csv`, a row for each finding."""

import csv
from pathlib import Path

from companion.workshop.cli.lessons import all_lessons


def test_every_finding_has_a_lesson_and_an_outcome():
    with Path(__file__).with_name("findings.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ids = [row["id"] for row in rows]
    assert len(ids) == len(set(ids))
    numbers = {lesson.name[:2] for lesson in all_lessons()}
    assert not [row["id"] for row in rows if row["lesson"] not in numbers or not row["finding"] or not row["done"]]
    undone = ("left", "stands", "refuted")
    assert not [row["id"] for row in rows if row["commit"] == "-" and not row["done"].startswith(undone)]
