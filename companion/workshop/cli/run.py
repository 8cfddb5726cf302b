"""``run``: executes the solutions with papermill and reports seconds, memory, errors, and what became of each claim."""

import base64
import json
import math
import sys
import tempfile
import threading
import time
from argparse import Namespace
from pathlib import Path

import nbformat
import papermill
import psutil
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from companion.core.files import FileError, atomic_write, make_room, read_kept
from companion.lesson.claims import EVIDENCE, MIME, UNEXPECTED, statements
from companion.lesson.verdicts import tally
from companion.workshop.cli import evidence, scoreboard
from companion.workshop.cli.answers import put_answers
from companion.workshop.cli.lessons import Lesson, LessonError, everything, select_lessons
from companion.workshop.cli.setup import ROOT
from companion.workshop.notebooks import node


def main(arguments: Namespace, root: Path = ROOT) -> int:
    """Run the lessons one after the other; 1 if a cell of any failed."""
    if arguments.readme and arguments.lessons:
        print("run: --readme needs a run of all lessons; leave LESSON out")
        return 2
    if arguments.evidence and arguments.scale != "course":
        print(f"run: --evidence needs --scale course, not {arguments.scale}")
        return 2
    try:
        lessons = select_lessons(arguments.lessons, among=everything(root))
    except LessonError as error:
        print(f"run: {error}")
        return 2
    out = Path(arguments.out)
    make_room(out)
    ran = []
    for lesson in lessons:
        ran.append(execute(lesson, arguments.scale, arguments.seed, out, pictures=arguments.pictures))
        _say(ran[-1])
        try:
            report = _report(ran, out / "report.json", root)
            unwritten = ""
        except OSError as error:  # a disk that is full, a file that is held: the other lessons run all the same
            unwritten = f"run: {out / 'report.json'} cannot be written: {error.strerror}"
            print(unwritten)
    if unwritten:
        return 1
    print(f"The executed notebooks and report.json are in {out}")
    if arguments.readme:
        scoreboard.update(report, root)
    if arguments.evidence:
        evidence.add((entry for entry in ran if entry["claims"]), root)
    return int(any(entry["errors"] for entry in ran))


def _report(ran: list[dict], path: Path, root: Path) -> dict:
    """Write into the report at ``path`` what ``ran``, beside what it says of others, and return it. Raises OSError."""
    report = {"lessons": [*kept_entries(path, {entry["lesson"] for entry in ran}, root), *ran]}
    report["lessons"].sort(key=lambda entry: entry["lesson"])
    atomic_write(path, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return report


def _say(entry: dict) -> None:
    """Print a lesson's entry of the report."""
    unexpected = [claim["id"] for claim in entry["claims"] if UNEXPECTED in claim["expected"].values()]
    print(
        f"{entry['lesson']}: {' + '.join(f'{each:.0f}' for each in entry['seconds'].values())} s, "
        f"{entry['peak_rss_mib']:.0f} MiB; "
        f"published claims: {tally(claim['verdict'] for claim in entry['claims'])}; {len(entry['errors'])} errors"
    )
    if unexpected:
        print(f"  {UNEXPECTED}, by the course's own bars: {', '.join(unexpected)}")
    for error in entry["errors"]:
        print(f"  {error}")


def kept_entries(report: Path, ran: set[str], root: Path) -> list[dict]:
    """Return what the last ``report`` says of the lessons in ``root`` that are not among those that ``ran`` now: their
    notebooks still lie beside it. Nothing where there is none; a damaged one is put aside. Raises OSError where it
    cannot be read.
    """
    content = read_kept(report, "the report of a run", lambda kept: all("lesson" in entry for entry in kept["lessons"]))
    others = {lesson.name for lesson in everything(root)} - ran
    return [entry for entry in (content or {"lessons": []})["lessons"] if entry["lesson"] in others]


def execute(lesson: Lesson, scale: str, seed: int, out: Path, *, pictures: bool = False) -> dict:
    """Run a lesson's notebooks, keep each in ``out``, and return the lesson's entry of the report.

    ``lesson``: which one.
    ``scale``, ``seed``: what the parameters cells are set to.
    ``out``: the folder for what it makes.
    ``pictures``: whether the lesson's two pictures are drawn anew (see `draw_pictures`), by its exercises' answers.
    """
    ran = [_execute(path, scale, seed, out, pictures=pictures) for path in lesson.notebooks]
    return {
        "lesson": lesson.name,
        "scale": scale,
        "seed": seed,
        "seconds": {path.stem: seconds for path, (seconds, *_) in zip(lesson.notebooks, ran, strict=True)},
        "peak_rss_mib": max(peak for _, peak, *_ in ran),
        "errors": [error for _, _, errors, *_ in ran for error in errors],
        "claims": in_order([claim for *_, claims, _ in ran for claim in claims], lesson.name),
        "evidence": {id: numbers for *_, measured in ran for id, numbers in measured.items()},
    }


def _execute(
    source: Path, scale: str, seed: int, out: Path, *, pictures: bool
) -> tuple[float, float, list[str], list[dict], dict]:
    """Run one notebook: seconds, MiB at the peak, errors, claims, what was measured for evidence."""
    name = source.stem
    with tempfile.TemporaryDirectory(dir=out) as folder, PeakMemory() as peak:
        path = Path(folder) / source.name
        started, failure = time.perf_counter(), None
        try:
            given = answered(source) if pictures else node(source)
            papermill.execute_notebook(
                given,
                path,
                kernel_name="python3",  # whatever the notebook says: it may have been saved with another's
                language="python",
                kernel_manager_class=OwnKernel,
                parameters={"SCALE": scale, "SEED": seed},
                cwd=source.parent,
                progress_bar={"desc": f"{name} ({scale})"},
                coalesce_streams=True,  # or one print, sent in two by chance, is two boxes on the page
                autosave_cell_every=0,
                extra_arguments=["--log-level=ERROR"],  # ipykernel warns of TCP without encryption on every start
            )
        except PapermillExecutionError as error:
            failure = f"{error.ename}: {error.evalue}"
        except FileError as error:
            failure = str(error)
        except Exception as error:  # a kernel that died, a notebook that cannot be read: the other lessons go on
            failure = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        errors, claims, measured = [], [], {}
        place = ""
        try:
            if path.exists():
                notebook = node(path)
                claims, measured = harvest(notebook), measured_in(notebook)
                place = failing_cell(notebook, given) if failure else ""
                atomic_write(out / source.name, nbformat.writes(notebook))
                if pictures and not failure:
                    draw_pictures(notebook, source.parent)
        except (FileError, OSError) as error:
            errors.append(f"{name}: {error}")
        if failure:
            errors.append(f"{', '.join(filter(None, [name, place]))}: {failure}")
    return round(seconds, 1), round(peak.bytes / 2**20, 1), errors, claims, measured


def answered(path: Path) -> NotebookNode:
    """Write the exercises' answers into the notebook at ``path``, as `release` does, and return it. A new lesson's have
    not been written yet: `release` asks for the pictures first. Raises FileError.
    """
    notebook, others = put_answers(path)
    if others:
        atomic_write(path, nbformat.writes(notebook) + "\n")
    return notebook


def harvest(notebook: NotebookNode) -> list[dict]:
    """Read the claims that the notebook's outputs hold, in order."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return [claim for output in outputs for claim in output.get("data", {}).get(MIME, [])]


def measured_in(notebook: NotebookNode) -> dict[str, dict[str, list[float]]]:
    """Read what the notebook's outputs hold of evidence, by claim."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return {id: numbers for output in outputs for id, numbers in output.get("data", {}).get(EVIDENCE, {}).items()}


def in_order(claims: list[dict], lesson: str) -> list[dict]:
    """Return the claims of both notebooks in the order of the lesson's file, where it has one."""
    try:
        order = list(statements(lesson))
    except ValueError:
        return claims
    return sorted(claims, key=lambda claim: order.index(claim["id"]))


def draw_pictures(executed: NotebookNode, folder: Path) -> None:
    """Save what the cells tagged ``figure`` and ``answer`` show into ``folder``: the picture at the lesson's head,
    which asks, and the same one answered. Raises LessonError where such a cell shows none, or more than one.
    """
    for cell in executed.cells:
        for name in {"figure", "answer"} & set(cell.metadata.get("tags", [])):
            shown = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
            if len(shown) != 1:
                raise LessonError(f"the cell tagged {name} shows {len(shown)} pictures; must show exactly one")
            atomic_write(folder / f"{name}.png", base64.b64decode(shown[0]))


def failing_cell(executed: NotebookNode, source: NotebookNode) -> str:
    """``cell 17 ("Newton's method"), `check(newton)` ``: the place of the cell that failed in the ``source``, the
    heading that it stands under, and its first line; empty where none had begun.
    """
    begun = [cell.id for cell in executed.cells if cell.metadata.get("papermill", {}).get("start_time")]
    heading = "no heading"
    for number, cell in enumerate(source.cells if begun else [], 1):
        if cell.cell_type == "markdown":
            titles = [line.lstrip("# ") for line in cell.source.splitlines() if line.startswith("#")]
            heading = titles[-1] if titles else heading
        if cell.id == begun[-1]:
            return f'cell {number} ("{heading}"), `{cell.source.strip().partition(chr(10))[0]}`'
    return "the parameters" if begun else ""


class OwnKernel(AsyncKernelManager):
    """A kernel of the environment at hand, whatever a person's Jupyter knows under the name ``python3``."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """Return how it is started."""
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3 (ipykernel)", language="python")


class PeakMemory(threading.Thread):
    """Samples, while it stands open, the resident memory of the processes that this one has started since (kernels);
    keeps the largest sum.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes, self.done = 0, threading.Event()

    def __enter__(self):
        self.this = psutil.Process()
        self.before = set(self.this.children(recursive=True))  # whatever else this process has started is no kernel
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()

    def run(self):
        looked, processes = -math.inf, set()
        while not self.done.wait(0.05):
            if time.monotonic() - looked > 0.25:  # to find them takes longer than to ask them
                looked, processes = time.monotonic(), set(self.this.children(recursive=True)) - self.before
            total = 0
            for process in processes:
                try:
                    total += process.memory_info().rss
                except psutil.Error:  # it ended between the two calls
                    continue
            self.bytes = max(self.bytes, total)
