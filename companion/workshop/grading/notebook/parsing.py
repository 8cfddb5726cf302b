"""Reads notebooks in a process of its own: a notebook that breaks or stalls a parser breaks that process alone."""

from companion.workshop.grading.alone import Ended, alone
from companion.workshop.grading.notebook.questions import Handout
from companion.workshop.grading.notebook.submissions import Submission, Unreadable, assemble, cells

SECONDS = 30
MEMORY = 2 << 30


def parsed(data: bytes, handout: Handout) -> Submission:
    """Read the submission in a notebook file. Raises Unreadable, also where it cannot be read within the limits."""
    try:
        return alone(_read, data, handout, seconds=SECONDS, memory=MEMORY)
    except (Ended, TimeoutError, MemoryError) as error:
        raise Unreadable(f"it cannot be read within {SECONDS} seconds and {MEMORY >> 30} GiB ({error})") from None


def _read(data: bytes, handout: Handout) -> Submission:
    return assemble(handout, cells(data))
