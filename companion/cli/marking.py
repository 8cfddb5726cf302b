"""Marks one submission: the learner's functions run in the sandbox, and are compared out here, on inputs that they cannot know.

`Remote` stands for the learner's function: it sends the inputs of a call into the sandbox and gives back what comes out. So the check
is the very one of the lesson (`companion.checks.exercise.Exercise.grade`), in a process that has never run a line of the submission:
whatever a submission does to the checks, to torch's comparison or to random seeds, it does in its own process alone.
"""

import hashlib
import os
import re
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

from companion.checks.exercise import Exercise, Mistake, NotAttempted
from companion.cli import wire
from companion.cli.sandbox import SLACK, Limits, Process, SandboxError, Stopped, as_message
from companion.cli.submissions import Handout, Question, Submission, Unreadable, assemble, cells, is_stub, read


class Remote:
    """The learner's function: a call of it is a call in the sandboxed process."""

    def __init__(self, process: Process, name: str, course: set[str]):
        self.process, self.name, self.course = process, name, course

    def ready(self) -> None:
        """Wait until the function is defined. Raises what its cell raises."""
        message, _ = self._reply()
        if "raised" in message:
            raise _error(message)

    def __call__(self, *inputs: Any) -> Any:
        self.process.send(wire.encode({"call": 1}, list(inputs)))
        message, values = self._reply()
        if "stub" in message:
            raise NotAttempted(f"{self.name}: not attempted")
        if "raised" in message:
            raise _error(message)
        if len(values) != 1 + len(inputs):
            raise Stopped("gave an answer of no form")
        got, *changed = values
        for value, new in zip(inputs, changed, strict=True):  # what the function did to its arguments, done to ours
            if isinstance(new, Tensor) and isinstance(value, Tensor) and value.device == new.device:
                value.set_(new.to(value.dtype))
        if "tensor" in message and isinstance(got, Tensor):
            return got
        name = str(message.get("other", ""))
        return type(_word(name), (), {})() if name else None

    def _reply(self) -> tuple[dict[str, Any], list[Any]]:
        try:
            message, values = wire.decode(*self.process.receive())
        except wire.WireError:
            raise Stopped("gave an answer of no form") from None
        if isinstance(names := message.get("course"), list):
            self.course |= {re.sub(r"[^\w.<>]", "", str(name), flags=re.ASCII)[:100] for name in names[:10]}
        return message, values


class LearnersError(Exception):
    """What the learner's code raised, by the name of its class; ``own_line`` is the line that did."""

    own_line = ""


def _error(message: dict[str, Any]) -> LearnersError:
    error = type(_word(str(message["raised"])), (LearnersError,), {})(str(message.get("text", ""))[:1000])
    error.own_line = str(message.get("line", ""))[:200]
    return error


def _word(name: str) -> str:
    return re.sub(r"\W", "", name)[:60] or "object"


def mark(folder: Path, given: Handout, seeds: list[int], limits: Limits, *, unsafe: bool, root: Path) -> dict[str, Any]:
    """One submission's result, as it is kept: points and diagnosis of each exercise, written answers, flags."""
    started = time.monotonic()
    result: dict[str, Any] = {"problem": "", "exercises": {}}
    try:
        handed = assemble(given, cells(read(folder, given.name, limits.notebook)))
    except Unreadable as error:
        handed, result["problem"] = Submission(), str(error)
    flags = set(handed.flags)
    with Sandbox(limits, unsafe=unsafe, root=root) as sandbox:
        for question in given.automatic:
            entry, course = _mark(question, handed, seeds, sandbox)
            result["exercises"][question.id] = entry
            flags |= {f"{question.answer_id}: calls the course's own code: {', '.join(sorted(course))}"} if course else set()
    return result | {
        "written": handed.written,
        "answers": handed.answers,
        "flags": sorted(flags),
        "seconds": round(time.monotonic() - started, 2),
    }


class Sandbox:
    """A submission's process: started when it is first needed, and again after it was stopped, as long as there is time."""

    def __init__(self, limits: Limits, *, unsafe: bool, root: Path):
        self.limits, self.unsafe, self.root = limits, unsafe, root
        self.process, self.left = None, limits.submission

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error: Any) -> None:
        if self.process:
            self.process.__exit__(*error)
        self.process = None

    def begin(self) -> Process:
        """The process, with the time that one exercise has. Raises Stopped if the submission has used up its own."""
        if self.left <= 0:
            raise Stopped("the submission used up its time before this exercise")
        if self.process is None:
            hidden = (self.root / "solutions", self.root / "grading")
            self.process = Process(self.limits, hidden=hidden, unsafe=self.unsafe, root=self.root)
            self.process.send(wire.encode({"limits": as_message(self.limits)}))
        self.process.allow(min(self.limits.exercise, self.left))
        return self.process


def _mark(question: Question, handed: Submission, seeds: list[int], sandbox: Sandbox) -> tuple[dict[str, Any], set[str]]:
    """One exercise's points, outcome and diagnosis, and the course's functions that it was seen to call."""
    answer = handed.answers.get(question.id)
    if answer is None:
        return _entry(0.0, "missing", "no answer was found"), set()
    if is_stub(question, answer):
        return _entry(0.0, "not attempted", "not attempted"), set()
    module, name = question.exercise
    exercise: Exercise = getattr(import_module(module), name)
    job = {"module": module, "exercise": name, "function": question.function, "answer": answer, "before": handed.before[question.id]}
    course: set[str] = set()
    process = None
    try:
        process = sandbox.begin()
        started, used = time.monotonic(), process.used()
        remote = Remote(process, name, course)
        process.send(wire.encode(job))
        remote.ready()
        exercise.grade(remote, seeds)
        entry = _entry(question.points, "right", "correct")
    except NotAttempted:
        entry = _entry(0.0, "not attempted", "not attempted")
    except Mistake as mistake:
        entry = _entry(0.0, "wrong", str(mistake).removeprefix(f"{name}: "))
    except Stopped as stopped:
        entry = _entry(0.0, "stopped", str(stopped))
    except SandboxError:
        raise
    except LearnersError as error:  # the cell itself, or a call after the first
        where = f" at `{error.own_line}`" if error.own_line else ""
        entry = _entry(0.0, "crashed", f"raises {type(error).__name__}{where}: {error}")
    except Exception as error:  # answers of forms that nothing honest gives, and that cannot even be compared
        entry = _entry(0.0, "crashed", f"its answers cannot be compared ({type(error).__name__})")
    if process:
        sandbox.left -= max(process.used() - used, (time.monotonic() - started) / SLACK)
        if entry["outcome"] == "stopped":
            sandbox.__exit__(None, None, None)
    return entry, course


def _entry(points: float, outcome: str, diagnosis: str) -> dict[str, Any]:
    text = "".join(letter if letter.isprintable() else " " for letter in diagnosis)
    return {"points": points, "outcome": outcome, "diagnosis": text[:600]}


def fingerprint(given: Handout, seeds: list[int], limits: Limits, *, unsafe: bool) -> str:
    """Of all that decides a result but the submission: lesson, checks, grader, seeds and limits."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(repr((given, seeds, limits, unsafe)).encode())
    graders = [package / "cli" / f"{name}.py" for name in ("grading_worker", "marking", "sandbox", "submissions", "wire")]
    for path in sorted((package / "checks").rglob("*.py")) + graders:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def contents(folder: Path, largest: int) -> str:
    """A hash of what was handed in, by which a second hand-in is told from the first."""
    digest = hashlib.sha256()
    if folder.is_symlink():
        return "link"
    for path in sorted(folder.glob("*.ipynb")):
        about = path.lstat()
        digest.update(os.fsencode(path.name) + b"\0%d\0" % about.st_size)
        if path.is_file() and not path.is_symlink() and about.st_size <= largest:
            digest.update(path.read_bytes())
    return digest.hexdigest()
