"""One sandboxed process for many submissions that mean no harm: torch is loaded once, and not for each of them."""

import time
from contextlib import contextmanager
from dataclasses import asdict

import pytest
from workshop.grading.small_lesson import POINTS

from companion.workshop.grading.course import classroom, marking
from companion.workshop.grading.sandbox import package, wire, workers
from companion.workshop.grading.sandbox.sandbox import Limits, Process

# Time enough on any machine, however busy: for what is said of an answer, not for how long it took
PATIENT = Limits(call=60, exercise=200, search=60, searches=600)


@contextmanager
def one_process(limits: Limits, *, course: bool = False):
    """A process as `companion.workshop.grading.sandbox.workers` starts them."""
    with Process(limits, course=package.without_answers(course=course)) as process:
        process.send(wire.encode({"limits": asdict(limits)}))
        yield process


def here(function, *arguments, **_):
    """What `companion.workshop.grading.alone.alone` gives, computed in this very process."""
    return function(*arguments)


def unless_stubs(submission, handout, *_, **__):
    """What marking would give if everything were right that is no stub."""
    result = marking.nothing("", handout)
    for name in submission.answers:
        is_right = name not in submission.stubs
        outcome = (marking.RIGHT, "correct") if is_right else ("not attempted", "not attempted")
        result["exercises"][name] = marking.entry(POINTS[name] * is_right, *outcome)
    return result | {"written": submission.written, "answers": submission.answers, "flags": submission.flags}


def holding(submission, handout, *_, **__):
    """Hold for ever the process that marks where an answer says so; give all others two points for each, at once."""
    if any("# hold" in source for source in submission.answers.values()):
        time.sleep(1e6)
    points = {question.id: marking.entry(2, marking.RIGHT, "correct") for question in handout.automatic}
    return marking.nothing("", handout) | {"exercises": points}


@contextmanager
def all_in(process: Process):
    """Inside, `companion.workshop.grading.course.marking.mark` starts no process of its own but for stand-ins; one
    thing at a time.
    """

    class Shared(workers.Workers):
        def _started(self, course):
            if course == package.WITH_ANSWERS:
                return super()._started(course)
            process.defined.clear()
            return process

        def __exit__(self, *error):
            self.process = None
            super().__exit__(*error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marking, "Workers", Shared)
        patch.setattr(classroom, "alone", here)
        yield
