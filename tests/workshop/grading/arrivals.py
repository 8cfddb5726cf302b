"""The ways in which honest hand-ins reach a course: each puts a solved notebook of the small lesson where a student's
belongs, and gives the name under which the table has it. Whoever hands in so has all points.
"""

import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from workshop.grading.small_lesson import NAME, hand_in, handed_in, solved

from companion.workshop.grading.course import lms

OWN = f"{NAME}.ipynb"
DUE = datetime(2026, 11, 1, 12, tzinfo=UTC)
COPIES = ("{} (1).ipynb", "{}-Copy1.ipynb", "Copy of {}.ipynb", "{} (solved).ipynb")
HELPED = "from helpers import step\n@exercises.newton_step\ndef newton_step(M, S):\n    return step(M, S)"
HELPERS = "def step(M, S):\n    return 2 * M - M @ S @ M\n"


def as_it_is(root: Path, name: str, random: Random) -> str:
    hand_in(root, name, solved())
    return name


def as_a_copy(root: Path, name: str, random: Random) -> str:
    """The notebook as it was released lies beside it."""
    hand_in(root, name, handed_in({}))
    hand_in(root, name, solved(), f"{NAME}/{random.choice(COPIES).format(NAME)}")
    return name


def elsewhere(root: Path, name: str, random: Random) -> str:
    """In a folder within the folder, under a name in capitals, or straight under the student's."""
    hand_in(root, name, solved(), random.choice((f"{NAME}/{NAME}/{OWN}", f"{NAME}/{NAME}.IPYNB", OWN, f"05/{OWN}")))
    return name


def in_another_encoding(root: Path, name: str, random: Random) -> str:
    hand_in(root, name, json.dumps(solved()).encode(random.choice(("utf-16", "utf-8-sig"))))
    return name


def with_a_module(root: Path, name: str, random: Random) -> str:
    path = hand_in(root, name, solved(newton_step=HELPED))
    (path.parent / "helpers.py").write_text(HELPERS, encoding="utf-8")
    return name


def by_two_downloads(root: Path, name: str, random: Random) -> str:
    """From an LMS, after the deadline: untouched in the first zip, solved in the second."""
    number, name = random.randint(100, 999), name.strip(".")
    member = random.choice((f"{name}_{number}_assignsubmission_file/{OWN}", f"{name}_{number}_{number + 1}_{OWN}"))
    for days, notebook in ((1, handed_in({})), (random.randint(1, 3), solved())):
        notebook.metadata["draw"] = random.random()  # by which no two are the same file
        archive = root / f"{name}-{days}.zip"
        with zipfile.ZipFile(archive, "w") as zipped:
            when = (DUE + timedelta(days=days)).timetuple()[:6]
            zipped.writestr(zipfile.ZipInfo(member, when), json.dumps(notebook))
        lms.take_in(archive, root / "grading", NAME)
    return f"{name} {number}"


ARRIVALS = (as_it_is, as_a_copy, elsewhere, in_another_encoding, with_a_module, by_two_downloads)
