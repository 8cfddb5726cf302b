"""Grading a class: seconds a submission, and memory. ``pytest tests/benchmarks/test_grading.py --benchmark-enable -s``
grades 200.

Every run of the tests grades one, and asserts its points; no test asserts a time.
"""

import json
import time

import pytest

from companion.workshop.cli import grade
from companion.workshop.cli.lessons import select_lessons
from companion.workshop.cli.run import PeakMemory

NAME = "02-in-context-regression"


@pytest.mark.needs("sandbox")
def test_a_class_of_lesson_02(benchmark, capsys, tmp_path):
    """All six exercises solved in every submission; two cores, two at a time."""
    [lesson] = select_lessons([NAME])
    many = 200 if benchmark.enabled else 1
    for student in range(many):
        folder = tmp_path / "grading" / "submitted" / f"student {student}" / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_bytes(lesson.source.read_bytes())
    (tmp_path / "solutions" / NAME).mkdir(parents=True)
    (tmp_path / "solutions" / NAME / f"{NAME}.ipynb").write_bytes(lesson.source.read_bytes())
    [lesson] = select_lessons([NAME], tmp_path)
    with PeakMemory() as peak:
        started = time.perf_counter()
        assert benchmark.pedantic(grade.grade, (lesson, tmp_path), {"jobs": 2}, rounds=1) == []
        seconds = (time.perf_counter() - started) / many
    results = [json.loads(path.read_text()) for path in (tmp_path / "grading" / NAME / "results").iterdir()]
    assert [{entry["outcome"] for entry in result["exercises"].values()} for result in results] == [{"right"}] * many
    benchmark.extra_info |= {"seconds_a_submission": seconds, "peak_rss_mib": peak.bytes / 2**20}
    if benchmark.enabled:
        with capsys.disabled():
            print(
                f"\n{many} submissions: {seconds:.2f} s each, the sandboxes together at most "
                f"{peak.bytes / 2**20:.0f} MiB"
            )
