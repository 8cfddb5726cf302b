"""Marks one submission: the learner's functions run in the sandbox, and are compared out here, on inputs that they
cannot know.

`Remote` stands for the learner's function: it sends the inputs of a call into the sandbox and gives back what comes
out. So the check is the very one of the lesson (`companion.lesson.exercise.Exercise.grade`), in a process that has
never run a line of the submission: whatever a submission does to the checks, to torch's comparison or to random seeds,
it does in its own process alone.

What counts is what the notebook says when it is read from top to bottom. Most answers need little of it, so an answer
is marked with what it needs, as far as can be told from the source (`Submission.before`). Where it is not right so,
and something of the notebook was left out that may bear on it, all cells down to its check are run, and the better one
counts. A stub is marked in neither way.

Every exercise is first examined on the inputs of its public check, and then, all of them being through, on secret ones.
So what is told of an error was said before any secret was to be known; of what happens on secret inputs, only the kind
is told, and no number. An answer that trains (`companion.lesson.summit.Summit`) has luck, and its author cannot see
what refuses it there: it is wrong only if it is so on three of them, one after the other.
"""

import builtins
import functools
import re
import time
from collections.abc import Set
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from companion.lesson.exercise import CHECK_SEEDS, Exercise, Mistake, NotAttempted
from companion.lesson.summit import Summit
from companion.lesson.trials import Late
from companion.workshop.grading.course.names import one_line
from companion.workshop.grading.notebook.handout import Handout, Question
from companion.workshop.grading.notebook.submissions import Submission
from companion.workshop.grading.sandbox import package, wire
from companion.workshop.grading.sandbox.sandbox import Limits, Process, SandboxError, Stopped
from companion.workshop.grading.sandbox.workers import Workers

RIGHT, WRONG, STOPPED, CRASHED, OLDER = "right", "wrong", "stopped", "crashed", "older"
NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e[+-]?\d+)?", re.ASCII)
LIST = re.compile(r"([(\[])[…, ]*…[…, ]*([)\]])")  # of numbers: how many there are, is one more
RANKS = {"right": 0, "wrong": 1, "crashed": 2, "stopped": 3}  # of outcomes, the better first
TRIES = 3  # secret inputs that must refuse a summit's answer: one that trains in a way of its own may have bad luck
Entry = dict[str, Any]
ELSEWHERE = """
    Tensor Parameter ndarray float64 float32 int64 bool_ generator function method OutOfMemoryError LinAlgError
    _LinAlgError UFuncTypeError AxisError EinopsError module dtype NoneType builtin_function_or_method Series DataFrame
    EagerTensor Size device
"""
KNOWN = {*dir(builtins), *ELSEWHERE.split()}  # names of types that tell little of a secret


class LearnersError(Exception):
    """What the learner's code raised, by the name of its class; ``own_line`` is the line that did."""

    own_line = ""


class Remote:
    """The learner's function: a call of it is a call in the sandboxed process. Nothing that comes back is told to
    anybody unless the answer's own source has it, and if ``silent`` none of that, either. A call may take ``call``
    seconds.
    """

    def __init__(self, question: Question, submission: Submission, workers: Workers, call: float, *, silent: bool):
        self.question, self.submission, self.workers, self.call = question, submission, workers, call
        self.name, self.silent, self.searching = question.exercise[1], silent, workers.searching
        source = submission.answers[question.id]
        self.lines = {line.strip() for line in source.splitlines()}
        self.words = set(re.findall(r"\w+", source[:20_000]))

    def define(self) -> None:
        """Run the answer's cells, unless this process has: those that it needs, or all that come next in the notebook.
        Raises what the answer's cell raises.
        """
        workers, key = self.workers, self.question.id
        if key in workers.process.defined:
            return
        if workers.whole:
            start, (workers.ran,) = workers.ran, self.submission.whole.ends[key]
            with workers.reads():
                self._define(self.submission.whole.cells[start : workers.ran], "", goes_on=start > 0)
        else:
            self._define(self.submission.before[key], self.submission.code[key], goes_on=False)

    def _define(self, before: list[str], answer: str, *, goes_on: bool) -> None:
        process, key = self.workers.process, self.question.id
        job = {
            "define": key,
            "exercise": self.question.exercise,
            "function": self.question.function,
            "answer": answer,
            "before": before,
            "goes_on": goes_on,
            "cell": self.workers.limits.cell * process.clock.pace if self.workers.whole else 0,
        }
        process.send(wire.encode(job))
        self.workers.doubted.add(key)  # until all that stands before the answer's cell has run
        if not self._reply(process)[0].get("failed"):
            self.workers.doubted.discard(key)
        message, _ = self._reply(process)
        if "raised" in message:
            raise self._error(message)
        process.defined.add(key)

    def __call__(self, *inputs: Any) -> Any:
        """Call the function. A check that asks what it gives in float64 says so by torch's default, and in there it is
        done alike; out here nothing may change what is written and read.
        """
        wide = torch.get_default_dtype() is torch.float64
        with torch._C.DisableTorchFunction():
            return self._call(inputs, {"wide": wide, "places": []})

    def gradients_by(self, values: list[Any], places: list[int], weights: Tensor) -> Any:
        """Return what `companion.lesson.trials.gradients_by` gives in there for the learner's function."""
        return self._call((*values, weights), {"wide": False, "places": places})

    def _call(self, inputs: tuple[Any, ...], how: dict[str, Any]) -> Any:
        process = self.workers.process
        if self.workers.search and process.left <= 0:
            raise Late
        process.send(self._sent({"call": self.question.id} | how, list(inputs)), self.call)
        message, values = self._reply(process)
        if "stub" in message:
            raise NotAttempted(f"{self.name}: not attempted")
        if "raised" in message:
            raise self._error(message)
        if len(values) != 1 + len(inputs):
            raise Stopped("gave an answer that cannot be read")
        got, *changed = values
        for value, new in zip(inputs, changed, strict=True):  # what the function did to its arguments, done to ours
            if isinstance(new, Tensor) and isinstance(value, Tensor) and value.device == new.device:
                value.set_(new.to(value.dtype))
        if "tensor" in message and isinstance(got, Tensor):
            return got
        name = str(message.get("other", ""))
        return type(self._word(name), (), {})() if name else None

    def _sent(self, message: dict[str, Any], inputs: list[Any]) -> bytes:
        """What goes into the sandbox. Raises Stopped for what cannot: a fault of the lesson, of which its own answers
        tell before anybody's is marked.
        """
        most = self.workers.limits.input
        try:
            data = wire.encode(message, inputs)
        except wire.WireError as error:
            raise Stopped(f"cannot be called in the sandbox: {error}") from None
        if len(data) > most:
            size = f"the arguments of a call take {len(data) / 2**20:.0f} MiB, where {most >> 20} are allowed"
            raise Stopped(f"cannot be called in the sandbox: {size}")
        return data

    def _reply(self, process: Process) -> tuple[dict[str, Any], list[Any]]:
        """What the process says, once all that it asks is answered."""
        while True:
            try:
                message, values = wire.decode(*process.receive())
            except wire.WireError:
                raise Stopped("gave an answer that cannot be read") from None
            if "stand_in" not in message:
                return message, values
            process.send(self.workers.stand_in(message, values), process.call)

    def _error(self, message: dict[str, Any]) -> LearnersError:
        text = "" if self.silent else str(message.get("text", ""))[:1000]
        error = type(self._word(str(message["raised"])), (LearnersError,), {})(text)
        line = str(message.get("line", ""))
        error.own_line = line if line in self.lines and not self.silent else ""
        return error

    def _word(self, name: str) -> str:
        """The name of a type, if Python, torch or the learner's own code has it: one made up as it runs could tell a
        secret, and so could one of a thousand of one's own.
        """
        return name if name in KNOWN or (name in self.words and not self.silent) else "object"


def mark(submission: Submission, handout: Handout, seeds: list[int], limits: Limits, *, unsafe: bool) -> dict[str, Any]:
    """Return the result of a ``submission`` to a lesson (``handout``), as it is kept: points and diagnosis of each
    exercise, written answers, flags. What passes the public check is tried again on inputs of the secret ``seeds``; it
    runs within ``limits``, and without a sandbox if ``unsafe``. Raises SandboxError where the sandbox itself fails.
    """
    started = time.monotonic()
    entries: dict[str, Entry] = {}
    flags, decided = [*submission.flags], []
    with Workers(limits, handout, submission, unsafe=unsafe) as workers:
        for question in handout.automatic:
            entries[question.id] = _without_running(question, submission) or _marked(
                question, submission, CHECK_SEEDS, workers, secret=False
            )
        for question in handout.automatic:
            if entries[question.id]["outcome"] == RIGHT:
                entries[question.id] = _marked(question, submission, seeds, workers, secret=True)
        for question in handout.automatic:
            if question.id in submission.below and entries[question.id]["outcome"] != RIGHT:
                entries[question.id] = _below(question, submission, seeds, workers) or entries[question.id]
    doubted = [
        question
        for question in handout.automatic
        if question.id in workers.doubted | submission.partial and not _without_running(question, submission)
        if entries[question.id]["outcome"] != RIGHT
    ]
    with Workers(limits, handout, submission, unsafe=unsafe, whole=True) as workers:
        places = [(end, question) for question in doubted for end in submission.whole.ends[question.id]]
        for end, question in sorted(places, key=lambda place: place[0]):
            if question.id not in decided:
                found = entries[question.id]
                entries[question.id] = _of_the_whole(question, end, submission, seeds, workers, found)
                decided += [question.id] if entries[question.id]["outcome"] == RIGHT else []
        flags += [*(submission.whole.odd if doubted else []), *(submission.whole.borrowed if decided else [])]
    elsewhere = [name for name in submission.passed if entries[name]["outcome"] in (WRONG, CRASHED, STOPPED)]
    return {
        "problem": "",
        "exercises": entries,
        "whole": decided,
        "elsewhere": elsewhere,
        "written": submission.written,
        "pictures": submission.pictures,
        "answers": submission.answers,
        "flags": sorted(set(flags)),
        "seconds": round(time.monotonic() - started, 2),
    }


def _below(question: Question, submission: Submission, seeds: list[int], workers: Workers) -> Entry | None:
    """What a second answer earns, which stands below the check; None if that is not right, either."""
    before, code = submission.below[question.id]
    second = replace(submission, before={question.id: before}, code={question.id: code})
    if workers.process:
        workers.process.defined.discard(question.id)
    for inputs, secret in ((CHECK_SEEDS, False), (seeds, True)):
        if _marked(question, second, inputs, workers, secret=secret)["outcome"] != RIGHT:
            return None
    return entry(question.points, RIGHT, "correct, as it stands below the check")


def _of_the_whole(
    question: Question, end: int, submission: Submission, seeds: list[int], workers: Workers, found: Entry
) -> Entry:
    """What an answer earns where the first ``end`` cells are run, if that is better than what was ``found``; of two
    that are wrong, what is said of this one.
    """
    first, told = submission.whole.ends[question.id][0], not workers.secrets
    submission = replace(submission, whole=replace(submission.whole, ends={question.id: (end,)}))
    if workers.process:
        workers.process.defined.discard(question.id)
    whole = _marked(question, submission, CHECK_SEEDS, workers, secret=False)
    if whole["outcome"] == RIGHT:
        told, whole = True, _marked(question, submission, seeds, workers, secret=True)
    if whole["outcome"] == RIGHT:
        where = "" if end == first else ", as it stands below the check"
        return entry(question.points, RIGHT, f"correct{where}, where the whole notebook is run")
    rank, other = RANKS.get(whole["outcome"], len(RANKS)), RANKS.get(found["outcome"], len(RANKS))
    better = rank < other or whole["outcome"] == found["outcome"] == WRONG
    return whole if told and better else found


def prepare(handout: Handout, wrong: Set[str]) -> None:
    """Do once, in the process from which those that mark are forked, what is the same for every submission: import the
    lesson's exercises, and make the near misses of the questions that somebody got ``wrong``.
    """
    for course in (False, True):
        package.without_answers(course=course)
    for question in handout.automatic:
        exercise = _exercise(question)
        if question.id in wrong and not isinstance(exercise, Summit):
            _reason_for_a_wrong_answer(exercise)


@functools.cache
def _reason_for_a_wrong_answer(exercise: Exercise) -> None:
    with suppress(Mistake):
        exercise.grade(lambda *inputs: exercise.answer(*inputs) * 1.5 + 0.123, CHECK_SEEDS[:1])


def _exercise(question: Question) -> Exercise:
    module, name = question.exercise
    return getattr(import_module(module), name)


def nothing(problem: str, handout: Handout) -> dict[str, Any]:
    """Return the result of a submission that cannot be read."""
    entries = {question.id: entry(0.0, "missing", "no answer was found") for question in handout.automatic}
    empty: dict[str, Any] = {key: {} for key in ("written", "pictures", "answers")}
    none: dict[str, Any] = {key: [] for key in ("whole", "elsewhere", "flags")}
    return {"problem": problem, "exercises": entries, "seconds": 0.0} | empty | none


def _without_running(question: Question, submission: Submission) -> Entry | None:
    if question.id in submission.older:
        return entry(0.0, OLDER, submission.older[question.id])
    if question.id not in submission.answers:
        return entry(0.0, "missing", "no answer was found")
    return entry(0.0, "not attempted", "not attempted") if question.id in submission.stubs else None


def _marked(question: Question, submission: Submission, seeds: Any, workers: Workers, *, secret: bool) -> Entry:
    """One exercise's points, outcome and diagnosis."""
    if not (secret and isinstance(_exercise(question), Summit)):
        return _marked_once(question, submission, seeds, workers, secret=secret)
    for seed in seeds[:TRIES]:
        found = _marked_once(question, submission, [seed], workers, secret=True)
        if found["outcome"] != WRONG:
            break
    return found


def _marked_once(question: Question, submission: Submission, seeds: Any, workers: Workers, *, secret: bool) -> Entry:
    exercise, name = _exercise(question), question.exercise[1]
    seconds, call = workers.limits.exercise, workers.limits.call
    if isinstance(exercise, Summit):
        seconds, call = exercise.seconds, workers.limits.patience * exercise.seconds
    workers.secrets |= secret
    silent = workers.secrets
    remote = Remote(question, submission, workers, call, silent=silent)
    before = "passes the visible check, but not on other inputs: " if secret else ""
    try:
        with workers.open(question, seconds):
            remote.define()
            exercise.grade(remote, seeds)
        return entry(question.points, RIGHT, "correct")
    except NotAttempted:
        return entry(0.0, "not attempted", "not attempted")
    except Mistake as mistake:
        message = str(mistake).removeprefix(f"{name}: ")
        return entry(0.0, WRONG, before + (_without_numbers(message) if silent else message))
    except Stopped as stopped:
        return entry(0.0, STOPPED, before + str(stopped))
    except SandboxError:
        raise
    except LearnersError as error:  # the cell itself, or a call after the first
        where = f" at `{error.own_line}`" if error.own_line else ""
        text = f": {error}" if str(error) else ""
        return entry(0.0, CRASHED, f"{before}raises {type(error).__name__}{where}{text}")
    except Exception as error:  # answers of forms that nothing honest gives, and that cannot even be compared
        return entry(0.0, CRASHED, f"{before}its answers cannot be compared ({type(error).__name__})")


def _without_numbers(message: str) -> str:
    """What a check says, without values, sizes, shapes and counts: they may come from secret inputs."""
    return LIST.sub(r"\1…\2", NUMBER.sub("…", message))


def entry(points: float, outcome: str, diagnosis: str) -> Entry:
    """Return what is kept of one exercise. A diagnosis is one line of letters that can be printed."""
    return {"points": points, "outcome": outcome, "diagnosis": one_line(diagnosis)[:600]}
