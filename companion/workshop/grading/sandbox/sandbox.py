"""The one place that says what a submission may use: its limits, and the process that keeps to them.

A learner's code runs in a process of its own behind `companion.workshop.grading.sandbox.bubblewrap`. What it says
comes back over one pipe as JSON and safetensors (`companion.workshop.grading.sandbox.wire`), never as objects that are
rebuilt by running code.
"""

import math
import mmap
import os
import selectors
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from companion.workshop.grading.sandbox import bubblewrap, cgroup, package

SLACK = 15
QUICK = 1.0  # seconds of computing in which Python and torch start on the machine for which the limits are meant
MESSAGE = 1 << 20  # bytes of a message's JSON
TICK = 0.25  # seconds between two looks at the clock
ASLEEP = 3  # such looks in a row end a call that sleeps: no answer has anything to wait for
LOOSE = 32 << 20  # bytes that libraries write and then close to writing: code that was compiled, tables that are linked
KERNEL = 128 << 20  # bytes that the kernel takes for a process, and that files take which it reads
START = (  # collecting garbage while torch is imported finds none, and takes a tenth of that time
    "import gc, sys; gc.disable(); sys.path[:] = sys.argv[1:]; "
    "from companion.workshop.grading.sandbox.worker import main; gc.enable(); main()"
)


@dataclass(frozen=True)
class Limits:
    """What a submission's process may use. Sizes are in bytes. Times are seconds of computing, or of waiting for
    anything but a processor or a disk, on a machine that starts Python and torch in `QUICK` seconds of computing: where
    that has just taken longer, all are as much longer. On the wall clock they are at most `SLACK` times as many.

    How slow may an honest answer be? The course's own take less than a millisecond a call; at the sizes that are drawn
    plain Python loops over all indices take at most 0.1 seconds, and 0.5 for all draws. An import inside the function
    takes longest (1.2 seconds for scikit-learn, 1.1 for the first of torch's optimizers). A summit says itself what a
    right answer may take. Each exercise has ``patience`` times what a right answer may take, whatever the others took,
    until ``stops`` answers of the same hand-in had to be stopped; then it has that once.
    """

    start: float = 120  # until Python and torch are loaded, on the wall clock: the machine's time, not the learner's
    call: float = 2  # for one call of the learner's function, but a summit's
    exercise: float = 1.5  # what all cells and calls of an exercise may take that is right
    patience: float = 3
    stops: int = 2
    search: float = 2  # for finding what a wrong answer gets wrong, once it is rejected; on top of its exercise's time
    searches: float = 6  # the same for all exercises of one submission
    cell: float = 10  # of computing for one cell of the whole notebook; then it is interrupted, as in JupyterLab
    reading: float = 40  # for running the whole notebook at smoke scale, where what an answer needs cannot be told
    wall: float = 600  # for all of one submission, on the wall clock, whatever it is that takes so long
    memory: int = 416 << 20  # on top of what Python and torch take; lesson 06's summit, answered right, takes 222 MiB
    space: int = 5 << 29  # of addresses, which cost nothing until they are used; on top of what torch's build maps
    processes: int = 64  # threads; a second process is never allowed
    file: int = 16 << 20  # one file
    scratch: int = 32 << 20  # all files, which are memory, too
    files: int = 4096  # and folders: each takes a kilobyte of the kernel's memory and its name, also if it is empty
    stack: int = 8 << 20  # of the first thread; those of others count as memory
    open: int = 128  # files at a time: each could hold memory
    input: int = 64 << 20  # the arguments of one call; in there they are read, and copied before they are handed over
    output: int = 16 << 20  # one answer; what is printed goes nowhere
    notebook: int = 20 << 20  # the file that is handed in


class SandboxError(RuntimeError):
    """The sandbox itself did not work; no fault of what should have run in it."""


class Stopped(BaseException):
    """The process was ended, or ended itself. Not an Exception: whoever handles a wrong answer's errors must not
    swallow this one.
    """


class Clock:
    """What a process uses: computing in all its threads, or passing time without waiting for a processor; in seconds
    of a machine that is ``pace`` times as quick.
    """

    def __init__(self, process: psutil.Process | None = None, pace: float = 1.0):
        self.process, self.pace, self.computed, self.delayed = process, pace, 0.0, 0.0
        self.restart()

    def restart(self) -> None:
        """Count from now."""
        self.wall, self.computed, self.delayed = time.monotonic(), self._computed(), self._delayed()
        self.seen, self.asleep = self.computed, 0

    def passed(self) -> float:
        """Seconds on the wall clock."""
        return (time.monotonic() - self.wall) / self.pace

    def used(self) -> float:
        """Seconds that count against a limit."""
        delayed = (self._delayed() - self.delayed) / self.pace
        return max((self._computed() - self.computed) / self.pace, self.passed() - delayed)

    def waits(self) -> bool:
        """Return whether it has slept, and computed nothing, at each of the last `ASLEEP` looks, each after a `TICK`
        without a word. Who lacks a processor does not sleep, nor who waits for a disk, which is no time of his own.
        """
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/stat") if self.process else ()
        try:
            states = {thread.read_text().rpartition(")")[2].split()[0] for thread in threads}
        except (OSError, IndexError):  # a thread has just ended
            states = set()
        if "D" in states:
            self.delayed -= TICK
        before, self.seen = self.seen, self._computed()
        self.asleep = self.asleep + 1 if states == {"S"} and self.seen == before else 0
        return self.asleep >= ASLEEP

    def _computed(self) -> float:
        try:
            return sum(self.process.cpu_times()[:2]) if self.process else 0.0
        except psutil.Error:  # it has ended
            return self.computed

    def _delayed(self) -> float:
        """Seconds for which the first thread was ready and the machine busy."""
        try:
            return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9
        except (OSError, AttributeError, IndexError, ValueError):
            return self.delayed


class Process:
    """One process in the sandbox, running `companion.workshop.grading.sandbox.worker`; a context manager that leaves
    nothing behind.

    What the kernel's limits on memory do not count is looked at from outside, with each message and every `TICK`. In
    between a process can have more; where this one may make a control group for it, it cannot
    (`companion.workshop.grading.sandbox.cgroup`).

    ``course`` is the copy of the course that it sees, by default one with the worker alone. ``unsafe``
    starts it without bubblewrap: with limits, outside the sandbox.
    """

    def __init__(self, limits: Limits, *, course: Path | None = None, unsafe: bool = False):
        self.limits, self.buffer, self.left, self.call = limits, b"", limits.exercise, math.inf
        self.clock, self.ready, self.defined = Clock(), False, set()
        course = course or package.without_answers(course=False)
        self.folder = tempfile.TemporaryDirectory(prefix="scratch-") if unsafe else None
        self.scratch, self.group, place = None, None, str(course) if unsafe else bubblewrap.COURSE
        with tempfile.TemporaryFile() as program, bubblewrap.small_pages():
            fences = bubblewrap.command(course, limits.scratch, bubblewrap.seccomp(program)) if not unsafe else []
            self.process = subprocess.Popen(
                [*fences, sys.executable, "-I", "-B", "-c", START, place, *bubblewrap.paths()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=self.folder.name if self.folder else None,
                env={"PATH": os.environ.get("PATH", os.defpath)} if not unsafe else bubblewrap.environment(),
                pass_fds=[] if unsafe else [program.fileno()],
                start_new_session=True,
            )
        os.set_blocking(self.process.stdin.fileno(), False)
        os.set_blocking(self.process.stdout.fileno(), False)
        self._start()

    def _start(self) -> None:
        try:
            self.receive()
        except Stopped as stopped:
            self.process.kill()
            message = self.process.stderr.read(10_000).decode(errors="replace").strip()
            self.__exit__()
            raise SandboxError(f"the sandbox did not start ({stopped}): {message}") from None
        started = psutil.Process(self.process.pid)
        worker = [started, *started.children(recursive=True)][-1]  # bubblewrap, its first process inside, and ours
        self.clock, self.ready = Clock(worker, max(1.0, sum(worker.cpu_times()[:2]) / QUICK)), True
        self._enclose(worker)

    def _enclose(self, worker: psutil.Process) -> None:
        """Before the process has read anything of a learner's: limit its stack, which it could let grow, and prepare
        to look at what it takes.
        """
        stack, limits = worker.rlimit(psutil.RLIMIT_STACK)[0], self.limits
        stack = limits.stack if stack == psutil.RLIM_INFINITY else min(stack, limits.stack)
        worker.rlimit(psutil.RLIMIT_STACK, (stack, stack))
        self.pages = Path(f"/proc/{worker.pid}/statm")
        self.most = self._pages(5) + limits.memory + LOOSE
        if not self.folder:
            with suppress(OSError):  # of a process that bubblewrap, installed to start as root, has started
                self.scratch = os.open(f"/proc/{worker.pid}/root{bubblewrap.SCRATCH}", os.O_PATH | os.O_DIRECTORY)
            self.group = cgroup.closed_in(worker.pid, limits.memory + limits.scratch + LOOSE + KERNEL)

    def _pages(self, *fields: int) -> int:
        """Bytes by the kernel's count of pages, less those of further fields: 1 is what is in memory, 2 what of it is
        of files, 5 what is mapped to be written.
        """
        first, *less = (int(self.pages.read_text().split()[field]) * mmap.PAGESIZE for field in fields)
        return first - sum(less)

    def _weigh(self) -> None:
        """Raise Stopped if it has taken what the kernel's limits do not count."""
        if not self.ready:
            return
        with suppress(OSError, IndexError):  # it has just ended
            if self._pages(1, 2) > self.most:
                raise Stopped("took too much memory")
        if self.scratch is not None:
            entries = os.fstatvfs(self.scratch)
            if entries.f_files - entries.f_ffree > self.limits.files:
                raise Stopped("made too many files")

    def allow(self, seconds: float) -> None:
        """Let the process go on for ``seconds`` from now."""
        self.left = seconds
        self.clock.restart()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *error: Any) -> None:
        self.process.kill()  # and with bubblewrap (--die-with-parent) the namespace's first process, and all others
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        if self.scratch is not None:
            os.close(self.scratch)
            self.scratch = None
        if self.group:
            cgroup.removed(self.group)
        if self.folder:
            self.folder.cleanup()

    def send(self, data: bytes, call: float = math.inf) -> None:
        """Write ``data``, to be read within ``call`` seconds, and answered. Raises Stopped if the process does not read
        it in time, or is gone, or if the time for all calls is used up.
        """
        if self.left <= 0:
            raise Stopped("took too long")
        self.clock.wall, self.call, left = time.monotonic(), call, memoryview(data)
        with self._selector(self.process.stdin, selectors.EVENT_WRITE) as selector:
            while left:
                self._wait(selector)
                try:
                    left = left[os.write(self.process.stdin.fileno(), left[: 1 << 16]) :]
                except BlockingIOError:
                    continue
                except OSError:
                    raise Stopped("the process ended itself") from None

    def receive(self) -> tuple[bytes, bytes]:
        """Receive a message: its line, and as many raw bytes as the line's first number says. Raises Stopped."""
        with self._selector(self.process.stdout, selectors.EVENT_READ) as selector:
            while b"\n" not in self.buffer:
                if len(self.buffer) > MESSAGE:
                    raise Stopped("wrote too much")
                self.buffer += self._more(selector)
            line, _, rest = self.buffer.partition(b"\n")
            size, _, text = line.partition(b" ")
            if not (size.isdigit() and len(size) < 12 and int(size) <= self.limits.output):
                raise Stopped("gave an answer that is too large, or is none")
            raw = bytearray(rest)
            while len(raw) < int(size):
                raw += self._more(selector)
        self.buffer = bytes(raw[int(size) :])
        self.charge()
        self._weigh()
        return text, bytes(raw[: int(size)])

    def _selector(self, pipe: Any, event: int) -> selectors.BaseSelector:
        selector = selectors.DefaultSelector()
        selector.register(pipe, event)
        self.looked = time.monotonic()
        return selector

    def _more(self, selector: selectors.BaseSelector) -> bytes:
        self._wait(selector)
        try:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return b""
        if not data:
            much = self.group is not None and cgroup.overrun(self.group)
            raise Stopped("took too much memory" if much else "the process ended itself")
        return data

    def _wait(self, selector: selectors.BaseSelector) -> None:
        """Until the pipe is ready. The clock is looked at however busy the pipe is."""
        while True:
            ready = selector.select(TICK)
            if not ready and self.clock.waits() and self.call < math.inf:  # cells may sleep, as they do in a lesson
                raise Stopped("waits, and computes nothing")
            if not ready or time.monotonic() - self.looked > TICK:
                self._look()
            if ready:
                return

    def _look(self) -> None:
        self.looked = time.monotonic()
        seconds = min(self.call, self.left) if self.ready else self.limits.start
        if self.clock.used() > seconds or self.clock.passed() > SLACK * seconds:
            raise Stopped("took too long")
        self._weigh()

    def charge(self) -> None:
        """Count what has been used since the last time."""
        if self.ready:
            self.left -= self.clock.used()
        self.clock.restart()
