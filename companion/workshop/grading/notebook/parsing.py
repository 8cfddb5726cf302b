"""Reads notebooks in a process of its own: a notebook that breaks or stalls a parser breaks that process alone."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from companion.workshop.grading.notebook.questions import Handout, from_message
from companion.workshop.grading.notebook.submissions import Submission, Unreadable, assemble, cells

HERE = str(Path(__file__).resolve().parents[4])
START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from companion.workshop.grading.notebook.parsing import main; main()"
)
SECONDS = 10  # of computing
PATIENCE = 60  # seconds on the wall
MEMORY = 2 << 30
ANSWER = 64 << 20


def parsed(data: bytes, handout: Handout) -> Submission:
    """Read the submission in a notebook file. Raises Unreadable, also where it cannot be read within the limits."""
    question = json.dumps(handout.as_message()).encode()
    command = [sys.executable, "-I", "-c", START, HERE]
    try:
        done = subprocess.run(
            command, input=b"%d\n" % len(question) + question + data, capture_output=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unreadable("it takes too long to read") from None
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()
        raise Unreadable(f"it cannot be read within {SECONDS} seconds and {MEMORY >> 30} GiB{_ended(done, why)}")
    message: dict[str, Any] = json.loads(done.stdout[:ANSWER])
    if "unreadable" in message:
        raise Unreadable(message["unreadable"])
    return Submission(**message)


def _ended(done: subprocess.CompletedProcess, why: list[str]) -> str:
    return f" ({why[-1][:200]})" if why and done.returncode > 0 else ""


def main() -> None:
    """Read a handout and a notebook, and write the submission; this runs in the child."""
    _limit()
    size = int(sys.stdin.buffer.readline())
    handout = from_message(json.loads(sys.stdin.buffer.read(size)))
    try:
        message = assemble(handout, cells(sys.stdin.buffer.read())).as_message()
    except Unreadable as error:
        message = {"unreadable": str(error)}
    sys.stdout.write(json.dumps(message))


def _limit() -> None:
    try:
        import resource  # noqa: PLC0415 (not on Windows)
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
