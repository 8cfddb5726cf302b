"""What a submission is, read without running anything: the answers that it holds, and what in it is odd.

The lesson's own notebook, not the student's, says which exercises there are. From the student's comes source text
alone: for each exercise the last definition of its function above the check (and one below it, for where that one is
wrong), wherever it stands and whatever its metadata claim, and those statements on which it rests. So check cells may
be edited, copied, moved or deleted: they are never run, and no metadata of the submission counts.
"""

import base64
import binascii
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from companion.core.files import FileError
from companion.workshop.grading.alone import Ended, alone
from companion.workshop.grading.notebook import flags, syntax, versions
from companion.workshop.grading.notebook.files import Unreadable
from companion.workshop.grading.notebook.handout import Handout, Question
from companion.workshop.grading.notebook.reading import Reading, Way
from companion.workshop.notebooks import as_notebook

# what the sandbox has for every answer; whoever reaches more of the course gets its topics, too
EXERCISES = re.compile(
    r"companion\.(lesson\.(attempts|exercise|mistakes|near_misses|trials)|topics\.\w+\.exercises)(\.\w+)*"
)
SECONDS, MEMORY = 30, 2 << 30  # for reading one notebook
CODE = 1 << 20  # characters of code in one notebook: more is not written by hand
CELLS = 2000
SCALE = re.compile(r"^SCALE = .*", re.MULTILINE)
PICTURES = 8  # in one written answer
PICTURE = 1 << 20  # bytes of one
KINDS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}


@dataclass
class Whole:
    """All code cells of a notebook, at smoke scale, with how many of them have run when a question is checked, and when
    one that was answered below its check is; what is odd in them, and which parts of the course they call, as flags.
    """

    cells: list[str] = field(default_factory=list)
    ends: dict[str, tuple[int, ...]] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    borrowed: list[str] = field(default_factory=list)


@dataclass
class Submission:
    """What was handed in: by question the answer's cell, and what is run of the notebook (``before``) and
    of that cell (``code``), the same for a second answer, which stands below the check (``below``), and the written
    answers with their pictures (as data URLs); which answers are stubs; whose check the notebook itself shows as
    passed; what is odd; why an answer to an ``older`` version of the lesson is none to this one. ``course`` says
    whether an answer reaches parts of the course.

    ``partial`` has the questions for which something of the ``whole`` notebook is not run that may bear on them, and
    ``files`` the modules beside the notebook, by name.
    """

    answers: dict[str, str] = field(default_factory=dict)
    before: dict[str, list[str]] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    below: dict[str, Way] = field(default_factory=dict)
    whole: Whole = field(default_factory=Whole)
    partial: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, list[str]] = field(default_factory=dict)
    stubs: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    older: dict[str, str] = field(default_factory=dict)
    course: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell, believed in nothing: ``printed`` is what its outputs say that it printed."""

    kind: str
    source: str
    grade_id: str = ""
    points: object = None
    attachments: dict = field(default_factory=dict)
    printed: str = ""


def cells(data: bytes) -> list[Cell]:
    """Read the cells of a notebook file. Raises Unreadable."""
    try:
        notebook = as_notebook(data)
    except FileError as error:
        raise Unreadable(f"it is no notebook: {error}") from None
    if len(notebook["cells"]) > CELLS:
        raise Unreadable(f"it has {len(notebook['cells'])} cells; at most {CELLS} are read")
    cells = [_cell(cell) for cell in notebook["cells"]]
    if (code := sum(len(cell.source) for cell in cells if cell.kind == "code")) > CODE:
        raise Unreadable(f"it holds {code >> 10} KiB of code; at most {CODE >> 10} are read")
    version = versions.version_of(notebook)
    if not versions.FIRST <= versions.series(version) <= versions.series(versions.THIS):
        raise Unreadable(
            f"it was made with version {version} of the course, and this is {versions.THIS}: grade it with the version "
            "that it was made with, or ask for a hand-in of this one"
        )
    return cells


def _cell(cell: dict) -> Cell:
    source = re.sub(r"\r\n?", "\n", "".join(cell["source"]).replace("\0", "")).encode("utf-8", "replace").decode()
    marks = cell["metadata"].get("nbgrader")
    marks = marks if isinstance(marks, dict) else {}
    grade_id = marks.get("grade_id")
    attachments = cell.get("attachments")
    return Cell(
        cell["cell_type"],
        source,
        grade_id if isinstance(grade_id, str) else "",
        marks.get("points"),
        attachments if isinstance(attachments, dict) else {},
        _printed(cell["outputs"]) if cell["cell_type"] == "code" else "",
    )


def _printed(outputs: list[dict]) -> str:
    texts = [output.get("text", "") for output in outputs]
    return "".join("".join(map(str, text)) if isinstance(text, list) else str(text) for text in texts)


def pasted_pictures(cell: Cell) -> list[str]:
    """Return the PNG and JPEG pictures that were pasted into a cell, as data URLs, if they are what they say and not
    large.
    """
    pasted = [item for kinds in cell.attachments.values() if isinstance(kinds, dict) for item in kinds.items()]
    return [url for kind, text in pasted if (url := _url(kind, text))][:PICTURES]


def _url(kind: str, text: object) -> str:
    text = "".join(map(str, text)) if isinstance(text, list) else str(text)
    if kind not in KINDS or len(text) > PICTURE * 4 // 3 + 4:
        return ""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}" if data.startswith(KINDS[kind]) else ""


def assemble(
    handout: Handout, all_cells: list[Cell], version: str = versions.THIS, files: Mapping[str, str] | None = None
) -> Submission:
    """Pick the answers to a lesson's questions out of a notebook. Raises Unreadable where not one of these is there.

    ``handout``: the lesson, whose cells come first where the notebook has lost them.
    ``all_cells``: of the notebook.
    ``version``: of the course with which it was made.
    ``files``: the modules that were handed in beside it, by their files' names.
    """
    submission = Submission(files=dict(files or {}))
    code = [cell for cell in all_cells if cell.kind == "code"]
    there = {cell.source for cell in code}
    code[:0] = [Cell("code", source) for source in handout.code if source not in there]
    for cell in code:
        submission.files |= syntax.file_of(cell.source)
    sources = [syntax.plain(cell.source) for cell in code]
    chosen = {question.id: _answers(question, code, sources) for question in handout.automatic}
    for question in handout.written:
        _written(question, all_cells, submission)
    if not any(chosen.values()) and not any(submission.written.values()):
        raise Unreadable("it has no answer cell of this lesson: is it another lesson's notebook?")
    read = _sources_read(handout, code, sources, chosen)
    reading, reached = Reading(handout, read, submission.files), []
    for question in handout.automatic if version != versions.THIS else ():
        _older(question, [sources[place] for place, _ in chosen[question.id]], version, submission)
    for question in handout.automatic:
        if question.id in submission.older:
            continue
        if chosen[question.id]:
            reached += _answered(question, chosen[question.id], sources, reading, submission)
        else:
            submission.flags.append(f"{question.answer_id}: no cell defines {question.function}")
    if version == versions.THIS:  # what another version had otherwise is not a learner's doing
        submission.flags += _changed(handout, all_cells)
    about = reading.lesson.modules, frozenset(reading.files)
    submission.flags += flags.odd(reached, *about) + flags.borrowed(reached, handout)
    submission.whole.cells = [SCALE.sub('SCALE = "smoke"', cell) for cell in read]
    own = reading.own(max((ends[-1] for ends in submission.whole.ends.values()), default=0))
    reached = [("", syntax.aliases(read), own), *_in_files(reading, own)]
    submission.whole.odd = flags.odd(reached, *about)
    submission.whole.borrowed = flags.borrowed(reached, handout)
    submission.passed = [
        question.id
        for question in handout.automatic
        if any(f"{question.exercise[1]}: correct" in cell.printed for cell in code if cell.grade_id == question.id)
    ]
    return submission


def _sources_read(
    handout: Handout, code: list[Cell], sources: list[str], chosen: dict[str, list[tuple[int, int]]]
) -> list[str]:
    """What is read of each cell: of a check, which is never run, only what defines an answer; and nothing of a stub
    that somebody has left beside an answer.
    """
    idle = {
        place
        for question in handout.automatic
        for place, source in enumerate(sources)
        if question.function in syntax.defined(source) and is_stub(question, source)
        if place not in [at for at, _ in chosen[question.id]]
    }
    checks = {question.id for question in handout.automatic}
    functions = {question.function for question in handout.automatic}
    return [
        "" if place in idle or (cell.grade_id in checks and not functions & syntax.defined(source)) else source
        for place, (cell, source) in enumerate(zip(code, sources, strict=True))
    ]


def _answered(
    question: Question, places: list[tuple[int, int]], sources: list[str], reading: Reading, submission: Submission
) -> list[flags.Reached]:
    """Enter an answer, and what is run for it, and return what that reaches. ``places`` are those of its cells, with
    how many cells have run when each is checked.
    """
    ways, partial = zip(*(reading.of(question, place, end) for place, end in places), strict=True)
    place = places[0][0]
    submission.stubs += [question.id] if is_stub(question, sources[place]) else []
    submission.answers[question.id] = sources[place]
    submission.before[question.id], submission.code[question.id] = ways[0]
    submission.below |= {question.id: ways[1]} if ways[1:] else {}
    submission.whole.ends[question.id] = tuple(end for _, end in places)
    submission.partial |= {question.id} if any(partial) else set()
    reached = []
    for (place, _), (before, run) in zip(places, ways, strict=True):
        own = [source for source in before if not reading.lesson.has_like(source)]
        of_files = _in_files(reading, [*own, run])
        submission.course |= _reaches_the_course([*before, run])
        submission.course |= any(_reaches_the_course(code) for _, _, code in of_files)
        reached += [
            ("", syntax.aliases([sources[place]]), [sources[place]]),
            (question.function, syntax.aliases([*before, run]), [*own, run]),
            *of_files,
        ]
    return reached


def _in_files(reading: Reading, code: list[str]) -> list[flags.Reached]:
    return [("", syntax.aliases([text]), [text]) for text in reading.files_of(code)]


def _reaches_the_course(code: list[str]) -> bool:
    """Whether code uses a part of the course, which it then finds in the sandbox: an import alone opens nothing."""
    names = {"*"}.union(*map(syntax.used, code))
    parts = {part for name, part in syntax.aliases(code).items() if name in names}.union(
        *map(syntax.inner_imports, code)
    )
    return not all(map(EXERCISES.fullmatch, parts))


def _answers(question: Question, code: list[Cell], sources: list[str]) -> list[tuple[int, int]]:
    """The cells that answer an exercise, each with how many cells have run when it is checked: the last above the check
    that defines its function and is no stub, and the last below, where somebody has corrected a first try.
    """
    holders = [place for place, source in enumerate(sources) if question.function in syntax.defined(source)]
    holders = holders or [place for place, cell in enumerate(code) if cell.grade_id == question.answer_id]
    tried = [place for place in holders if not is_stub(question, sources[place])] or holders
    call = f"{question.exercise[1]}.check({question.function})"
    checks = [place for place, cell in enumerate(code) if cell.grade_id == question.id]
    checks = checks or [place for place, source in enumerate(sources) if call in source] or [len(code) - 1]
    above = [(place, checks[-1] + 1) for place in tried if place <= checks[-1]][-1:]
    last = sources[above[0][0]] if above else ""
    return above + [(place, place + 1) for place in tried if place > checks[-1] and sources[place] != last][-1:]


def _written(question: Question, all_cells: list[Cell], submission: Submission) -> None:
    texts = [cell for cell in all_cells if cell.kind == "markdown" and cell.grade_id == question.id]
    head = question.source.lstrip().partition("\n")[0]
    texts = texts or [
        cell for cell in all_cells if cell.kind == "markdown" and head and cell.source.lstrip().startswith(head)
    ]
    if not texts:
        submission.flags.append(f"{question.id}: the written answer's cell is missing")
        return
    new = any(cell.source.strip() != question.source.strip() for cell in texts)
    submission.written[question.id] = "\n\n".join(cell.source for cell in texts) if new else ""
    submission.pictures[question.id] = [picture for cell in texts for picture in pasted_pictures(cell)][:PICTURES]


def _older(question: Question, answers: list[str], version: str, submission: Submission) -> None:
    """Say why an exercise is not marked in a hand-in of an older ``version`` of the lesson, if it is not."""
    reason = "" if answers else "is not in that"
    for answer in answers:
        if not is_stub(question, answer):
            about = {"since": question.since, "version": version}
            reason = reason or versions.unfit(answer, question.source, question.function, **about)
    if reason:
        submission.older[question.id] = (
            f"it was made from version {version} of the lesson, and the exercise {reason}; it is not marked, and a "
            "person decides"
        )


def is_stub(question: Question, source: str) -> bool:
    """Return whether the answer is still the lesson's stub, whatever its comments and spaces, in this version of the
    lesson or another.
    """
    return syntax.shape(source) == syntax.shape(question.source) != "" or versions.unwritten(source)


def _changed(handout: Handout, all_cells: list[Cell]) -> list[str]:
    """Checks that are gone or call something else, and false claims in the metadata."""
    flags = []
    for question in handout.automatic:
        checks = [cell for cell in all_cells if cell.grade_id == question.id]
        call = f"{question.exercise[1]}.check({question.function})"
        if len(checks) > 1:
            flags.append(f"{question.id}: several cells are marked as this check")
        elif not any(call in cell.source for cell in all_cells if cell.kind == "code"):
            flags.append(f"{question.id}: the check cell {'was changed' if checks else 'is missing'}")
    points = {question.id: question.points for question in handout.questions}
    if any(cell.points is not None and cell.points != points.get(cell.grade_id) for cell in all_cells):
        flags.append("the metadata claim points that the lesson does not give")
    return flags


def parsed(data: bytes, handout: Handout, files: Mapping[str, str] | None = None) -> Submission:
    """Read the submission in a notebook file, and in the ``files`` beside it, in a process of its own: what breaks or
    stalls a parser, breaks that. Raises Unreadable, also where it cannot be read within the limits.
    """
    try:
        within = {"seconds": SECONDS, "memory": MEMORY, "prepare": functools.partial(prepare, handout)}
        return alone(from_file, data, handout, files, **within)
    except (Ended, TimeoutError, MemoryError) as error:
        raise Unreadable(f"it cannot be read within {SECONDS} seconds and {MEMORY >> 30} GiB ({error})") from None


def from_file(data: bytes, handout: Handout, files: Mapping[str, str] | None = None) -> Submission:
    """Read the submission in a notebook file, in this very process. Raises Unreadable."""
    return assemble(handout, cells(data), versions.version_of(as_notebook(data)), files)


@functools.lru_cache(1)
def prepare(handout: Handout) -> None:
    """Read the lesson's own cells, in the process from which those that read are forked: `syntax` remembers what it has
    found in a cell, and most cells of a hand-in are the lesson's.
    """
    sources = *handout.code, *handout.solutions.values()
    assemble(handout, [Cell("code", source) for source in sources])
