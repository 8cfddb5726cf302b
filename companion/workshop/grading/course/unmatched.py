"""What the instructor's files say of students and lessons that there are not. Nothing comes of it, so it is named."""

from collections.abc import Collection
from difflib import get_close_matches

from companion.workshop.grading.course.settings import Settings
from companion.workshop.grading.course.tables import Override


def unmatched(
    settings: Settings,
    overrides: dict[tuple[str, str], Override],
    lesson: str,
    *,
    lessons: Collection[str],
    handed_in: Collection[str],
    roster: Collection[str],
) -> list[str]:
    """Return a sentence for each entry of ``settings`` and of the ``overrides`` of a ``lesson`` that matches nobody.

    ``lessons``: of the course, by their whole names.
    ``handed_in``: the students who have handed in this lesson.
    ``roster``: the students on the roster. Where it is empty, of the extensions those for this lesson are looked at,
    for who is going to hand in another one is not known.
    """
    students = {*handed_in, *roster}
    named = [("[deadlines]", name) for name in settings.deadlines]
    named += [("[assignments]", name) for name in settings.assignments]
    named += [(f"[extensions] of {student}", name) for student, own in settings.extensions.items() for name in own]
    said = [f"settings.toml, {where}: {_none('lesson', name, lessons)}" for where, name in named if name not in lessons]
    for student, own in settings.extensions.items():
        if student not in students and (roster or lesson in own):
            said.append(f"settings.toml, [extensions]: {_none('student', student, students)}")
    for student in dict.fromkeys(student for student, _ in overrides):
        if student not in students:
            said.append(f"overrides.csv: {_none('student', student, students)}")
    return said


def _none(kind: str, name: str, known: Collection[str]) -> str:
    """That there is none of this ``name``, and which names are like it: what begins so, else what is written alike."""
    by_case = {each.casefold(): each for each in sorted(known)}
    near = [each for key, each in by_case.items() if name and key.startswith(f"{name.casefold()}-")]
    near = near or [by_case[key] for key in get_close_matches(name.casefold(), by_case)]
    return f"there is no {kind} {name!r}" + (f"; there is {', '.join(near)}" if near else "")
