"""The parts of the README that a command writes, each between its marks."""

import re
from pathlib import Path

from companion.core.files import atomic_write
from companion.workshop.cli import launch
from companion.workshop.cli.lessons import Lesson, cards


def put_part(readme: Path, name: str, text: str, *, write: bool = True) -> bool:
    """Put a text between ``<!-- name -->`` and ``<!-- /name -->``, and return whether another one was there. Raises
    ValueError where there are no such marks.

    ``readme``: the file.
    ``name``: of the part.
    ``text``: what it is to say.
    ``write``: whether it is put there, or only compared.
    """
    before = readme.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    part = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    if not part.search(before):
        raise ValueError(f"{readme}: has no {start} … {end} to put the {name} in")
    after = part.sub(lambda _: f"{start}\n{text}\n{end}", before)
    if write and after != before:
        atomic_write(readme, after)
    return after != before


def table(lessons: list[Lesson], repository: str) -> str:
    """Return ``lessons`` as `cards`; above them, if the course has a ``repository``, badges that open the first."""
    opens = launch.places(repository, f"lessons/{lessons[0].path}")
    badges = [f"[![Open in {name}]({launch.BADGES[name]})]({address})" for name, address in opens.items()]
    if not badges:
        return cards(lessons, "lessons/")
    first = f"Lesson {lessons[0].name[:2]} without installing anything: {' '.join(badges)}"
    return f"{first}\n\n{cards(lessons, 'lessons/')}"
