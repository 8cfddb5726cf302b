"""What a submission is, read without running anything: the answers that it holds, and what in it is odd.

The lesson's own notebook, not the student's, says which exercises there are, what they are worth and how they are checked. From the
student's comes source text alone: for each exercise the cell that defines its function, wherever it stands and whatever its metadata
claim, and those statements of other cells that define a name which that answer uses. So check cells may be edited, copied, moved or
deleted: they are never run, and no metadata of the submission counts.
"""

import ast
import json
import os
import re
import stat
import symtable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import nbformat

from companion.checks.exercise import Exercise
from companion.cli.lessons import Lesson, LessonError

# Names that no answer of this course needs, and that a person should look at
ODD = frozenset(
    {"os", "sys", "subprocess", "socket", "ctypes", "importlib", "inspect", "gc", "builtins", "signal", "multiprocessing", "threading"}
    | {"urllib", "requests", "shutil", "pathlib", "sysconfig", "eval", "exec", "compile", "open", "globals", "setattr", "get_ipython"}
    | {"__builtins__", "__import__", "__subclasses__", "__globals__", "__code__"}
)
CODE = 1 << 20  # characters of code in one notebook: more is not written by hand


class Unreadable(ValueError):
    """A file that holds no notebook of this lesson; the message says why."""


@dataclass(frozen=True)
class Question:
    """One graded cell of a lesson. ``exercise`` is where its `Exercise` lies, as (module, name); None if a person marks the answer."""

    id: str
    answer_id: str
    points: float
    source: str
    function: str = ""
    exercise: tuple[str, str] | None = None


@dataclass(frozen=True)
class Handout:
    """A lesson as its own notebook has it: its questions in order, and its other code cells."""

    name: str
    questions: list[Question]
    code: list[str]
    sources: dict[str, str]

    @property
    def automatic(self) -> list[Question]:
        return [question for question in self.questions if question.exercise]


@dataclass
class Submission:
    """What was handed in: for each exercise the answer's source, what to run before it, the written answers, and what is odd."""

    answers: dict[str, str] = field(default_factory=dict)
    before: dict[str, list[str]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Cell:
    kind: str
    source: str
    grade_id: str
    points: object


def handout(lesson: Lesson, released: Path) -> Handout:
    """The lesson's questions. ``released`` is the notebook that learners get, whose stubs tell what was not attempted."""
    source, given = (nbformat.read(path, as_version=4) for path in (lesson.source, released))
    stubs = {cell.metadata.nbgrader.grade_id: cell.source for cell in given.cells if "nbgrader" in cell.metadata}
    functions: dict[str, tuple[str, str]] = {}  # function -> its answer cell's id and source
    questions, code = [], []
    modules = _aliases([cell.source for cell in source.cells if cell.cell_type == "code"])
    for cell in source.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution") and not marks.get("grade"):
            functions |= dict.fromkeys(_defined(cell.source), (marks.grade_id, stubs[marks.grade_id]))
        elif marks.get("solution"):
            questions.append(Question(marks.grade_id, marks.grade_id, float(marks.points), stubs[marks.grade_id]))
        elif marks.get("grade"):
            called = re.findall(r"^(\w+)\.(\w+)\.grade\((\w+)\)", cell.source, re.MULTILINE)
            if len(called) != 1 or called[0][2] not in functions or called[0][0] not in modules:
                raise LessonError(f"{lesson.name}: the check {marks.grade_id} does not grade one exercise by `exercises.NAME.grade(NAME)`")
            [(alias, name, function)] = called
            if not isinstance(getattr(import_module(modules[alias]), name, None), Exercise):
                raise LessonError(f"{lesson.name}: {modules[alias]}.{name} is no Exercise")
            answer_id, stub = functions[function]
            questions.append(Question(marks.grade_id, answer_id, float(marks.points), stub, function, (modules[alias], name)))
        elif cell.cell_type == "code":
            code.append(cell.source)
    return Handout(lesson.name, questions, code, stubs)


def read(folder: Path, name: str, largest: int) -> bytes:
    """The notebook's bytes: the file ``name``.ipynb, or the only notebook in ``folder``. Raises Unreadable. Follows no links."""
    if folder.is_symlink() or folder.parent.is_symlink():
        raise Unreadable("the folder is a link")
    paths = [path for path in sorted(folder.iterdir()) if path.suffix == ".ipynb" and not path.name.startswith("._")]  # macOS's own
    path = folder / f"{name}.ipynb"
    if path not in paths:
        if len(paths) != 1:
            raise Unreadable("there is no notebook" if not paths else f"there are {len(paths)} notebooks, none named {name}.ipynb")
        path = paths[0]
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise Unreadable("it is no file")
            if about.st_size > largest:
                raise Unreadable(f"the notebook has {about.st_size >> 20} MiB; at most {largest >> 20} are read")
            return file.read(largest)
    except OSError as error:
        raise Unreadable(f"it cannot be opened ({error.strerror})") from None


def cells(data: bytes) -> list[Cell]:
    """The cells of a notebook file. Raises Unreadable."""
    if not data.strip():
        raise Unreadable("the file is empty")
    try:
        found = json.loads(data.decode("utf-8-sig"))["cells"]
        if not isinstance(found, list):
            raise TypeError
        cells = [_cell(cell) for cell in found]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
        raise Unreadable("it is no notebook (of format 4)") from None
    if (code := sum(len(cell.source) for cell in cells if cell.kind == "code")) > CODE:
        raise Unreadable(f"it holds {code >> 10} KiB of code; at most {CODE >> 10} are read")
    return cells


def _cell(cell: dict) -> Cell:
    source = cell.get("source", "")
    source = "".join(source) if isinstance(source, list) else source
    if not isinstance(source, str):
        raise TypeError
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    marks = marks if isinstance(marks, dict) else {}
    grade_id = marks.get("grade_id")
    return Cell(
        str(cell["cell_type"]),
        source.replace("\0", "").encode("utf-8", "replace").decode(),
        grade_id if isinstance(grade_id, str) else "",
        marks.get("points"),
    )


def assemble(given: Handout, found: list[Cell]) -> Submission:
    """Pick the answers out of the cells. Raises Unreadable where not one of the lesson's questions is there."""
    handed = Submission()
    code = [cell for cell in found if cell.kind == "code"]
    chosen: dict[str, Cell] = {}
    for question in given.automatic:
        holders = [cell for cell in code if question.function in _defined(cell.source)]
        holders = holders or [cell for cell in code if cell.grade_id == question.answer_id]
        if not holders:
            handed.flags.append(f"{question.answer_id}: no cell defines {question.function}")
            continue
        tried = [cell for cell in holders if not is_stub(question, cell.source)] or holders
        marked = [cell for cell in tried if cell.grade_id == question.answer_id and question.function in _defined(cell.source)]
        chosen[question.id] = (marked or tried)[-1]
        if len(tried) > 1:
            handed.flags.append(f"{question.answer_id}: {len(tried)} cells define {question.function}; one was graded")
    for question in (question for question in given.questions if not question.exercise):
        texts = [cell.source for cell in found if cell.kind == "markdown" and cell.grade_id == question.id]
        head = question.source.lstrip().partition("\n")[0]
        texts = texts or [cell.source for cell in found if cell.kind == "markdown" and head and cell.source.lstrip().startswith(head)]
        if texts:
            handed.written[question.id] = "\n\n".join(texts) if any(text.strip() != question.source.strip() for text in texts) else ""
        else:
            handed.flags.append(f"{question.id}: the written answer's cell is missing")
    if not chosen and not any(handed.written.values()):
        raise Unreadable("it has no answer cell of this lesson: is it another lesson's notebook?")
    ours = set(given.code) | set(given.sources.values())
    checks = {question.id for question in given.automatic}
    own = [cell.source for cell in code if cell.source not in ours and cell not in chosen.values() and cell.grade_id not in checks]
    for question in given.automatic:
        if question.id in chosen:
            answer = plain(chosen[question.id].source)
            others = [plain(cell.source) for other, cell in chosen.items() if other != question.id]
            handed.answers[question.id] = answer
            handed.before[question.id] = needed(answer, [*map(plain, given.code), *map(plain, own)], others)
    handed.flags += _odd(given, found, own + [cell.source for cell in chosen.values() if cell.source not in ours])
    return handed


def is_stub(question: Question, source: str) -> bool:
    """Whether the answer is still the lesson's stub, whatever its comments and spaces."""
    try:
        return ast.dump(ast.parse(plain(source))) == ast.dump(ast.parse(plain(question.source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def plain(source: str) -> str:
    """Python without what only a notebook understands: lines that begin with % or ! do nothing."""
    if _tree(source):
        return source
    return re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source)


def needed(answer: str, cells: list[str], answers: list[str]) -> list[str]:
    """The top-level statements of ``cells`` that define a name which ``answer`` uses, or which such a statement uses, and those of the
    other ``answers`` that are used, whole; in order. Whatever else stands in the notebook is not run."""
    pieces = [piece for cell in cells for piece in _statements(cell)] + answers
    facts = [(_defined(piece), _used(piece)) for piece in pieces]
    wanted, taken = _used(answer), set()
    while grown := {i for i, (defined, _) in enumerate(facts) if i not in taken and defined & wanted}:
        taken |= grown
        wanted = wanted.union(*(facts[i][1] for i in grown))
    return [piece for i, piece in enumerate(pieces) if i in taken]


def _statements(source: str) -> list[str]:
    tree = _tree(source)
    return [ast.unparse(node) for node in tree.body] if tree else []


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defined(source: str) -> set[str]:
    """The names that a cell defines or changes at its top level."""
    tree = _tree(plain(source))
    if tree is None:
        return set(re.findall(r"^(?:async )?def (\w+)", source, re.MULTILINE))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
            targets = (
                part for part in ast.walk(node) if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store)
            )
            names |= {root.id for target in targets if isinstance(root := _root(target), ast.Name)}
    return names


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _used(source: str) -> set[str]:
    """The global names that a piece of code may read, in functions too."""
    try:
        tables, names = [symtable.symtable(source, "cell", "exec")], set()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(re.findall(r"\w+", source))
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced() and (top or symbol.is_global())}
    return names


def _aliases(sources: list[str]) -> dict[str, str]:
    """Name -> module of the companion that it stands for (or ``module.name`` of a thing in one)."""
    found = {}
    for tree in filter(None, map(_tree, map(plain, sources))):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "companion":
                found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.asname or "companion": alias.name for alias in node.names if alias.name.split(".")[0] == "companion"}
    return found


def _odd(given: Handout, found: list[Cell], written: list[str]) -> list[str]:
    """What a person should look at: changed checks, false claims in the metadata, and names that no answer needs."""
    flags = []
    for question in given.automatic:
        checks = [cell for cell in found if cell.grade_id == question.id]
        if len(checks) != 1:
            flags.append(f"{question.id}: {'the check cell is missing' if not checks else 'several cells are marked as this check'}")
        elif checks[0].source.strip() != given.sources[question.id].strip():
            flags.append(f"{question.id}: the check cell was changed")
    points = {question.id: question.points for question in given.questions}
    for cell in found:
        if cell.points is not None and cell.points != points.get(cell.grade_id):
            flags.append("the metadata claim points that the lesson does not give")
            break
    words = set().union(*(re.findall(r"\w+", source) for source in written)) if written else set()
    if odd := sorted(words & ODD):
        flags.append(f"mentions {', '.join(odd)}")
    aliases = _aliases([*given.code, *written])
    for source in written:
        if (tree := _tree(plain(source))) and (calls := _course(tree, aliases)):
            flags.append(f"calls the course's own code: {', '.join(sorted(calls))}")
    return flags


def _course(tree: ast.Module, aliases: dict[str, str]) -> set[str]:
    """Which of the companion's functions a cell reads, decorators aside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
    return {aliases[node.id] for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in aliases}
