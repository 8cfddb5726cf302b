"""The class's points: what checks gave, what persons gave, what lateness cost."""

import hmac
import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from companion.workshop.grading.course.names import file_name
from companion.workshop.grading.course.settings import Settings
from companion.workshop.grading.course.tables import Override
from companion.workshop.grading.notebook.handout import Handout

Scores = dict[str, float | None]  # by question; None where a person has not marked it yet


@dataclass
class Book:
    """One lesson's results by student, and all that makes points of them. ``persons`` gives, by the name in the
    gradebook and question, the points that a person gave there and extra credit.
    """

    handout: Handout
    settings: Settings
    roster: dict[str, dict[str, str]]
    overrides: dict[tuple[str, str], Override]
    key: str = ""
    persons: dict[str, dict[str, tuple[float | None, float]]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)  # on the instructor's own files
    written: float = -math.inf  # when grades.csv was

    def label(self, student: str) -> str:
        """Return the name under which a student is marked: a pseudonym, if marking is anonymous."""
        if not self.settings.anonymous:
            return student
        return "participant-" + hmac.new(self.key.encode(), student.encode(), "sha256").hexdigest()[:8]

    def everybody(self) -> list[str]:
        """Return all students, also those on the roster who handed in nothing."""
        return sorted({*self.results, *self.roster})

    def scores(self, student: str) -> Scores:
        """Points by question, before lateness."""
        from_persons = self.persons.get(file_name(self.label(student)), {})
        return {question.id: self._score(student, question.id, from_persons) for question in self.handout.questions}

    def _score(self, student: str, name: str, from_persons: dict) -> float | None:
        if (student, name) in self.overrides:
            return self.overrides[student, name].points
        manual, extra = from_persons.get(name, (None, 0.0))
        if manual is not None:
            return manual + extra
        result = self.results.get(student)
        if result is None:
            return 0.0
        if name in result["exercises"]:
            return result["exercises"][name]["points"] + extra
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
        ended = [(name, entry["outcome"]) for name, entry in result["exercises"].items()]
        if ended := [f"{name} {outcome}" for name, outcome in ended if outcome in ("stopped", "crashed")]:
            reasons.append(", ".join(ended))
        if older := [name for name, entry in result["exercises"].items() if entry["outcome"] == "older"]:
            reasons.append(f"made from an older version, which has these otherwise: {', '.join(older)} (overrides.csv)")
        if result["elsewhere"]:
            reasons.append(f"passes in its own notebook, not here: {', '.join(result['elsewhere'])}")
        return reasons + [f"suspicious: {flag}" for flag in result["flags"]]

    def notes(self, student: str) -> list[str]:
        """Return what a student should know about the points."""
        days = self.results[student]["days_late"]
        when = self.results[student]["when"]
        notes = [f"Handed in on {when:%d %B %Y, %H:%M} UTC."] if self.when(student) else []
        if days:
            lost = round(100 * (1 - self.settings.factor(days)))
            notes.append(f"Late: day {days} after the deadline; {lost} % of the points are lost.")
        for question in self.handout.questions:
            if override := self.overrides.get((student, question.id)):
                points = f"{override.points:g} of {question.points:g} points"
                notes.append(f"{question.answer_id}: {points}, given by a person: {override.reason}")
        return notes
