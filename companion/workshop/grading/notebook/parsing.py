"""Reads notebooks in a process of its own: a notebook that breaks or stalls a parser breaks that process alone."""

from functools import lru_cache, partial

from companion.workshop.grading.alone import Ended, alone
from companion.workshop.grading.notebook.questions import Handout
from companion.workshop.grading.notebook.submissions import Cell, Submission, Unreadable, assemble, cells

SECONDS = 30
MEMORY = 2 << 30


def parsed(data: bytes, handout: Handout) -> Submission:
    """Read the submission in a notebook file. Raises Unreadable, also where it cannot be read within the limits."""
    try:
        return alone(_read, data, handout, seconds=SECONDS, memory=MEMORY, prepare=partial(prepare, handout))
    except (Ended, TimeoutError, MemoryError) as error:
        raise Unreadable(f"it cannot be read within {SECONDS} seconds and {MEMORY >> 30} GiB ({error})") from None


def _read(data: bytes, handout: Handout) -> Submission:
    return assemble(handout, cells(data))


@lru_cache(1)
def prepare(handout: Handout) -> None:
    """Read the lesson's own cells, in the process from which those that read are forked: `syntax` remembers what it has
    found in a cell, and most cells of a hand-in are the lesson's.
    """
    sources = *handout.code, *handout.solutions.values()
    assemble(handout, [Cell("code", source) for source in sources])
