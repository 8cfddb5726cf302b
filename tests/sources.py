"""What the evidence for a claim says, beside what runs measured of it."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from companion.lesson.claims import by_size, statements
from companion.lesson.verdicts import Construction, Experiment
from companion.workshop.cli.lessons import all_lessons

FIELDS = "ours", "interval", "fit", "rival", "exact", "fails"
LESSONS = {lesson.name: lesson for lesson in all_lessons()}
EVIDENCE = {
    (lesson, id): evidence for lesson in LESSONS for id, evidence in by_size(statements(lesson)).items()
}  # of a size beside another by "id/1"


def fields(claims: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Each field of measured numbers that the evidence of these has."""
    return [(*claim, name) for claim in claims for name in FIELDS if getattr(EVIDENCE[claim], name, None)]


def invented(evidence: Construction | Experiment, name: str) -> Construction | Experiment:
    """The same evidence with numbers from nowhere in one field."""
    value = getattr(evidence, name)
    return replace(evidence, **{name: not value if isinstance(value, bool) else tuple(x + abs(x) + 1 for x in value)})


def differences(evidence: Construction | Experiment, measured: dict[str, list[float]]) -> list[str]:
    """Each number of an evidence that is not what was measured, to the digits in which it is written."""
    found = []
    for name in FIELDS:
        said, seen = _said(evidence, name), measured.get(name, [])
        unit = min((10.0 ** Decimal(repr(number)).as_tuple().exponent for number in said), default=0)
        if said and (len(said) != len(seen) or any(abs(a - b) > 0.51 * unit for a, b in zip(said, seen, strict=True))):
            found.append(f"{name} = {said}: runs measured {seen}")
    return found


def differences_of_run(lesson: str, measured: dict[str, dict[str, list[float]]]) -> list[str]:
    """Each number of a run of seed 0 that is farther from the evidence than another machine's rounding may take it."""
    found, known = [], by_size(statements(lesson))
    for id, numbers in measured.items():
        for name, seen in numbers.items():
            said = _said(known[id], name)
            low, high = _said(known[id], "interval") or (0, 0)
            near = max(0.1 * max(map(abs, said), default=0), (high - low) / 2, 1e-3)
            if not all(abs(a - b) <= near for a, b in zip(said, seen, strict=False)):
                found.append(f"{id}: {name} = {said}: this run measured {seen}")
    return found


def by_claim(rows: list[dict[str, str]]) -> dict[tuple[str, str], dict[str, list[float]]]:
    """What the table of runs has of each claim of each lesson: of several seeds, one after the other."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        own = found.setdefault((row["lesson"], row["claim"]), {})
        for name in FIELDS:
            if row[name]:
                own[name] = own.get(name, []) + [float(number) for number in row[name].split()]
    return found


def _said(evidence: Construction | Experiment, name: str) -> list[float]:
    """A field of an evidence as numbers; true is 1."""
    value = getattr(evidence, name, None)
    return [] if value is None else list(value) if isinstance(value, tuple) else [int(value)]
