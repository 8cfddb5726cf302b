"""``test --processors``: whether right answers are right, and claims keep their outcomes, on every processor.

Each right answer is tried from thirty starts, all but the first of which are disturbed by a unit in the last place
(`companion.lesson.disturbed`), under every instruction set that the machine has, with the matrix products of another
machine, on one thread and on two. Each setting has a process of its own, since torch reads its variables when it
starts (``tests/wrong_answers/starts.py``). Each lesson runs under the lowest and the highest instruction set, from
three starts.

What is done is kept in ``build/processors``, and not done again until the code changes that decides it. The tables that
the course keeps lie in ``tests/wrong_answers``.
"""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from companion.core.files import atomic_write
from companion.lesson.disturbed import VARIABLE
from companion.workshop.cli import run
from companion.workshop.cli.lessons import Lesson, everything, select_lessons
from companion.workshop.cli.outcomes import ANSWERS, Kept, Row, bar_rows, is_right, put, summary, table_row
from companion.workshop.cli.setup import ROOT
from companion.workshop.cli.test import TopicError, named, topics

STARTS, WRONG_STARTS, LESSON_STARTS = 30, 3, 3
CAPABILITIES = ("default", "avx2", "avx512", "sve256")  # of ATEN_CPU_CAPABILITY, from the lowest to the highest
ASK = "import torch; print(torch.backends.cpu.get_cpu_capability().lower(), torch.backends.mkl.is_available())"
OTHER_PRODUCTS = "COMPATIBLE"
STARTUP = "import companion.lesson.disturbed\ncompanion.lesson.disturbed.stay_disturbed()\n"  # of a kernel


class ProcessorsError(RuntimeError):
    """A process that tries answers ended before it was done; the message says which, and at what."""


@dataclass(frozen=True)
class Setting:
    """How a process computes; ``cbwr`` is empty or MKL's word for the products of another machine."""

    capability: str
    cbwr: str
    threads: int

    def environment(self) -> dict[str, str]:
        """Return the variables of a process of this setting, beside those of this one."""
        threads = str(self.threads)
        own = {"ATEN_CPU_CAPABILITY": self.capability, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        own |= {"OMP_WAIT_POLICY": "PASSIVE"}  # on a busy machine two threads would spin for each other
        others = {name: value for name, value in os.environ.items() if name not in ("MKL_CBWR", VARIABLE)}
        return others | own | ({"MKL_CBWR": self.cbwr} if self.cbwr else {})


LESSONS = ("key", "lesson", "capability", "start", "errors", "outcomes")


def main(words: Sequence[str], root: Path = ROOT) -> int:
    """Try what ``words`` name, topics or lessons, or all there is; 2 for a word that names nothing, 1 if a right answer
    was refused or an outcome changed.
    """
    try:
        lessons, wanted = selection(words, root)
    except TopicError as error:
        print(f"test: {error}")
        return 2
    settings = every_setting()
    build, tables = root / "build/processors", root / "tests/wrong_answers"
    try:
        rows = try_answers(wanted, settings, build / "answers.csv", root)
    except ProcessorsError as error:
        print(f"test: {error}\nThe same command goes on from here.")
        return 1
    right = list(filter(is_right, rows))
    bars = list(bar_rows(rows))
    put(tables / "processors.csv", [table_row(row) for row in right], "exercise", whole=not words)
    put(tables / "bars.csv", bars, "exercise", whole=not words)
    ran = try_lessons(lessons, settings, build, root)
    put(tables / "processors-lessons.csv", ran, "lesson", whole=not words)
    print(*summary(rows, bars, ran), sep="\n")
    return int(any(row["refused"] != "0" for row in right) or any(row["changed"] != "-" for row in ran))


def selection(words: Sequence[str], root: Path = ROOT) -> tuple[list[Lesson], Callable[[Row], bool]]:
    """Return the lessons that ``words`` name, and whether an answer belongs to what they name: to a topic, or to an
    exercise that a lesson's notebooks mention. Raises TopicError for a word that names neither.
    """
    if not words:
        return everything(root), lambda job: True
    known, lessons, rooms, exercises = topics(root), set(), set(), set()
    for word in words:
        asked_for = named([word], root)
        if word in known:
            rooms.add(word)
            lessons |= set(known[word])
            continue
        for lesson in select_lessons([word], among=everything(root)):
            lessons.add(lesson.name)
            text = "".join(path.read_text(encoding="utf-8") for path in lesson.notebooks)
            exercises |= {(room, name) for room in asked_for for name in re.findall(r"\bexercises\.(\w+)", text)}
    return (
        [lesson for lesson in everything(root) if lesson.name in lessons],
        lambda job: job["topic"] in rooms or (job["topic"], job["exercise"]) in exercises,
    )


def every_setting() -> list[Setting]:
    """Return the settings of this machine, from the lowest instruction set to the highest: each on one thread and on
    two; and, where torch computes with MKL, the highest with the products of another machine.
    """
    found, mkl = [], False
    for capability in CAPABILITIES:
        said = subprocess.run(
            [sys.executable, "-c", ASK],
            env=Setting(capability, "", 1).environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        found += [capability] * (said[0] == capability)
        mkl = said[1] == "True"
    kinds = [(capability, "") for capability in found] + [(found[-1], OTHER_PRODUCTS)] * mkl
    return [Setting(capability, cbwr, threads) for capability, cbwr in kinds for threads in (1, 2)]


def try_answers(
    wanted: Callable[[Row], bool], settings: Sequence[Setting], path: Path, root: Path = ROOT, starts: int = STARTS
) -> list[Row]:
    """Return a row for each answer under each setting: right ones everywhere, and wrong ones of summits under the
    highest instruction set, for their bars. Raises ProcessorsError.

    ``wanted``: which answers.
    ``settings``: as `every_setting` gives them.
    ``path``: where rows are kept as they come.
    ``root``: the checkout.
    ``starts``: of a right answer.
    """
    with _started("list", os.environ, root) as process:
        listed = [job for job in json.loads(process.stdout.read() or "[]") if wanted(job)]
    if process.returncode:
        raise ProcessorsError(
            f"the process that lists the answers ended with status {process.returncode}; its own message is above"
        )
    plainest = Setting(max(settings, key=lambda each: CAPABILITIES.index(each.capability)).capability, "", 1)
    jobs = {setting: [job | {"starts": starts} for job in listed if is_right(job)] for setting in settings}
    jobs[plainest] += [job | {"starts": WRONG_STARTS} for job in listed if not is_right(job)]
    kept = Kept(path, ANSWERS)
    done = {_identity(row): row for row in kept.rows()}
    cells = {setting: [_cell(job, setting) for job in own] for setting, own in jobs.items()}
    left = {setting: [cell for cell in own if _identity(cell) not in done] for setting, own in cells.items()}
    with tqdm(total=sum(map(len, left.values())), desc="answers", unit="answer", dynamic_ncols=True) as bar:
        for setting in settings:
            for cell, outcome in _outcomes(left[setting], setting, listed, root):
                row = cell | outcome
                kept.add(row)
                done[_identity(row)] = row
                bar.update()
    return [done[_identity(cell)] for own in cells.values() for cell in own]


def _cell(job: Row, setting: Setting) -> Row:
    said = {name: job[name] for name in ("key", "exercise", "answer")}
    how = {"capability": setting.capability, "cbwr": setting.cbwr, "threads": str(setting.threads)}
    return said | how | {"starts": str(job["starts"])}


def _identity(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in ANSWERS[:7])


def _outcomes(cells: list[Row], setting: Setting, listed: list[Row], root: Path) -> Iterator[tuple[Row, Row]]:
    """What becomes of the answers of one setting, in one process, one after the other."""
    if not cells:
        return
    rooms = {job["exercise"]: job["topic"] for job in listed}
    jobs = [
        {"topic": rooms[cell["exercise"]], "starts": int(cell["starts"])}
        | {name: cell[name] for name in ("exercise", "answer")}
        for cell in cells
    ]
    with _started("try", setting.environment(), root) as process:
        process.stdin.write(json.dumps({"threads": setting.threads, "jobs": jobs}))
        process.stdin.close()
        for cell in cells:
            if not (line := process.stdout.readline()).endswith("\n"):
                process.wait()
                raise ProcessorsError(
                    f"{cell['exercise']}, {cell['answer']}: its process ended with status {process.returncode}, "
                    f"under {setting}"
                )
            outcome = json.loads(line)
            bars = json.dumps(outcome["bars"])
            yield cell, {"refused": str(outcome["refused"]), "said": " ".join(outcome["said"].split()), "bars": bars}


@contextlib.contextmanager
def _started(command: str, environment: Mapping[str, str], root: Path) -> Iterator[subprocess.Popen]:
    tests = root / "tests"
    paths = [str(root), str(tests), *filter(None, [os.environ.get("PYTHONPATH")])]
    with subprocess.Popen(
        [sys.executable, str(tests / "wrong_answers/starts.py"), command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def try_lessons(lessons: Sequence[Lesson], settings: Sequence[Setting], build: Path, root: Path = ROOT) -> list[Row]:
    """Run lessons under the lowest and the highest instruction set, on one thread, and return a row for each run: how
    many claims it has, and which of them, or of the errors, are others than at the highest without disturbance.

    ``lessons``: which.
    ``settings``: as `every_setting` gives them.
    ``build``: the folder of what is executed and kept.
    ``root``: the checkout.
    """
    kept = Kept(build / "lessons.csv", LESSONS)
    done = {tuple(row[name] for name in LESSONS[:4]): row for row in kept.rows()}
    found = []
    for lesson in lessons:
        key = _lesson_key(lesson, root)
        runs = {}
        for capability in dict.fromkeys((settings[-1].capability, settings[0].capability)):
            for start in range(LESSON_STARTS):
                at = key, lesson.name, capability, str(start)
                if at not in done:
                    done[at] = dict(zip(LESSONS, at, strict=False)) | _run(lesson, capability, start, build)
                    kept.add(done[at])
                runs[at[2:]] = done[at]
        first = next(iter(runs.values()))
        for (capability, start), row in runs.items():
            changed = [
                *_changed(json.loads(first["outcomes"]), json.loads(row["outcomes"])),
                *json.loads(row["errors"]),
            ]
            found.append(
                {
                    "lesson": lesson.name,
                    "capability": capability,
                    "start": start,
                    "claims": str(len(json.loads(row["outcomes"]))),
                    "changed": "; ".join(changed) or "-",
                }
            )
    return found


def _run(lesson: Lesson, capability: str, start: int, build: Path) -> Row:
    startup = build / "startup.py"
    atomic_write(startup, STARTUP)
    more = {VARIABLE: str(start), "PYTHONSTARTUP": str(startup.resolve())} if start else {}
    with _environment(Setting(capability, "", 1).environment() | more):
        entry = run.execute(lesson, "course", 0, build)
    outcomes = {claim["id"]: [claim["expected"], claim["verdict"]] for claim in entry["claims"]}
    return {
        "errors": json.dumps([" ".join(each.split()) for each in entry["errors"]]),
        "outcomes": json.dumps(outcomes),
    }


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _changed(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What a run says otherwise than the first one."""
    return [
        f"{id}: {_told(first.get(id))} -> {_told(other.get(id))}"
        for id in dict.fromkeys([*first, *other])
        if first.get(id) != other.get(id)
    ]


def _told(outcome: Any) -> str:
    if outcome is None:
        return "none"
    expected, verdict = outcome
    return ", ".join([*(f"{where} {what}" for where, what in expected.items()), *filter(None, [verdict])])


def _lesson_key(lesson: Lesson, root: Path) -> str:
    """A hash of the notebooks, and of all that a lesson may reach: code, claims, tables, checkpoints."""
    course, rooms = root / "companion", [room for room, names in topics(root).items() if lesson.name in names]
    patterns = ["core/**/*.py", "lesson/**/*.py", f"published/{lesson.name}.toml"]
    for room in rooms:
        patterns += [f"topics/{room}/**/*.*", f"measured/{room}-*", f"weights/{room}-*"]
    paths = [path for pattern in patterns for path in sorted(course.glob(pattern)) if path.suffix != ".pyc"]
    digest = hashlib.sha256()
    for path in (*lesson.notebooks, *paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
