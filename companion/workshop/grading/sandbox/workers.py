"""The processes of one submission: the learner's, and, if an exercise that was not attempted has to stand in, one with
the course's answers. Both are started when they are first needed, and only as long as the submission has time.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from itertools import takewhile
from typing import Any

from companion.lesson.trials import Late
from companion.workshop.grading.notebook.handout import Handout, Question
from companion.workshop.grading.notebook.submissions import Submission
from companion.workshop.grading.sandbox import package, wire
from companion.workshop.grading.sandbox.sandbox import Limits, Process, SandboxError, Stopped

TRIES = 3  # starts of a sandbox: a busy machine may refuse one


class Workers:
    """A context manager around the processes of one submission: of what its answers need, or of its ``whole`` notebook,
    in which each question is marked where its check stands.
    """

    def __init__(self, limits: Limits, handout: Handout, submission: Submission, *, unsafe: bool, whole: bool = False):
        self.limits, self.handout, self.submission, self.unsafe = limits, handout, submission, unsafe
        self.course, self.whole = whole or submission.course, whole
        self.process: Process | None = None
        self.answers: Process | None = None
        self.marked: Question | None = None
        self.left, self.stops = {"reading": limits.reading, "searches": limits.searches}, 0
        self.search = False
        self.doubted: set[str] = set()  # questions for whose sake other code of the notebook failed, or was late
        self.ran = 0  # cells of the whole notebook
        self.secrets = False  # whether the submission has been given secret inputs, here

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: Any) -> None:
        for process in filter(None, (self.process, self.answers)):
            process.__exit__()
        self.process = self.answers = None

    @contextmanager
    def open(self, question: Question, seconds: float) -> Iterator[None]:
        """Open the learner's process for one ``question``, for which a right answer may take so many ``seconds``. A
        process that was stopped is not used again.
        """
        if self.process is None:
            self.process, self.ran = self._started(package.without_answers(course=self.course)), 0
            self.process.send(wire.encode({"files": self.submission.files}))
        process, self.marked = self.process, question
        process.allow(seconds * (self.limits.patience if self.stops < self.limits.stops else 1))
        try:
            yield
        except Stopped:
            self.stops += 1
            process.charge()
            self.__exit__()
            raise

    @contextmanager
    def _apart(self, what: str, allowed: float) -> Iterator[None]:
        """Give a time of its own, of all that is left for it, to ``what`` is done here."""
        process = self.process
        left = process.left
        process.allow(allowed)
        try:
            yield
        except Stopped:
            process.charge()
            raise
        finally:
            self.left[what] -= allowed - process.left
            process.allow(left)

    def reads(self) -> AbstractContextManager:
        """Give a time of its own to running the whole notebook, the same for all its questions."""
        return self._apart("reading", self.left["reading"])

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Give a time of its own to the calls that look for what a wrong answer gets wrong: neither the exercise's nor
        the submission's. Raises Late once it is used up; a process in which a call outlasts it is not used again.
        """
        self.search = True
        try:
            with self._apart("searches", min(self.limits.search, self.left["searches"])):
                yield
        except Stopped:
            self.__exit__()
            raise Late from None
        finally:
            self.search = False

    def _started(self, course: Any) -> Process:
        for _ in range(TRIES):
            try:
                process = Process(self.limits, course=course, unsafe=self.unsafe)
                process.send(wire.encode({"limits": asdict(self.limits)}))
                return process
            except (SandboxError, Stopped) as error:
                reason = error
        raise SandboxError(f"{reason} (tried {TRIES} times)")

    def stand_in(self, message: dict[str, Any], values: list[Any]) -> bytes:
        """Return the course's answer in place of an exercise that this submission has not attempted, and that so earns
        nothing, if it comes before the one that is being marked; for any other a refusal. So the answer of what is
        marked is never given. It is computed in a sandbox, since the inputs are a stranger's, and in the time of the
        exercise that asks.
        """
        asked, named, places = message.get("stand_in"), message.get("named"), message.get("places")
        earlier = takewhile(lambda question: question != self.marked, self.handout.automatic)
        open_to = [list(question.exercise) for question in earlier if question.id in self.submission.stubs]
        open_to = [exercise for exercise in open_to if exercise != list(self.marked.exercise)]
        if asked not in open_to or not _are(named, str) or not _are(places, int):
            return wire.encode({"refused": 1})
        if self.answers is None:
            self.answers = self._started(package.WITH_ANSWERS)
        allowed = self.process.left
        self.answers.allow(allowed)
        self.answers.send(wire.encode({"stand_in": asked, "named": named, "places": places}, values))
        reply, got = wire.decode(*self.answers.receive())
        self.process.left -= allowed - self.answers.left
        return wire.encode({"course": 1}, got) if "course" in reply else wire.encode({"refused": 1})


def _are(values: Any, kind: type) -> bool:
    """Whether a stranger's message has a list of this kind."""
    return isinstance(values, list) and all(type(value) is kind for value in values)
