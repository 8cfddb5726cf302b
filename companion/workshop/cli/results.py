"""What a saved notebook says of its learner: exercises and predictions. Nothing is run. Standard library only."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from companion.core.files import FileError
from companion.workshop.notebooks import read_notebook

# a check is a cell that begins as in `exercises.attention.check(attention)`; in a lesson it is graded, too
CHECKS = re.compile(r"^\w+\.\w+\.check\(\w+\)", re.MULTILINE)
# a visible cell asks as in `predictions.number("steps", ...)`, see companion.lesson.widgets.Predictions
ASKS = re.compile(r"^\s*predictions\.(?:number|choice|words)\(\s*[\"']([^\"']+)[\"']", re.MULTILINE)


@dataclass(frozen=True)
class Results:
    """Of one notebook: how many exercises its checks call right or wrong, and how many were not attempted (or not run);
    how many questions ask for a prediction, how many have one, and how many of those came right.
    """

    solved: int = 0
    wrong: int = 0
    not_attempted: int = 0
    asked: int = 0
    made: int = 0
    judged: int = 0
    right: int = 0

    @property
    def exercises(self) -> str:
        """Say what became of the exercises."""
        if not (total := self.solved + self.wrong + self.not_attempted):
            return "-"
        others = [f"{self.wrong} wrong"] * bool(self.wrong)
        others += [f"{self.not_attempted} not attempted"] * bool(self.not_attempted)
        return f"{self.solved} of {total} solved" + "".join(f", {other}" for other in others)

    @property
    def predictions(self) -> str:
        """Say what became of the predictions."""
        if not self.asked:
            return "-"
        return f"{self.made} of {self.asked} made" + (f", {self.right} of {self.judged} right" if self.judged else "")

    @property
    def begun(self) -> bool:
        """Return whether anything was tried in it."""
        return bool(self.solved or self.wrong or self.made)


def of_notebook(path: Path, name: str) -> Results:
    """Read what ``path``, a copy of the notebook ``name``, and the predictions beside it say; nothing at all for a file
    that is no notebook.
    """
    try:
        code = [cell for cell in read_notebook(path)["cells"] if cell["cell_type"] == "code"]
    except FileError:
        return Results()
    verdicts = [_verdict(cell) for cell in code if _is_check(cell)]
    solved, wrong, left = (verdicts.count(verdict) for verdict in ("solved", "wrong", "not attempted"))
    asked, made = {id for cell in code for id in ASKS.findall("".join(cell["source"]))}, []
    with suppress(FileError):
        entries = kept(path.parent, name)
        made = [entry for id, entry in entries.items() if id in asked and entry.get("prediction") is not None]
    judged = [entry["verdict"] for entry in made if entry.get("verdict") in ("right", "not")]
    return Results(solved, wrong, left, len(asked), len(made), len(judged), judged.count("right"))


def _is_check(cell: dict) -> bool:
    graded = cell["metadata"].get("nbgrader")
    graded = graded if isinstance(graded, dict) else {}
    return bool(graded.get("grade") or CHECKS.search("".join(cell["source"]))) and not graded.get("solution")


def _verdict(cell: dict) -> str:
    """A check prints ``name: correct`` or ``name: not attempted``, or raises."""
    outputs = cell["outputs"]
    if any(output.get("output_type") == "error" for output in outputs):
        return "wrong"
    text = "".join("".join(map(str, output.get("text") or "")) for output in outputs)
    solved = re.search(r": correct\b", text) and not re.search(r": not attempted\b", text)
    return "solved" if solved else "not attempted"


def kept(folder: Path, name: str) -> dict[str, dict]:
    """Return the predictions in ``folder`` of the notebook ``name``, by id. Raises FileError, which says why they
    cannot be read.
    """
    try:
        entries = json.loads((folder / "predictions.json").read_bytes())["lessons"].get(name, {})
        return {id: entry for id, entry in entries.items() if isinstance(entry, dict)}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise FileError(f"{folder.name}/predictions.json cannot be read now ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FileError(f"{folder.name}/predictions.json is damaged") from None
