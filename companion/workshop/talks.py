"""The claims of the five talks that the course began with: where each stands in the course, and what became of it."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from companion.lesson.claims import PUBLISHED
from companion.lesson.verdicts import VERDICTS

SEVERAL, OWN, SHOWN, LEFT_OUT = "several verdicts", "the course's own", "shown, not judged", "not covered"
OUTCOMES = (*VERDICTS, SEVERAL, OWN, SHOWN, LEFT_OUT)


@dataclass(frozen=True)
class TalkClaim:
    """What a talk says, in our words; the numbers of the ``lessons`` that show it; their ``rows`` on it, such as
    ``07:hallucination``; and a ``note`` on what they do not show, or why none does.
    """

    id: str
    claim: str
    lessons: tuple[str, ...]
    rows: tuple[str, ...]
    note: str

    def outcome(self, verdicts: Mapping[str, str]) -> str:
        """Return which of `OUTCOMES` became of it, from the verdict of each row, empty for the course's own."""
        if judged := self.judged(verdicts):
            return judged[0] if len(judged) == 1 else SEVERAL
        if self.rows:
            return OWN
        return SHOWN if self.lessons else LEFT_OUT

    def judged(self, verdicts: Mapping[str, str]) -> list[str]:
        """Return the different verdicts of its rows."""
        found = {verdicts.get(row) for row in self.rows}
        return [verdict for verdict in VERDICTS if verdict in found]


def talks() -> dict[str, list[TalkClaim]]:
    """Return the claims of each talk, by its key in the bibliography."""
    found = {}
    for path in sorted((PUBLISHED / "talks").glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            found[path.stem] = [
                TalkClaim(
                    row["id"], row["claim"], tuple(row["lessons"].split()), tuple(row["rows"].split()), row["note"]
                )
                for row in csv.DictReader(file)
            ]
    return found


def verdicts_of(report: dict) -> dict[str, str]:
    """Return the verdict of each claim in a run's report, by its row: number of the lesson, colon, id of the claim."""
    return {
        f"{entry['lesson'][:2]}:{claim['id']}": claim["verdict"]
        for entry in report["lessons"]
        for claim in entry["claims"]
    }


def outcomes_in_all(claims: Sequence[TalkClaim], verdicts: Mapping[str, str]) -> str:
    """Count what became of the claims: "Of 3 claims: 2 reproduced; 1 not covered."."""
    counts = Counter(claim.outcome(verdicts) for claim in claims)
    told = "; ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    return f"Of {len(claims)} claims: {told}."
