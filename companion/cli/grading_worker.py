"""What runs inside the sandbox: defines one learner's function and answers calls of it. Nothing that it says about itself is believed.

Nothing here knows what is right; the grader outside draws the inputs and compares the answers.
"""

import linecache
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, BinaryIO

import torch
from torch import Tensor

from companion.checks import exercise as machinery
from companion.cli import wire
from companion.cli.sandbox import Limits, limit

COMPANION = str(Path(machinery.__file__).parents[1])
LARGEST = Limits().output // 2
STAND_IN = machinery.Attempt.__call__.__code__


def main() -> None:
    """Say hello, then do as told until the pipe closes: a job defines a function, a call calls it."""
    inlet, outlet = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    torch.set_num_threads(1)
    # torch loads its shape arithmetic at the first use: not on the learner's time
    torch.cat([torch.zeros(1, 1, device="meta").mT] * 2)[:1].sum()
    _say(outlet, {"hello": 1})
    function = None
    while True:
        message, inputs = _read(inlet)
        if message is None:
            return
        if "limits" in message:
            limit(message["limits"])
        elif "answer" in message:
            function = _defined(outlet, message)
        else:
            _answer(outlet, function, inputs)


def _defined(outlet: BinaryIO, job: dict[str, Any]) -> Any:
    """The learner's function; None if its cell fails, which is then said."""
    exercise = getattr(import_module(job["module"]), job["exercise"])
    machinery._examined.clear()
    machinery._examined.add(exercise)  # for this one, nothing stands in
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(job["before"]):
        try:
            _run(source, f"<before {number}>", namespace)
        except BaseException:  # as in a notebook run cell by cell: what fails is missing, and the answer shows it
            continue
    try:
        _run(job["answer"], "<answer>", namespace)
        function = machinery._own(namespace[job["function"]])
    except BaseException as error:
        _say(outlet, _raised(error, None))
        return None
    _say(outlet, {"ready": 1})
    return function


def _run(source: str, name: str, namespace: dict[str, Any]) -> None:
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name  # as a notebook does, for the line in a message
    exec(compile(source, name, "exec"), namespace)


def _answer(outlet: BinaryIO, function: Any, inputs: list[Any]) -> None:
    given = [value.clone() if isinstance(value, Tensor) else value for value in inputs]
    course = _Called()
    sys.setprofile(course)
    try:
        got = function(*given)
    except BaseException as error:
        sys.setprofile(None)
        if machinery._is_stub(function, error) or isinstance(error, machinery.NotAttempted):
            _say(outlet, {"stub": 1})
        else:
            _say(outlet, _raised(error, function) | {"course": course.names})
        return
    sys.setprofile(None)
    is_tensor = type(got) in (Tensor, torch.nn.Parameter)
    if is_tensor and got.numel() * got.element_size() > LARGEST and got.device.type != "meta":
        _say(outlet, {"raised": "MemoryError", "text": f"the answer has the shape {tuple(got.shape)}, which is too large", "line": ""})
        return
    changed = [new if isinstance(new, Tensor) and _differ(old, new) else None for old, new in zip(inputs, given, strict=True)]
    if is_tensor and str(got.dtype).removeprefix("torch.") in wire.DTYPES and got.layout is torch.strided:
        _say(outlet, {"tensor": 1, "course": course.names}, [got, *changed])
    else:
        _say(outlet, {"other": type(got).__name__ if got is not None else "", "course": course.names}, [None, *changed])


def _differ(old: Tensor, new: Tensor) -> bool:
    return new.device.type != "meta" and not (old.shape == new.shape and torch.equal(old, new))


class _Called:
    """A profile function: which of the course's functions are called, but for what stands in for another exercise."""

    def __init__(self):
        self.names, self.inside = [], 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code: CodeType = frame.f_code
        if code is STAND_IN:
            self.inside += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self.inside and code.co_filename.startswith(COMPANION) and len(self.names) < 10:
            name = f"{frame.f_globals.get('__name__', '')}.{code.co_qualname}"
            if name not in self.names and not name.startswith("companion.cli"):
                self.names.append(name)


def _raised(error: BaseException, function: Any) -> dict[str, Any]:
    line = machinery._line(function, error) if function else _last_line(error)
    text = f"{error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else str(error)
    return {"raised": type(error).__name__, "text": text[:1000], "line": line.strip()[:200]}


def _last_line(error: BaseException) -> str:
    lines = [summary.line or "" for summary in traceback.extract_tb(error.__traceback__) if summary.filename == "<answer>"]
    return lines[-1] if lines else ""


def _say(outlet: BinaryIO, message: dict[str, Any], values: list[Any] | None = None) -> None:
    outlet.write(wire.encode(message, values))
    outlet.flush()


def _read(inlet: BinaryIO) -> tuple[dict[str, Any] | None, list[Any]]:
    line = inlet.readline()
    if not line:
        return None, []
    size, _, text = line.partition(b" ")
    return wire.decode(text, inlet.read(int(size)))


if __name__ == "__main__":
    main()
