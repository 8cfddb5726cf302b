"""Looks for honest hand-ins that lose points and for hostile ones that win some, or take them from others.

A case is a number: all that is random in it is drawn from that number, so a case that failed can be made again.

    python -m companion grade --self-test MINUTES       # ends some seconds after these, whatever a case waits for
"""

import csv
import functools
import json
import os
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from tqdm.auto import tqdm
from workshop.grading.answers import HEAD, RIGHT
from workshop.grading.arrivals import ARRIVALS, DUE
from workshop.grading.effects import EFFECTS
from workshop.grading.small_lesson import AUTOMATIC, NAME, checkout, grade_id, hand_in, handed_in, rows
from workshop.grading.variants import CUTTING, HABITS, WAYS

from companion.workshop.cli import grade
from companion.workshop.cli.lessons import all_lessons, select_lessons
from companion.workshop.grading.alone import Ended, alone
from companion.workshop.grading.course.marking import _exercise, mark, prepare
from companion.workshop.grading.course.names import file_name
from companion.workshop.grading.notebook.handout import Handout, Question, handout
from companion.workshop.grading.notebook.submissions import assemble, cells
from companion.workshop.grading.notebook.syntax import plain
from companion.workshop.grading.sandbox.sandbox import Limits

BRIEF = Limits(exercise=1, reading=6, wall=120)
EVERY, MANY = 10, 8  # one case of so many is a class of so many who mean harm
LONGEST = 300.0  # seconds for a case, on the wall clock of a machine however busy
MEMORY = 1 << 40  # bytes: of the processes of a case, each has limits of its own
HONEST = ("..anna", "zoe")


# -- honest


def lesson(number: int) -> tuple[Handout, dict]:
    """A lesson's questions, and its solved notebook as its learners hold it: checks without their hidden part. The
    notebook is a new one each time, for whoever asks may change it.
    """
    given, solved = _read(number)
    return given, json.loads(solved)


@functools.cache
def _read(number: int) -> tuple[Handout, str]:
    source = all_lessons()[number].source
    given = handout(source, source.parents[2] / "lessons" / source.parent.name / source.name)
    notebook = json.loads(source.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = grade_id(cell)
        lines = "".join(cell["source"]).splitlines()
        cell["source"] = "\n".join(line for line in lines if not line.strip().startswith("### "))
        if name.endswith("-check"):
            cell["source"] = given.sources[name]
    return given, json.dumps(notebook)


def honest(case: int) -> tuple[Handout, str, NotebookNode, str]:
    """A lesson, one of its questions, a notebook that answers it rightly in some way of its own, and the way's name."""
    random = Random(case)
    number = case % len(all_lessons())
    question = random.choice(lesson(number)[0].automatic)
    ways = random.sample((*WAYS, *EFFECTS), random.randint(0, 2))
    habits = random.sample(HABITS, random.randint(0, 2))
    return lesson(number)[0], question.id, *answered(number, question, ways, habits)


def answered(number: int, question: Question, ways: list, habits: list) -> tuple[NotebookNode, str]:
    """A lesson's solution with the answer to one question written in these ways, and the names of those that fit it."""
    notebook = nbformat.from_dict(lesson(number)[1])  # a copy; there is no need to look whether it is valid
    names = [grade_id(cell) for cell in notebook.cells]
    place, check = names.index(question.answer_id), names.index(question.id)
    before, source = [], notebook.cells[place].source
    done = []
    cut = CUTTING if getattr(_exercise(question), "gradient", ()) else ()
    for way in (each for each in ways if each not in cut):
        try:
            more, written = way(source)
            compile(plain(written), way.__name__, "exec")  # a future import must stand first
        except (SyntaxError, AttributeError):  # a way that cannot follow another one, such as a magic's
            continue
        before, source, done = [*more, *before], written, [*done, way.__name__]
    notebook.cells[place].source = source
    answer, checked = notebook.cells[place], notebook.cells[check]
    notebook.cells[place:place] = [new_code_cell(cell) for cell in before]
    for habit in habits:
        if any(cell is answer for cell in notebook.cells) and any(cell is checked for cell in notebook.cells):
            at = [next(n for n, cell in enumerate(notebook.cells) if cell is one) for one in (answer, checked)]
            try:
                habit(notebook.cells, *at)
            except SyntaxError:
                continue
            done.append(habit.__name__)
    return notebook, " + ".join(done)


def judged(case: int, limits: Limits) -> str:
    """What is wrong with an honest case's mark; empty if nothing is."""
    given, name, notebook, way = honest(case)
    handed = assemble(given, cells(json.dumps(notebook).encode()))
    for part in (handed.answers, handed.below):
        for other in set(part) - {name}:
            del part[other]
    entry = mark(handed, given, [5, 6], limits, unsafe=False)["exercises"][name]
    about = f"case {case}: {given.name}, {name}, {way or 'as it stands'}"
    if entry["outcome"] != "right":
        return f"{about}: {entry['outcome']}: {entry['diagnosis']}"
    return f"{about}: flagged: {handed.flags}" if handed.flags else ""


# -- hostile

HARM = tomllib.loads(Path(__file__).with_name("harm.toml").read_text(encoding="utf-8"))

ODD = (None, True, -1, 0, 1e308, 2**70, "", "\ud800", "x" * 100_000, [], {}, [[[[[[]]]]]], {"": {}}, ["\n"] * 10_000)


def act(random: Random) -> str:
    """One line that means harm."""
    return random.choice(HARM["acts"]).format(
        text=random.choice(HARM["texts"]),
        name=random.choice(HARM["names"]),
        number=random.randrange(100),
        dtype=random.choice(("float64", "float16", "bfloat16")),
        operation=random.choice(("eq", "le", "sub", "bool", "len", "repr", "hash", "reduce_ex", "getattribute")),
        builtin=random.choice(("all", "any", "abs", "max", "isinstance", "len", "open", "print", "getattr")),
        noise=random.choice((r"b'0 {{}}\n'", r"b'x' * 65536", r"b'\x00\xff' * 9", r"b'{\"raised\": \"E\"}\n'")),
    )


def program(random: Random) -> NotebookNode:
    """A notebook in which one exercise is answered wrongly, with harm around it, and the others are not."""
    acts = [act(random) for _ in range(random.randint(1, 3))]
    guarded = "".join(
        f"    try:\n        {line}\n    except {random.choice(('OSError', 'Exception'))}:\n        pass\n"
        for line in acts
    )
    inside = "".join(f"    {line}\n" for line in acts)
    answer = f"{HEAD}{random.choice((guarded, inside, ''))}    return {random.choice(HARM['values'])}\n"
    if random.random() < 0.3:
        answer = f"M = S = torch.eye(2)\n{act(random)}\n{answer}"
    notebook = handed_in({"newton-step": answer})
    for _ in range(random.randint(0, 2)):
        notebook.cells.insert(random.randrange(len(notebook.cells)), new_code_cell(act(random)))
    if random.random() < 0.3:
        random.shuffle(notebook.cells)
    return notebook


def unsolved(random: Random) -> NotebookNode:
    """A notebook in which nothing is solved, and other cells give the course's own answer for it."""
    notebook, name = handed_in({}), random.choice(list(RIGHT))
    function = name.replace("-", "_")
    head = RIGHT[name].partition(":\n")[0]
    about = {"function": function, "inputs": re.search(r"\((.*?)\)", head)[1], "module": "companion.topics.regression"}
    reaches, zz = random.choice(HARM["reaches"])
    place = [grade_id(cell) for cell in notebook.cells].index(name)
    if body := random.choice(HARM["stubs"]):
        notebook.cells[place].source = f"{head}:\n    {body.format(zz=zz, **about)}"
    at = place + random.choice((0, 1, 1, 1))
    notebook.cells.insert(at, new_code_cell(random.choice(HARM["gives"]).format(zz=zz, **about)))
    notebook.cells.insert(random.randint(3, place), new_code_cell(reaches.format(**about)))
    return notebook


def _bent(node: Any, random: Random) -> Any:
    """A notebook's JSON with something odd at some place."""
    if isinstance(node, dict) and node and random.random() < 0.9:
        key = random.choice(list(node))
        return (
            node | {key: _bent(node[key], random)}
            if random.random() < 0.9
            else {**node, random.choice(("", key * 2)): 1}
        )
    if isinstance(node, list) and node and random.random() < 0.9:
        place = random.randrange(len(node))
        return [*node[:place], _bent(node[place], random), *node[place + 1 :]]
    return random.choice(ODD)


def written(notebook: NotebookNode, random: Random) -> bytes:
    """The notebook as a file that may be broken."""
    node = json.loads(json.dumps(notebook))
    kind = random.choice(("whole",) * 12 + ("bent", "bent", "cut", "flipped", "doubled", "utf-16", "nested"))
    for _ in range(random.choice((1, 5, 30)) if kind == "bent" else 0):
        node = _bent(node, random)
    text = json.dumps(node)
    if kind == "nested":
        text = text.replace("[", "[" * random.choice((2, 10_000)), 1)
    data = text.encode("utf-16" if kind == "utf-16" else "utf-8", "surrogatepass")
    if kind == "cut":
        return data[: random.randrange(len(data))]
    if kind == "flipped":
        changed = bytearray(data)
        for _ in range(random.randint(1, 20)):
            changed[random.randrange(len(changed))] = random.randrange(256)
        return bytes(changed)
    return data * 2 if kind == "doubled" else data


def around(file: Path, random: Random) -> None:
    """Something odd about the folder of a hand-in."""
    folder = file.parent
    noise = random.randbytes(random.choice((0, 10, 5000)))

    def link() -> None:
        (folder / "link").symlink_to(random.choice(("/", "/proc/self/mem", "..", "nowhere", str(file))))

    def dates() -> None:
        os.utime(random.choice((file, folder)), (0, random.choice((0, 1, 2**31, 2**33, 1e11, -1e9))))

    oddities: tuple[Callable[[], Any], ...] = (
        link,
        dates,
        lambda: (folder / "timestamp.txt").write_bytes(
            random.choice((noise, b"yesterday", b"9999-99-99", b"0001-01-01 00:00 UTC"))
        ),
        lambda: (folder / f"._{file.name}").write_bytes(noise),
        lambda: (folder / "other.ipynb").write_bytes(noise),
        (folder / "timestamp.txt").mkdir,
        lambda: os.mkfifo(folder / random.choice(("timestamp.txt", "a.ipynb", "pipe"))),
        lambda: file.rename(folder / random.choice(("x.ipynb", "x.IPYNB", "\n.ipynb", "é" * 60 + ".ipynb", "x"))),
        lambda: file.chmod(0),
        lambda: folder.chmod(0),
        (folder.parent / "kept").mkdir,
        (folder.parent / "99-other").mkdir,
        lambda: None,
    )
    random.choice(oddities)()


def telling(random: Random) -> NotebookNode:
    """A notebook in which one exercise is answered rightly until its inputs are secret, and then tells these."""
    seen = f"    seen.append(1)\n    if len(seen) > 6:\n        return {random.choice(HARM['tells']).format()}\n"
    return handed_in({"newton-step": f"seen = []\n{HEAD}{seen}    return 2 * M - M @ S @ M"})


def neighbours(case: int, many: int, limits: Limits = BRIEF) -> list[str]:
    """Two honest people in a class with ``many`` who mean harm, none of whom has earned anything: what went wrong."""
    random = Random(case)
    with tempfile.TemporaryDirectory() as folder:
        root = checkout(Path(folder))
        settings = root / "grading" / "settings.toml"
        due = f'[deadlines]\n"{NAME}" = {DUE.isoformat()}\n' * random.randint(0, 1)
        settings.write_text(f'counts = "{random.choice(("last", "best"))}"\n{due}', encoding="utf-8")
        for number in range(many):
            name = f"{random.choice(('a', 'm', 'z', '=', ' ', '.', 'ä', '-'))}{number}"
            kind = random.choice((program, unsolved, telling))
            file = hand_in(root, name, written(kind(random), random))
            around(file, random)
        if random.random() < 0.3:  # a folder that is called as the first honest one's is where it is kept
            hand_in(root, file_name(HONEST[0]), handed_in({}))
        honest_ones = [random.choice(ARRIVALS)(root, name, random) for name in HONEST]
        try:
            first, table = _table(root, limits), rows(root)
            anonymous = settings.read_text(encoding="utf-8")
            settings.write_text(f"anonymous = true\n{anonymous}", encoding="utf-8")
            second = _table(root, limits)
        except (Exception, SystemExit) as error:
            return [f"case {case}: the run ended: {error!r}"]
        told = [told for path in (root / "grading" / NAME / "results").glob("*.json") for told in _told(path)]
    points = {row["student"]: [float(row[name]) for name in AUTOMATIC] for row in table.values()}
    wrong = [f"{name} has {points.get(name)}" for name in honest_ones if points.get(name) != [1, 2, 3]]
    wrong += [f"{name} has won {won}" for name, won in points.items() if name not in honest_ones and any(won)]
    wrong += [f"is told of secret inputs: {text}" for text in told]
    wrong += ["another table where marking is anonymous"] if first != second else []
    wrong += [f"a formula in the table: {cell}" for mark in ",;\t" for cell in _formulas(first, mark)]
    return [f"case {case}: {problem}" for problem in wrong]


def _table(root: Path, limits: Limits) -> str:
    """The table of the class, once it is graded. Raises RuntimeError where somebody could not be marked."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        failed = grade.grade(select_lessons([NAME], root)[0], root, jobs=2, limits=limits)
    if failed:
        raise RuntimeError(f"not marked: {failed}")
    return (root / "grading" / NAME / "grades.csv").read_text(encoding="utf-8")


def _formulas(table: str, mark: str) -> list[str]:
    cells = [cell for row in csv.reader(table.splitlines(keepends=True), delimiter=mark) for cell in row]
    return [cell for cell in cells if cell.startswith(("=", "+", "@"))]


def _told(result: Path) -> list[str]:
    """What is said of secret inputs with a number in it."""
    entries = json.loads(result.read_text(encoding="utf-8"))["exercises"].values()
    told = [entry["diagnosis"].partition("but not on other inputs: ")[2] for entry in entries]
    return [text for text in told if re.search(r"(?<![a-z\d])\d", text)]


# -- the search


def trial(case: int) -> list[str]:
    """What is wrong with a case: a class of those who mean harm, or, mostly, one honest hand-in."""
    return [problem for problem in [judged(case, Limits())] if problem] if case % EVERY else neighbours(case, MANY)


def ready(case: int) -> None:
    """Read what a case will need, in the process from which those of all cases are forked."""
    if case % EVERY:
        prepare(lesson(case % len(all_lessons()))[0], frozenset())


def main(minutes: float, first: int) -> int:
    """Look for so many minutes; 1 if something was found. Each case is a process, ended with the time if not before."""
    started, many, tried, case = time.monotonic(), 0, [0, 0], first
    end = started + 60 * minutes
    with tqdm(total=round(60 * minutes), unit="s", desc="self-test") as bar:
        while (left := end - time.monotonic()) > 0:
            try:
                found = alone(trial, case, seconds=min(left, LONGEST), memory=MEMORY, prepare=partial(ready, case))
            except Exception as error:  # of the grader itself, whatever it is
                if left < LONGEST and isinstance(error, TimeoutError):
                    tqdm.write(f"case {case} was not done when the time was up")
                    break
                found = [f"case {case}: {error if isinstance(error, Ended | TimeoutError) else repr(error)}"]
            for problem in found:
                tqdm.write(problem)
            many += len(found)
            tried[case % EVERY == 0] += 1
            case += 1
            bar.update(round(time.monotonic() - started) - bar.n)
    honest_ones, hostile_ones = tried[0], tried[1] * MANY
    print(f"cases {first} to {case - 1}: {honest_ones} honest hand-ins, {hostile_ones} hostile ones, {many} found")
    return int(bool(many))


if __name__ == "__main__":
    from workshop.grading import self_test  # by this name, the processes of the cases find it

    sys.exit(self_test.main(float(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else SystemRandom().randrange(10**6)))
