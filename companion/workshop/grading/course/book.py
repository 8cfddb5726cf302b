"""The class's points: what checks gave, what persons gave, what lateness cost."""

import hmac
import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from companion.workshop.grading.course.names import file_name
from companion.workshop.grading.course.settings import Settings
from companion.workshop.grading.course.tables import Override
from companion.workshop.grading.notebook.handout import Handout

Scores = dict[str, float | None]  # by question; None where a person has not marked it yet


class Given(NamedTuple):
    """What a person gave for an answer in the form grader: points (None if not yet) and extra credit, and whether the
    answer has changed since.
    """

    points: float | None = None
    extra: float = 0.0
    changed: bool = False

    @property
    def counts(self) -> int:
        """Return 2 for points, 1 for extra credit alone, 0 for nothing."""
        return 2 if self.points is not None else int(self.extra != 0)

    @property
    def total(self) -> float:
        """Return points and extra credit."""
        return (self.points or 0.0) + self.extra


Persons = dict[str, dict[str, Given]]  # by the name in the gradebook and question


@dataclass
class Book:
    """One lesson's results by student, and all that makes points of them, with what ``persons`` gave. ``folders`` says
    how a student's folders are called where a name cannot be a folder's, or is another's.
    """

    handout: Handout
    settings: Settings
    roster: dict[str, dict[str, str]]
    overrides: dict[tuple[str, str], Override]
    folders: dict[str, str] = field(default_factory=dict)
    key: str = ""
    persons: Persons = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)  # on the instructor's own files
    written: float = -math.inf  # when grades.csv was

    def label(self, student: str) -> str:
        """Return the name under which a student is marked: a pseudonym, if marking is anonymous."""
        return self.pseudonym(student) if self.settings.anonymous else student

    def pseudonym(self, student: str) -> str:
        """Return the name that a student has where marking is anonymous."""
        return "participant-" + hmac.new(self.key.encode(), student.encode(), "sha256").hexdigest()[:8]

    def both_folders(self, student: str) -> tuple[str, str]:
        """Return how the folders of a student are called, and nbgrader's gradebook knows them: by the label; and how
        they are called where `Settings.anonymous` is the other way.
        """
        own, pseudonym = self.folders.get(student) or file_name(student), file_name(self.pseudonym(student))
        return (pseudonym, own) if self.settings.anonymous else (own, pseudonym)

    def everybody(self) -> list[str]:
        """Return all students, also those on the roster who handed in nothing."""
        return sorted({*self.results, *self.roster})

    def scores(self, student: str) -> Scores:
        """Points by question, before lateness."""
        return {question.id: self._score(student, question.id) for question in self.handout.questions}

    def given(self, student: str, name: str) -> tuple[Given, Given]:
        """Return what a person gave for the answer to the question ``name``, and what was given for it under the other
        name: where there are points under both, the current name's count.
        """
        folders = self.both_folders(student)
        current, other = (self.persons.get(folder, {}).get(name, Given()) for folder in folders)
        return (current, other) if current.counts >= other.counts else (other, current)

    def _score(self, student: str, name: str) -> float | None:
        if (student, name) in self.overrides:
            return self.overrides[student, name].points
        given, _ = self.given(student, name)
        if given.points is not None:
            return given.total
        result = self.results.get(student)
        if result is None:
            return 0.0
        if name in result["exercises"]:
            return result["exercises"][name]["points"] + given.extra
        return 0.0 if result["written"].get(name) == "" or result["problem"] else None

    def total(self, student: str) -> float:
        """Return all points so far, less what lateness cost."""
        left = self.settings.factor(self.results[student]["days_late"]) if student in self.results else 1.0
        return round(sum(score or 0 for score in self.scores(student).values()) * left, 6)

    def when(self, student: str) -> str:
        """Return when it was handed in, as a text; empty if it was not, or cannot be read."""
        when: datetime | None = self.results.get(student, {}).get("when")
        return when.strftime("%Y-%m-%d %H:%M:%SZ") if when and when.timestamp() else ""

    def needs(self, student: str) -> list[str]:
        """Return why a person should look at a submission."""
        if student not in self.results:
            return ["handed in nothing"]
        result, scores = self.results[student], self.scores(student)
        reasons = [f"cannot be read: {result['problem']}"] if result["problem"] else []
        if self.roster and student not in self.roster:
            reasons.append("is not on the roster")
        if waiting := [question.id for question in self.handout.written if scores[question.id] is None]:
            reasons.append(f"to be marked: {', '.join(waiting)}")
        given = {question.id: self.given(student, question.id) for question in self.handout.questions}
        if changed := [name for name, (first, _) in given.items() if first.points is not None and first.changed]:
            reasons.append(f"marked before it was changed: {', '.join(changed)}")
        for name, (first, then) in given.items():
            if then.counts and first.total != then.total:
                points = f"{first.total:g} counts, not {then.total:g}"
                reasons.append(f"marked by name and by pseudonym: {name} ({points})")
        ended = [(name, entry["outcome"]) for name, entry in result["exercises"].items()]
        if ended := [f"{name} {outcome}" for name, outcome in ended if outcome in ("stopped", "crashed")]:
            reasons.append(", ".join(ended))
        if older := [name for name, entry in result["exercises"].items() if entry["outcome"] == "older"]:
            reasons.append(f"made from an older version, which has these otherwise: {', '.join(older)} (overrides.csv)")
        if result["whole"]:
            reasons.append(f"decided by the whole notebook: {', '.join(result['whole'])}")
        if result["elsewhere"]:
            reasons.append(f"passes in its own notebook, not here: {', '.join(result['elsewhere'])}")
        reasons += result["remarks"]
        return reasons + [f"suspicious: {flag}" for flag in result["flags"]]

    def notes(self, student: str) -> list[str]:
        """Return what a student should know about the points."""
        days = self.results[student]["days_late"]
        when = self.results[student]["when"]
        notes = [f"Handed in on {when:%d %B %Y, %H:%M} UTC."] if self.when(student) else []
        if (many := self.results[student]["versions"]) > 1:
            notes.append(f"{many} versions were handed in; this one counts.")
        notes += [f"Please note: {remark}." for remark in self.results[student]["remarks"]]
        if days:
            lost = round(100 * (1 - self.settings.factor(days)))
            notes.append(f"Late: day {days} after the deadline; {lost} % of the points are lost.")
        for question in self.handout.questions:
            if override := self.overrides.get((student, question.id)):
                points = f"{override.points:g} of {question.points:g} points"
                notes.append(f"{question.answer_id}: {points}, given by a person: {override.reason}")
        return notes
