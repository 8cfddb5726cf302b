"""A function in a process of its own, and no longer than it may take: nothing that it does or sets outlasts it.

A process for each call would have to import torch each time. So one process imports what the calls need, starts no
thread, and forks a child for each; where the child does not end in time, it is ended. (A child has no threads but its
own: had the process computed with several, its children would wait for the others for ever.)
"""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import psutil

from companion.workshop.grading.sandbox.worker import lower

START = "import sys; sys.path[:] = sys.argv[2:]; from companion.workshop.grading.alone import main; main()"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_idle: list[tuple[subprocess.Popen, Connection]] = []  # of calls at the same time, each has one to itself


class Ended(RuntimeError):
    """The process ended without a result."""


def alone(function: Callable[..., Any], *arguments: Any, seconds: float, memory: int, prepare: Any = None) -> Any:
    """Return ``function(*arguments)``, computed in a process of its own, in at most ``seconds`` on the wall clock,
    whatever it waits for, and ``memory`` bytes on top of what it has to begin with. Raises what it raises, TimeoutError
    and Ended. Function, arguments and result must be such as can be sent to another process.

    ``prepare`` is called before, in the process that forks: what it imports or makes is there for all later calls.
    """
    try:
        parent, pipe = _idle.pop()
    except IndexError:
        parent, pipe = _started()
    try:
        pipe.send((prepare, function, arguments, seconds, memory))
        result, error = pipe.recv()
    except BaseException as failure:  # it is gone, or somebody has interrupted: it is not used again
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)  # with its child
        _leave(parent, pipe)
        if isinstance(failure, OSError | EOFError):
            raise Ended(f"the process that marks has ended unexpectedly ({failure!r})") from None
        raise
    _idle.append((parent, pipe))
    if error is not None:
        raise error
    return result


def _started() -> tuple[subprocess.Popen, Connection]:
    ours, theirs = Pipe()
    parent = subprocess.Popen(
        [sys.executable, "-I", "-c", START, str(theirs.fileno()), *sys.path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
        env=os.environ | ONE_THREAD,
    )
    theirs.close()
    return parent, ours


def _leave(parent: subprocess.Popen, pipe: Connection) -> None:
    pipe.close()  # it then ends by itself, and takes with it what it has made
    parent.wait()


@atexit.register
def _leave_all() -> None:
    while _idle:
        _leave(*_idle.pop())


def main() -> None:
    """Fork a child for each call that is asked for, until the pipe closes."""
    pipe = Connection(int(sys.argv[1]))
    with suppress(EOFError, OSError):
        while True:
            prepare, function, arguments, seconds, memory = pipe.recv()
            try:
                if prepare is not None:
                    prepare()
                said = _forked(function, arguments, seconds, memory, pipe)
            except Exception as error:
                said = None, error if isinstance(error, Ended | TimeoutError) else Ended(repr(error))
            pipe.send(said)


def _forked(
    function: Callable[..., Any], arguments: tuple, seconds: float, memory: int, caller: Connection
) -> tuple[Any, Any]:
    """What a child says that calls the function: its result, or what it raises. Raises TimeoutError and Ended."""
    inlet, outlet = Pipe(duplex=False)
    child = os.fork()
    if not child:
        try:
            lower({"AS": psutil.Process().memory_info().vms + memory, "CPU": int(seconds) + 1, "CORE": 0})
            _say(outlet, function, arguments)
        finally:
            os._exit(0)
    outlet.close()
    try:
        if inlet not in wait([inlet, caller], seconds):  # of the caller nothing comes but its end
            raise TimeoutError(f"took more than {seconds:g} seconds")
        return inlet.recv()
    except EOFError:
        raise Ended("ended itself") from None
    finally:
        inlet.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _say(outlet: Connection, function: Callable[..., Any], arguments: tuple) -> None:
    try:
        said = function(*arguments), None
    except Exception as error:
        said = None, error
    try:
        outlet.send(said)
    except Exception as error:  # it cannot be sent
        outlet.send((None, Ended(repr(error))))
