"""A course in which nothing is run."""

import pytest
from workshop.grading.sharing import here
from workshop.grading.small_lesson import POINTS, checkout

from companion.workshop.grading.course import classroom


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout; everything that is handed in as anything but a stub is right."""
    root = checkout(tmp_path)

    def marks(submission, handout, *_, **__):
        result = classroom.nothing("", handout)
        for name in submission.answers:
            right = name not in submission.stubs
            outcome = ("right", "correct") if right else ("not attempted", "not attempted")
            result["exercises"][name] = dict(zip(("outcome", "diagnosis"), outcome, strict=True))
            result["exercises"][name]["points"] = POINTS[name] * right
        return result | {"written": submission.written, "answers": submission.answers, "flags": submission.flags}

    monkeypatch.setattr(classroom, "mark", marks)
    monkeypatch.setattr(classroom, "alone", here)
    return root
