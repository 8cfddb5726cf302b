"""``review``: predictions that were missed, and the quizzes of lessons, asked again after days, in the terminal.

Each question is a card of a Leitner box (S. Leitner, So lernt man lernen, 1972): after a right answer it rests longer,
after a wrong one it is back at the start. That days which grow keep what was learned at hand all the while: Kang et al.
(Retrieval practice over the long term, Psychonomic Bulletin & Review 21, 2014).

Nothing runs by itself, and nothing leaves the machine. What is due stands in ``work/review.json``.
"""

import html
import json
import re
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from companion.core.files import FileError, atomic_write, read_kept
from companion.lesson.attempts import in_lines
from companion.workshop.cli import work
from companion.workshop.cli.lessons import Lesson, released
from companion.workshop.cli.results import kept
from companion.workshop.cli.setup import ROOT
from companion.workshop.notebooks import read_notebook

STATE = "review.json"
FORMAT = "reviews of Transformers as Algorithms, 1"
DAYS = (1, 3, 7, 21)  # of rest: the first after a miss, the next after each right answer; then a card is done
SITTING = 6  # questions in five minutes, at the three quarters of a minute that a prediction takes (`minutes`)
QUIZ = re.compile(r"^## Quiz$(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
QUESTION = re.compile(r"^\*\*(\d+)\. (.+?)\*\*$(.*?)(?=^\*\*|\Z)", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)


@dataclass
class Card:
    """A question and its answer; how many of `DAYS` it has ``passed``, and from which day it is due.

    ``options``: what can be chosen; ``within``: which numbers are right, as in `Predictions.compare`. With neither, as
        version 0.3 kept them, learners judge themselves. ``reasons``: of each answer, why it is right or wrong.
    """

    name: str
    question: str
    answer: float | str
    due: date
    passed: int = 0
    options: tuple[str, ...] = ()
    within: Any = None
    reasons: dict[Any, str] = field(default_factory=dict)


def cards(root: Path, known: dict[str, dict[str, Any]]) -> list[Card]:
    """Return the cards of a learner, placed as is ``known`` of them, and print which file cannot be read. A new card is
    due the day after somebody last worked in its lesson.
    """
    found = []
    for lesson in released(root):
        try:
            folder = root / "work" / lesson.name
            found += _missed(lesson, folder, known)
            result = work.best(folder, lesson.name)
            if result.solved and result.solved >= result.wrong + result.not_attempted:
                found += quiz(lesson, max(map(_day_after, work.copies(folder, lesson.name))))
        except FileError as error:
            print(f"{error}; its questions are left out")
    for card in found:
        if there := known.get(card.name):
            card.passed, card.due = there["passed"], date.fromisoformat(there["due"])
    return found


def due(found: list[Card], today: date) -> list[Card]:
    """Return what is to be asked, the longest due first."""
    return sorted((card for card in found if card.passed < len(DAYS) and card.due <= today), key=lambda card: card.due)


def waiting(root: Path) -> list[str]:
    """Return a line on how many questions are due; none if none is, or nobody can know now."""
    try:
        number = len(due(cards(root, _read(root / "work" / STATE)), date.today()))
    except OSError:
        return []
    return [f"{number} to review: python3 -m companion review"] * bool(number)


def main(_: Namespace, root: Path = ROOT, today: date | None = None) -> int:
    """Ask what is due, and keep each answer at once."""
    today, path = today or date.today(), root / "work" / STATE
    try:
        known = _read(path)
    except OSError as error:
        print(f"review: {STATE} cannot be read now ({error.strerror}); it stays as it is, and nothing is asked")
        return 1
    found = cards(root, known)
    moved = [card for card in found if card.name not in known]  # or they would be due later with each day of work
    _keep(path, moved)
    sitting, said, right = due(found, today)[:SITTING], 0, 0
    try:
        for number, card in enumerate(sitting, 1):
            print(f"\n{number} of {len(sitting)} · {card.name.partition('/')[0]}\n{in_lines(card.question)}")
            knew = _ask(card)
            card.passed = card.passed + 1 if knew else 0
            card.due = today + timedelta(days=[*DAYS, 0][card.passed])
            said, right = said + 1, right + knew
            moved.append(card)
            _keep(path, moved)
            print("You are done with it." if card.passed == len(DAYS) else f"It comes back on {card.due}.")
    except (EOFError, KeyboardInterrupt):
        print()
    if not found:
        print("Nothing to review yet: here predictions that you miss come back, and quizzes of lessons half solved.")
        return 0
    coming = [card.due for card in found if card.passed < len(DAYS)]
    rest = f"Nothing more is due before {min(coming)}." if coming else "Nothing is left to review."
    if more := len(due(found, today)):
        rest = f"{more} more to review."
    print(f"\n{right} of {said} right. " * bool(said) + rest)
    return 0


def _missed(lesson: Lesson, folder: Path, known: dict[str, dict[str, Any]]) -> Iterator[Card]:
    """The predictions that are wrong, or were at an earlier review, each with the answer of the learner's own run."""
    for path in lesson.notebooks:
        for id, entry in kept(folder, path.stem).items():
            name, question, answer = f"{path.stem}/{id}", entry.get("question"), entry.get("measured")
            missed = entry.get("verdict") == "not" or name in known
            if missed and isinstance(question, str) and isinstance(answer, float | int | str):
                options, within = entry.get("options"), entry.get("within")
                options = tuple(options) if isinstance(options, list) and answer in options else ()
                within = tuple(within) if isinstance(within, list) else within
                day, reasons = _day_after(folder / "predictions.json"), {answer: entry.get("because", "")}
                yield Card(name, question, answer, day, options=options, within=within, reasons=reasons)


def quiz(lesson: Lesson, day: date) -> Iterator[Card]:
    """Yield the quiz of a lesson, due from a ``day`` on. How it was answered in the notebook, nobody knows: so it is
    asked once more, and whoever is right is done with it. The right option is the one that is explained by a *Yes*.
    """
    texts = "\n".join("".join(cell["source"]) for cell in read_notebook(lesson.source)["cells"])
    for number, question, choices in QUESTION.findall("".join(QUIZ.findall(texts))):
        reasons = {_plain(option): _plain(reason) for option, reason in OPTION.findall(choices)}
        [answer] = [option for option, reason in reasons.items() if reason.startswith("Yes")]
        name, passed = f"{lesson.name}/quiz {number}", len(DAYS) - 1
        yield Card(name, _plain(question), answer, day, passed, tuple(reasons), reasons=reasons)


def _ask(card: Card) -> bool:
    """Ask one question, and say what is right, and why; whether the learner knew it. Raises EOFError, and
    KeyboardInterrupt, where nobody goes on.
    """
    from companion.lesson.widgets.question import Question, shown  # noqa: PLC0415 (`progress` lacks the widgets)

    kind = "choice" if card.options else "number" if card.within else "words"
    question = Question("review", kind, card.question, lambda _: None, options=card.options)
    by_number = {str(number): option for number, option in enumerate(card.options, 1)}
    for number, option in by_number.items():
        print(in_lines(f"  {number}  {option}"))
    what = f"1 to {len(by_number)}" if by_number else "a number"
    how = "say it to yourself, then press Enter" if kind == "words" else f"{what}; Enter if you do not know"
    while typed := input(f"Your answer ({how}): ").strip():
        try:
            question.value = question.clean(by_number.get(typed) if by_number else typed)
        except ValueError as error:
            print(f"{error}.")
        if question.value is not None:
            break
    question.measure(card.answer, card.within)
    if question.value != card.answer and card.reasons.get(question.value):
        print(in_lines(card.reasons[question.value]))
    said = {"right": "Right: ", "not": "Not right. The answer: "}.get(question.verdict, "The answer: ")
    print(in_lines("\n".join(filter(None, [f"{said}{shown(card.answer)}", card.reasons.get(card.answer)]))))
    if kind == "words":
        return input("Did you know it? [y/N] ").strip().lower() in {"y", "yes"}
    return question.verdict == "right"


def _day_after(path: Path) -> date:
    return date.fromtimestamp(path.stat().st_mtime) + timedelta(days=1)


def _plain(text: str) -> str:
    """A text of a quiz without marks of HTML, of Markdown and of formulas."""
    text = re.sub(r"<sup>(.*?)</sup>", r"^\1", text.strip())
    return html.unescape(re.sub(r"<[^>]+>|[$\\`*]", "", text))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    content = read_kept(path, "a file of reviews of this course", _fits)
    return content["cards"] if content else {}


def _fits(content: Any) -> bool:
    known = content["cards"].values()
    days = [date.fromisoformat(entry["due"]) for entry in known if entry["passed"] in range(len(DAYS) + 1)]
    return content["format"] == FORMAT and len(days) == len(known)


def _keep(path: Path, moved: list[Card]) -> None:
    """Write where the cards that ``moved`` are now into the file as it is at this moment, for another terminal may
    write there, and empty the list. What a disk refuses is said, and tried again with the next answer.
    """
    news = {card.name: {"passed": card.passed, "due": card.due.isoformat()} for card in moved}
    try:
        if news:
            content = {"format": FORMAT, "cards": _read(path) | news}
            atomic_write(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
            moved.clear()
    except OSError as error:
        print(f"{STATE} cannot be written now ({error.strerror}): your answers are not kept yet.")
