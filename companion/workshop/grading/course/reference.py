"""The course's own answers, marked before anybody's, and just as a hand-in is. Where one of them does not pass, a right
hand-in would lose its points, too: then nothing is marked.

grading/NN-topic/reference.json    where they passed; there they are not tried again
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from companion.core.files import atomic_write
from companion.workshop.grading.course.marking import RIGHT
from companion.workshop.grading.notebook.handout import Handout
from companion.workshop.grading.sandbox import bubblewrap


class ReferenceFails(RuntimeError):
    """One of the course's own answers does not pass here; the message names it and says why."""


def environment() -> dict[str, str]:
    """Return what decides, beside the course, whether a right answer passes here: with which builds, on which machine
    and by which instructions it is computed.
    """
    chosen = {name: os.environ[name] for name in bubblewrap.HANDED_IN if name in os.environ}
    return {
        "torch": torch.__version__,
        "build": hashlib.sha256(torch.__config__.show().encode()).hexdigest()[:16],
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "machine": platform.platform(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
    } | chosen


def require(
    marked: Callable[[], dict[str, Any] | str],
    handout: Handout,
    source: Path,
    folder: Path,
    course: str,
    *,
    again: bool,
) -> None:
    """Raise ReferenceFails unless all answers of the lesson (its ``handout``, and ``source``, which holds them) pass.

    ``marked`` gives the result of ``source`` as of a hand-in, or what kept it from being marked. It is not called where
    ``folder`` remembers that they have passed in this environment, with this ``course`` (a hash of all that decides a
    result but the answers), unless ``again``.
    """
    file, here = folder / "reference.json", environment()
    key = hashlib.sha256(repr((course, source.read_bytes(), here)).encode()).hexdigest()
    passed = _passed(file)
    if key in passed and not again:
        return
    print(f"{handout.name}: first the course's own answers are tried, as a hand-in is")
    if failing := _failing(marked(), handout):
        about = ", ".join(f"{name} {value}" for name, value in here.items() if name != "build")
        raise ReferenceFails(
            f"{handout.name}: nothing was marked: the course's own answers do not pass here, so that right hand-ins "
            f"would lose points: {failing}. Please report it, with this: {about}"
        )
    atomic_write(file, json.dumps(passed | {key: here}, indent=1) + "\n")


def _failing(result: dict[str, Any] | str, handout: Handout) -> str:
    """Which answers do not pass, and why; empty if all do."""
    if problem := result if isinstance(result, str) else result["problem"]:
        return f"they could not be tried ({problem})"
    entries = [(question.function, result["exercises"][question.id]) for question in handout.automatic]
    lost = [(name, entry) for name, entry in entries if entry["outcome"] != RIGHT]
    return "; ".join(f"{name}: {entry['outcome']} ({entry['diagnosis']})" for name, entry in lost)


def _passed(file: Path) -> dict[str, Any]:
    """The environments in which all passed, by their hash."""
    try:
        passed = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return passed if isinstance(passed, dict) else {}
