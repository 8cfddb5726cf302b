"""Tries answers from disturbed starts, in a process of its own for each setting of the processor: what ``test
--processors`` (`companion.workshop.cli.processors`) runs.

    python tests/wrong_answers/starts.py list       the jobs there are, as JSON on one line
    python tests/wrong_answers/starts.py try        jobs as JSON on the input; each one's outcome on a line of its own

The inputs of a start are drawn from a seed of its own. Start 0 is undisturbed. In the others every tensor that the
answer is given, and every number that it draws, is off by one unit in the last place; an exercise's expected value is
computed from what was drawn. Of a summit the whole check runs disturbed: it may train, too.
"""

import functools
import hashlib
import inspect
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from wrong_answers.cases import CASES, EXERCISES, compiled

import companion
from companion.lesson.attempts import Mistake, own_function
from companion.lesson.bars import Measured, recorded
from companion.lesson.disturbed import disturbed, given
from companion.lesson.exercise import Exercise
from companion.lesson.summit import Summit

HOME = Path(companion.__file__).parent
FIRST_SEED = 1000


def answers(exercise: Exercise, key: tuple[str, str]) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield name, source and function of the answers to try: the course's, those written differently and, of a summit,
    the wrong ones.
    """
    yield "course", inspect.getsource(exercise.answer), exercise.answer
    counted = {"right": 0, "wrong": 0}
    for case in CASES[key]:
        kind = "right" if case.message is None else "wrong"
        counted[kind] += 1
        if kind == "right" or isinstance(exercise, Summit):
            yield f"{kind} {counted[kind]}", case.source, own_function(compiled(exercise, case.source))


def jobs() -> list[dict[str, str]]:
    """Return all answers there are to try, each with the hash of what decides how it fares."""
    engine = _read(path for floor in ("core", "lesson") for path in sorted((HOME / floor).glob("*.py")))
    topics = {topic for topic, _ in EXERCISES}
    rooms = {topic: _read(sorted((HOME / "topics" / topic).rglob("*.py"))) for topic in topics}
    return [
        {
            "topic": topic,
            "exercise": name,
            "answer": answer,
            "key": _hash(torch.__version__, engine, rooms[topic], source),
        }
        for (topic, name), exercise in EXERCISES.items()
        for answer, source, _ in answers(exercise, (topic, name))
    ]


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _read(paths: Any) -> str:
    return "\0".join(path.read_text(encoding="utf-8") for path in paths)


def tried(exercise: Exercise, function: Callable[..., Any], starts: int, *, wrong: bool) -> dict[str, Any]:
    """Return how many starts of an answer are refused, what is said the first time, and what was measured beside each
    bar: ``[name, sense, [bar, worst], [bar, best]]``. The starts of a ``wrong`` answer are all undisturbed.
    """
    said, measured = [], []
    for start in range(starts):
        try:
            with recorded() as found:
                _examine(exercise, function, FIRST_SEED + start, 0 if wrong else start)
        except Mistake as mistake:
            said.append(f"start {start}: {mistake}")
        except Exception as error:  # the check's own fault, or a crash that it does not expect
            said.append(f"start {start}: {type(error).__name__}: {error}")
        measured += found
    return {"refused": len(said), "said": "".join(said[:1]), "bars": list(_extremes(measured))}


def _examine(exercise: Exercise, function: Callable[..., Any], seed: int, start: int) -> None:
    trains = isinstance(exercise, Summit)

    @functools.wraps(function)
    def started(*values: Any) -> Any:
        with disturbed(0 if trains else start):
            return function(*(given(value, start) for value in values))

    torch.manual_seed(seed)  # for an answer that draws from the generator of all
    if trains:
        exercise._known.clear()  # of another start
    with disturbed(start if trains else 0):
        exercise._examine(started, [seed])


def _extremes(measured: list[Measured]) -> Iterator[list[Any]]:
    for name, sense in dict.fromkeys((one.name, one.sense) for one in measured):
        same = sorted((one for one in measured if (one.name, one.sense) == (name, sense)), key=lambda one: one.beyond)
        yield [name, sense, *([one.bar, one.value] for one in (same[0], same[-1]))]


def main(command: str) -> None:
    """List the jobs, or do those that the input asks for: ``{"threads", "jobs": [{"topic", "exercise", "answer",
    "starts"}, ..]}``.
    """
    warnings.simplefilter("ignore")
    if command == "list":
        print(json.dumps(jobs()), flush=True)
        return
    asked = json.load(sys.stdin)
    torch.set_num_threads(asked["threads"])
    for job in asked["jobs"]:
        key = job["topic"], job["exercise"]
        [function] = [function for answer, _, function in answers(EXERCISES[key], key) if answer == job["answer"]]
        outcome = tried(EXERCISES[key], function, job["starts"], wrong=job["answer"].startswith("wrong"))
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
