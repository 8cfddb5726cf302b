"""The one place that says what a submission may do: its sandbox and its limits.

A learner's code runs in a process of its own, started by bubblewrap (``bwrap``) in new namespaces: it has no network, sees no other
process, runs without capabilities, cannot start a second process, and sees of the disk only the system's libraries, this
Python environment and the package `companion`, all read-only. ``solutions/``, the gradebook and the other submissions are not there
at all. What it may write is ``/scratch``, in memory and of limited size, which is gone with the process. `Limits` bounds the rest.

What it says comes back over one pipe as JSON and raw tensors (`companion.cli.wire`), never as objects that are rebuilt by running code.
"""

import os
import platform
import selectors
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from companion.cli.setup import ROOT

SCRATCH = "/scratch"
SLACK = 5
MESSAGE = 1 << 20  # bytes of a message's JSON
SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
# AUDIT_ARCH, clone, clone3, and the calls that are refused, by their numbers in the kernel's unistd.h: (fork, vfork,) ptrace,
# process_vm_readv, _writev, socket, mount, unshare, setns, add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd, io_uring_setup
CALLS = {
    "x86_64": (0xC000003E, 56, 435, (57, 58, 101, 310, 311, 41, 165, 272, 308, 248, 249, 250, 298, 321, 323, 425)),
    "aarch64": (0xC00000B7, 220, 435, (117, 270, 271, 198, 40, 97, 268, 217, 218, 219, 241, 280, 282, 425)),
}


@dataclass(frozen=True)
class Limits:
    """What a submission's process may use. Times are seconds of computing, or `SLACK` times as many on the wall clock, so that a busy
    machine costs nobody a point; sizes are in bytes."""

    start: float = 120  # until Python and torch are loaded, on the wall clock; this is the machine's time, not the learner's
    call: float = 10  # for one exercise's cells, and for one call of the learner's function
    exercise: float = 30  # for all cells and calls of one exercise
    submission: float = 90  # for all exercises of one submission
    memory: int = 3 << 30  # address space; torch alone takes about 1 GB of it
    processes: int = 64  # threads; a second process is never allowed
    file: int = 16 << 20  # one file
    scratch: int = 64 << 20  # all files
    output: int = 16 << 20  # one answer; what is printed goes nowhere
    notebook: int = 20 << 20  # the file that is handed in


class SandboxError(RuntimeError):
    """The sandbox itself did not work; no fault of what should have run in it."""


class Stopped(BaseException):
    """The process was ended, or ended itself. Not an Exception: whoever handles a wrong answer's errors must not swallow this one."""


def missing(root: Path = ROOT) -> str:
    """Why there is no sandbox on this machine; empty if there is one."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian and Ubuntu: `apt-get install bubblewrap`; it is for Linux only)"
    if platform.machine() not in CALLS:
        return f"there is no table of system calls for {platform.machine()}, only for {', '.join(CALLS)}"
    with tempfile.TemporaryFile() as program:
        trial = [*_bubblewrap(Limits(), (), root, _filter(program)), "/bin/true"]
        done = subprocess.run(trial, capture_output=True, text=True, check=False, pass_fds=[program.fileno()])
    return f"bubblewrap does not work here: {done.stderr.strip()}" if done.returncode else ""


def _bubblewrap(limits: Limits, hidden: tuple[Path, ...], root: Path, filter_fd: int) -> list[str]:
    command = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    command += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv", "--seccomp", str(filter_fd)]
    for name, value in (("HOME", SCRATCH), ("TMPDIR", SCRATCH), ("MPLCONFIGDIR", SCRATCH), ("MPLBACKEND", "Agg"), ("OMP_NUM_THREADS", "1")):
        command += ["--setenv", name, value]
    command += ["--setenv", "LANG", "C.UTF-8", "--setenv", "PATH", "/usr/bin:/bin"]
    seen = [*SYSTEM, sys.base_prefix, sys.prefix, str(ROOT / "companion")]
    for path in dict.fromkeys(seen):
        command += ["--ro-bind-try", path, path]
    for path in (root / "solutions", root / "grading", ROOT / "solutions", *hidden):  # should an environment hold the checkout
        if any(Path(path).resolve().is_relative_to(Path(above).resolve()) for above in seen) and path.exists():
            command += ["--tmpfs", str(path), "--remount-ro", str(path)]
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    return [*command, "--size", str(limits.scratch), "--tmpfs", SCRATCH, "--chdir", SCRATCH, "--remount-ro", "/"]


def _filter(file) -> int:
    """Write a seccomp program (classic BPF) into ``file``: threads may be made, processes and sockets not."""
    architecture, clone, clone3, forbidden = CALLS[platform.machine()]
    load, equal, at_least, set_, give = 0x20, 0x15, 0x35, 0x45, 0x06  # LD|W|ABS, JMP|JEQ|K, JMP|JGE|K, JMP|JSET|K, RET|K
    allow, kill, refuse, unknown = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38  # EPERM; ENOSYS: libc then asks for clone
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, kill), (load, 0, 0, 0)]
    program += [(at_least, 0, 1, 0x40000000), (give, 0, 0, kill)]  # the x32 numbers of the same calls
    for call in forbidden:
        program += [(equal, 0, 1, call), (give, 0, 0, refuse)]
    program += [(equal, 0, 1, clone3), (give, 0, 0, unknown)]
    program += [(equal, 0, 3, clone), (load, 0, 0, 16), (set_, 1, 0, 0x00010000), (give, 0, 0, refuse)]  # unless CLONE_THREAD
    program += [(give, 0, 0, allow)]
    file.write(b"".join(struct.pack("HBBI", *step) for step in program))
    file.flush()
    file.seek(0)
    return file.fileno()


class Process:
    """One process in the sandbox, running the module ``companion.cli.grading_worker``; a context manager that leaves nothing behind.

    ``hidden`` are folders that must not be seen, wherever they lie. ``unsafe`` starts it without bubblewrap: with limits, without walls.
    """

    def __init__(self, limits: Limits, *, hidden: tuple[Path, ...] = (), unsafe: bool = False, root: Path = ROOT):
        self.limits, self.buffer, self.worker = limits, b"", None
        self.ends = time.monotonic() + limits.start, float("inf")
        self.folder = tempfile.TemporaryDirectory(prefix="scratch-") if unsafe else None
        with tempfile.TemporaryFile() as program:
            prefix = [] if unsafe else _bubblewrap(limits, hidden, root, _filter(program))
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-I", "-m", "companion.cli.grading_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=self.folder.name if self.folder else None,
                env={"PATH": os.environ.get("PATH", os.defpath)},  # what the sandbox could read of its first process
                pass_fds=[] if unsafe else [program.fileno()],
                start_new_session=True,
            )
        os.set_blocking(self.process.stdin.fileno(), False)
        os.set_blocking(self.process.stdout.fileno(), False)
        try:
            self.receive()
        except Stopped as stopped:
            self.process.kill()
            said = self.process.stderr.read(10_000).decode(errors="replace").strip()
            self.__exit__(None, None, None)
            raise SandboxError(f"the sandbox did not start ({stopped}): {said}") from None
        started = psutil.Process(self.process.pid)
        self.worker = [started, *started.children(recursive=True)][-1]  # bubblewrap, its first process in the sandbox, and ours
        self.allow(limits.exercise)

    def used(self) -> float:
        """Seconds of computing in the sandbox so far."""
        try:
            return sum(self.worker.cpu_times()[:2]) if self.worker else 0.0
        except psutil.Error:
            return 0.0

    def allow(self, seconds: float) -> None:
        """Let the process go on for ``seconds`` from now."""
        self.ends = self._after(seconds)

    def _after(self, seconds: float) -> tuple[float, float]:
        return time.monotonic() + SLACK * seconds, self.used() + seconds

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()  # bubblewrap dies, and with it (--die-with-parent) the namespace's first process and so every other
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        if self.folder:
            self.folder.cleanup()

    def send(self, data: bytes) -> None:
        """Write ``data``. Raises Stopped if the process does not take it in time, or is gone."""
        until, left = self._after(self.limits.call), memoryview(data)
        while left:
            self._wait(self.process.stdin, selectors.EVENT_WRITE, until)
            try:
                left = left[os.write(self.process.stdin.fileno(), left[: 1 << 16]) :]
            except BlockingIOError:
                continue
            except OSError:
                raise Stopped("the process ended itself") from None

    def receive(self) -> tuple[bytes, bytes]:
        """A message: its line, and as many raw bytes as the line's first number says. Raises Stopped."""
        until = self._after(self.limits.call) if self.worker else self.ends
        while b"\n" not in self.buffer:
            if len(self.buffer) > MESSAGE:
                raise Stopped("wrote too much")
            self._more(until)
        line, _, self.buffer = self.buffer.partition(b"\n")
        size, _, text = line.partition(b" ")
        if not (size.isdigit() and len(size) < 12 and int(size) <= self.limits.output):
            raise Stopped("gave an answer that is too large, or is none")
        parts, many = [self.buffer], len(self.buffer)
        while many < int(size):
            self.buffer = b""
            self._more(until)
            parts.append(self.buffer)
            many += len(self.buffer)
        raw = b"".join(parts)
        self.buffer = raw[int(size) :]
        return text, raw[: int(size)]

    def _more(self, until: tuple[float, float]) -> None:
        self._wait(self.process.stdout, selectors.EVENT_READ, until)
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        if not data:
            raise Stopped("the process ended itself")
        self.buffer += data

    def _wait(self, pipe: Any, event: int, until: tuple[float, float]) -> None:
        wall, computing = map(min, until, self.ends)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            while not selector.select(0.25):
                if time.monotonic() > wall or self.used() > computing:
                    raise Stopped("took too long")


def limit(values: dict) -> None:
    """In the sandboxed process: keep to these `Limits` (as `asdict` gives them) from now on; they can only be lowered again."""
    import resource  # noqa: PLC0415 (not on Windows, where there is no sandbox either)

    for what, value in (
        (resource.RLIMIT_AS, values["memory"]),
        (resource.RLIMIT_NPROC, values["processes"]),
        (resource.RLIMIT_FSIZE, values["file"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, int(values["submission"]) + 60),
    ):
        hard = resource.getrlimit(what)[1]
        lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (lower, lower))


def as_message(limits: Limits) -> dict:
    """The limits for `limit`."""
    return asdict(limits)
