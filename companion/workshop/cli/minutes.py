"""How long a notebook takes a learner: counted from what stands in it, and written into it by ``release``."""

import re
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from companion.workshop.cli.lessons import LessonError, machine_time

# minutes: of reading, by word, figure and line of code; of doing, by minute of an exercise, prediction and quiz
WORD, FIGURE, LINE, EXERCISE, PREDICTION, QUIZ = 1 / 200, 1.25, 0.05, 1.25, 0.75, 5
HINT = re.compile(r"<details><summary>Hint.*?</details>", re.DOTALL)
NO_WORDS = re.compile(r"<[^>]+>|`[^`]*`|\$[^$]*\$")
STATED = re.compile(r"^\*Difficulty (\d)/5\b.*? (\d+) minutes\b", re.MULTILINE)
ASKED = re.compile(r"^predictions\.(?:number|choice|words)\(", re.MULTILINE)
EXPLORED = re.compile(r"\b(?:Explorer|AttentionMap)\(")
SECRET = re.compile(r"^ *### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?^ *### END \1\n?", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^(?=#{1,2} )", re.MULTILINE)
ROW = re.compile(r"^\| Time \|.*\|$", re.MULTILINE)


@dataclass(frozen=True)
class Minutes:
    """The minutes of one notebook, by what they are spent on. An open problem is an extra, and not counted."""

    words: float
    figures: float
    lines: float
    exercises: float
    predictions: float
    explorers: float
    quiz: float
    machine: float

    @property
    def doing(self) -> float:
        """Return the minutes that are not reading or waiting."""
        return self.exercises + self.predictions + self.explorers + self.quiz

    @property
    def total(self) -> float:
        """Return all minutes."""
        return self.words + self.figures + self.lines + self.doing + self.machine

    @property
    def stated(self) -> int:
        """Return what learners are told: all minutes, to the nearest five."""
        return max(5, 5 * round(self.total / 5))


def minutes(notebook: NotebookNode, machine_seconds: int) -> Minutes:
    """Count the minutes of a solved notebook: words / 200, 1.25 times what its exercises say of themselves, 3/4 for a
    prediction, 1 1/4 for a figure or an explorer, 3 s for a visible line of code that a learner is given, 5 for the
    quiz, and ``machine_seconds``.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    explorers = [cell for cell in code if EXPLORED.search(cell.source)]
    figures = [
        cell for cell in code if cell not in explorers and ("Picture(" in cell.source or "schematic" in tags(cell))
    ]
    lines = sum(len(SECRET.sub("", cell.source).splitlines()) for cell in code if not folded(cell))
    return Minutes(
        words=WORD * count_words(prose(notebook, "Quiz", "Open problem")),
        figures=FIGURE * len(figures),
        lines=LINE * lines,
        exercises=EXERCISE * sum(stated for _, stated in exercises(notebook)),
        predictions=PREDICTION * sum(len(ASKED.findall(cell.source)) for cell in code),
        explorers=FIGURE * len(explorers),
        quiz=QUIZ * any(re.search(r"^#+ Quiz$", text, re.MULTILINE) for text in prose(notebook)),
        machine=machine_seconds / 60,
    )


def exercises(notebook: NotebookNode) -> list[tuple[int, int]]:
    """Return each exercise's difficulty and minutes, as its heading states them, in order."""
    found = [STATED.findall(cell.source) for cell in notebook.cells if cell.cell_type == "markdown"]
    return [(int(difficulty), int(stated)) for each in found for difficulty, stated in each]


def tags(cell: NotebookNode) -> list[str]:
    """Return a cell's tags."""
    return cell.metadata.get("tags", [])


def folded(cell: NotebookNode) -> bool:
    """Return whether a cell's code is folded when the notebook is opened."""
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def prose(notebook: NotebookNode, *without: str) -> list[str]:
    """Return what is there to be read, as Markdown, cell by cell: without hints, references, the row that states the
    minutes, and the sections whose headings begin with one of these words.
    """
    found, dropped = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            kept = []
            for part in SECTION.split(ROW.sub("", HINT.sub("", cell.source))):
                if SECTION.match(part):
                    dropped = part.lstrip("# ").startswith(("References", *without))
                kept += [] if dropped else [part]
            found.append("".join(kept))
    return found


def count_words(texts: list[str]) -> int:
    """Count the words of pieces of Markdown, formulas and code left out."""
    return sum(len(NO_WORDS.sub(" ", text).split()) for text in texts)


def put_minutes(path: Path, notebook: NotebookNode) -> list[str]:
    """Write the minutes of the ``notebook`` at ``path`` into its metadata and the row ``| Time |`` of its head, and
    return a line if they were others. Raises LessonError where there is nothing to count with or no such row.
    """
    facts, head = notebook.metadata.setdefault("companion", {}), notebook.cells[0]
    if not isinstance(seconds := facts.get("machine_seconds"), int):
        raise LessonError(f"{path.stem}: the notebook's metadata 'companion' must have machine_seconds (int)")
    if len(ROW.findall(head.source)) != 1:
        raise LessonError(f"{path.stem}: the first cell must have one row `| Time | |`, into which `release` writes")
    stated = minutes(notebook, seconds).stated
    row = f"| Time | about {stated} minutes for you; {machine_time(seconds)} of one core for the machine |"
    if facts.get("minutes") == stated and row in head.source:
        return []
    facts["minutes"], head.source = stated, ROW.sub(row, head.source)
    return [
        f"{path.parent.name}/{path.name}: the time is not the {stated} minutes that are counted; `release` writes it"
    ]
