"""What runs inside the sandbox: defines a learner's functions and answers calls of them. Nothing that it says about
itself is believed.

Nothing here knows what is right: the grader outside draws the inputs and compares the answers. Where an exercise that
was not attempted has to stand in for another one's sake, the worker asks outside as well (`StandIn`). The process that
answers such questions runs this module, too, with the course's answers and without a learner's code.
"""

import __future__

import importlib
import linecache
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import torch
from torch import Tensor

from companion.lesson.attempts import Attempt, NotAttempted, examined, failing_line, is_stub, own_function
from companion.lesson.disturbed import disturbance, disturbed, given
from companion.lesson.trials import gradients_by, in_float64
from companion.workshop.grading.sandbox import wire


@dataclass(frozen=True)
class StandIn:
    """An exercise without its answer: decorates the learner's function, and asks outside what the course's gives."""

    module: str
    name: str

    def __call__(self, function: Any) -> Attempt:
        """Decorate the learner's function."""
        return Attempt(self, function)

    def answer(self, *values: Any, **named: Any) -> Any:
        """Return what the course's own function gives, with a gradient where an argument has one. Raises NotAttempted
        where the grader does not say.
        """
        given = [*values, *named.values()]
        if torch.is_grad_enabled() and any(isinstance(each, Tensor) and each.requires_grad for each in given):
            return _Differentiable.apply(self, list(named), *given)
        return self.asked(list(named), given, [])

    def asked(self, named: list[str], values: list[Any], places: list[int]) -> Any:
        """Return what is said outside, of the last values by their names: the course's own function of them; if there
        are ``places``, its gradient there, and one value more is the weights, as in
        `companion.lesson.trials.gradients_by`.
        """
        say(PIPES[1], {"stand_in": [self.module, self.name], "named": named, "places": places}, values)
        message, got = hear(PIPES[0])
        if message is None or "refused" in message:
            raise NotAttempted(f"{self.name}: not attempted")
        return got[0]

    def check(self, function: Any) -> None:
        """Checks are made outside."""

    grade = check


class _Differentiable(torch.autograd.Function):
    """What the course's own function gives, and on the way back its gradient: both are asked outside."""

    @staticmethod
    def forward(context: Any, exercise: StandIn, named: list[str], *values: Any) -> Any:
        context.exercise, context.named, context.values = exercise, named, values
        return exercise.asked(named, list(values), [])

    @staticmethod
    def backward(context: Any, weights: Tensor) -> Any:
        places = [place for place, needed in enumerate(context.needs_input_grad[2:]) if needed]
        found = context.exercise.asked(context.named, [*context.values, weights], places).nan_to_num()
        grads: list[Tensor | None] = [None] * len(context.values)
        leaves = [context.values[place] for place in places]
        for place, leaf, part in zip(places, leaves, found.split([each.numel() for each in leaves]), strict=True):
            grads[place] = part.view_as(leaf).to(leaf)
        return None, None, *grads


class Shell:
    """What `get_ipython()` gives: it knows the notebook's names, and its magics do nothing."""

    def __init__(self, names: dict[str, Any]):
        self.user_ns, self.push = names, names.update

    def __getattr__(self, name: str) -> Any:
        return lambda *words, **named: None


class Kernel:
    """A notebook's code, run piece by piece as in a kernel: in ``__main__``, where a ``from __future__ import`` holds
    for all that comes after it.
    """

    def __init__(self) -> None:
        self.main, self.future, self.many = ModuleType("__main__"), 0, 0
        shell = Shell(vars(self.main))
        shell.push({"display": lambda *shown, **how: None, "get_ipython": lambda: shell})

    def enter(self) -> None:
        """Be ``__main__`` from now on, until another one is."""
        sys.modules["__main__"] = self.main

    def run(self, source: str, name: str = "") -> None:
        """Run a piece of code. Raises what it raises."""
        self.many += 1
        name, lines = name or f"<cell {self.many}>", source.splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)  # as a notebook does, for the line in a message
        code = compile(source, name, "exec", flags=self.future, dont_inherit=True)
        self.future |= code.co_flags & FUTURE
        exec(code, vars(self.main))


FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names[1:])
PIPES: list[Any] = []  # from and to the grader
DISTURBED = disturbance()  # once: what an answer does to its environment comes too late


def main() -> None:
    """Say hello, then do as told until the pipe closes; with disturbed numbers where the environment asks for them."""
    PIPES[:] = [os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")]
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    torch.set_num_threads(1)
    say(PIPES[1], {"hello": 1})
    with disturbed(DISTURBED):
        _serve()


def _serve() -> None:
    functions: dict[str, Any] = {}
    kernel, largest = Kernel(), 1 << 23
    while (heard := hear(PIPES[0]))[0] is not None:
        message, values = heard
        if "limits" in message:
            keep_to(message["limits"])
            largest = message["limits"]["output"] // 2
        elif "files" in message:
            _write(message["files"])
        elif "define" in message:
            kernel = kernel if message["goes_on"] else Kernel()
            functions[message["define"]] = _defined(message, kernel)
        elif "call" in message:
            _answer(functions[message["call"]], values, largest, wide=message["wide"], places=message["places"])
        else:
            _stand_in(message, values)


def keep_to(values: dict[str, Any]) -> None:
    """Keep to these limits (`companion.workshop.grading.sandbox.sandbox.Limits`) from now on; they can only be lowered
    again. Addresses and memory count from what is taken now, since builds of torch differ in it: its import maps .6 GiB
    where it is for CPUs alone, and 3.1 GiB with CUDA's libraries.
    """
    pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()
    mapped, taken = (int(pages[field]) * os.sysconf("SC_PAGE_SIZE") for field in (0, 5))
    most = {"DATA": taken + values["memory"], "AS": mapped + values["space"], "NPROC": values["processes"]}
    most |= {"FSIZE": values["file"], "NOFILE": values["open"], "MSGQUEUE": 0, "CORE": 0, "CPU": int(values["wall"])}
    lower(most)


def lower(most: dict[str, int]) -> None:
    """Lower this process's limits, by the names that ``resource`` has for them after RLIMIT_."""
    import resource  # noqa: PLC0415 (not on Windows, where there is no sandbox either)

    for name, value in most.items():
        what = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(what)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (limit, limit))


def _write(files: dict[str, str]) -> None:
    """Put the modules that were handed in where the notebook's imports find them: beside it, as they were."""
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
        sys.modules.pop(name.removesuffix(".py"), None)
    sys.path[:] = [os.getcwd(), *(path for path in sys.path if path != os.getcwd())]
    importlib.invalidate_caches()


def _defined(job: dict[str, Any], kernel: Kernel) -> Any:
    """The learner's function; None if its cell fails, which is then said. Before, it is said whether any other code
    failed.
    """
    examined.clear()
    examined.add(StandIn(*job["exercise"]))  # for this one, nothing stands in
    kernel.enter()
    failed = False
    for source in job["before"]:
        try:
            with _interrupted_after(job["cell"]):
                kernel.run(source)
        except BaseException:  # as in a notebook run cell by cell: what fails is missing, and the answer shows it
            failed = True
    say(PIPES[1], {"failed": failed})
    try:
        kernel.run(job["answer"], "<answer>")
        function = own_function(vars(kernel.main)[job["function"]])
    except BaseException as error:
        say(PIPES[1], _raised(error, None))
        return None
    say(PIPES[1], {"ready": 1})
    return function, StandIn(*job["exercise"]), kernel


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in what takes longer than so many seconds of computing; of 0, it takes what it does."""
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(defined: Any, inputs: list[Any], largest: int, *, wide: bool, places: list[int]) -> None:
    """Say what the function gives; if ``places`` names arguments, its gradient with respect to these, and the last of
    the inputs are the weights of its entries.
    """
    function, exercise, kernel = defined
    kernel.enter()
    inputs = [given(value, DISTURBED) for value in inputs]
    examined.clear()
    examined.add(exercise)
    arguments = [value.clone() if isinstance(value, Tensor) else value for value in inputs]
    try:
        if places:
            got = gradients_by(function, arguments[:-1], places, arguments[-1])
        else:
            got = in_float64(function, dict(enumerate(arguments))) if wide else function(*arguments)
    except BaseException as error:
        stub = is_stub(function, error) or isinstance(error, NotAttempted)
        say(PIPES[1], {"stub": 1} if stub else _raised(error, function))
        return
    is_tensor = type(got) in (Tensor, torch.nn.Parameter)
    if is_tensor and got.is_meta:
        say(PIPES[1], {"raised": "ValueError", "text": "the answer is on meta, and has no numbers", "line": ""})
        return
    if is_tensor and got.numel() * got.element_size() > largest:
        text = f"the answer has the shape {tuple(got.shape)}, which is too large"
        say(PIPES[1], {"raised": "MemoryError", "text": text, "line": ""})
        return
    changed = [
        new if isinstance(new, Tensor) and _differ(old, new) else None
        for old, new in zip(inputs, arguments, strict=True)
    ]
    if sum(new.numel() * new.element_size() for new in changed if new is not None) > largest:
        changed = [None if new is None else new.new_empty(0) for new in changed]  # that they did is told all the same
    if is_tensor and got.dtype in wire.DTYPES and got.layout is torch.strided:
        say(PIPES[1], {"tensor": 1}, [got, *changed])
    else:
        say(PIPES[1], {"other": type(got).__name__ if got is not None else ""}, [None, *changed])


def _stand_in(message: dict[str, Any], values: list[Any]) -> None:
    """In the process that has the answers: what the course's own function gives, or its gradient."""
    module, name = message["stand_in"]
    named, places = message["named"], message["places"]
    weights = values.pop() if places else None

    def function(*given: Any) -> Any:
        plain = given[: len(given) - len(named)]
        of_name = dict(zip(named, given[len(plain) :], strict=True))
        return getattr(import_module(module), name).answer(*plain, **of_name)

    try:
        got = gradients_by(function, values, places, weights) if places else function(*values)
    except Exception as error:
        say(PIPES[1], {"raised": type(error).__name__})
        return
    say(PIPES[1], {"course": 1}, [got if isinstance(got, Tensor | int | float) else None])


def _differ(old: Tensor, new: Tensor) -> bool:
    return not new.is_meta and not (old.shape == new.shape and torch.equal(old, new))


def _raised(error: BaseException, function: Any) -> dict[str, Any]:
    line = failing_line(function, error) if function else _last_line(error)
    text = f"{error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else str(error)
    return {"raised": type(error).__name__, "text": text[:1000], "line": line.strip()[:200]}


def _last_line(error: BaseException) -> str:
    trace = traceback.extract_tb(error.__traceback__)
    return ([summary.line or "" for summary in trace if summary.filename == "<answer>"] or [""])[-1]


def say(outlet: BinaryIO, message: dict[str, Any], values: list[Any] | None = None) -> None:
    """Write a message."""
    outlet.write(wire.encode(message, values))
    outlet.flush()


def hear(inlet: BinaryIO) -> tuple[dict[str, Any] | None, list[Any]]:
    """Read a message; None at the end."""
    line = inlet.readline()
    if not line:
        return None, []
    size, _, text = line.partition(b" ")
    return wire.decode(text, inlet.read(int(size)))
