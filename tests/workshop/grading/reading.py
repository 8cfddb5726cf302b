"""The small lesson as the grader knows it, and its submissions as they are read: without a sandbox."""

import functools
import json
import tempfile
from pathlib import Path

import nbformat
from workshop.grading.small_lesson import NAME, handed_in, solution

from companion.workshop.grading.notebook.handout import handout
from companion.workshop.grading.notebook.submissions import assemble, cells


@functools.cache
def small_handout():
    """The small lesson's questions."""
    with tempfile.TemporaryDirectory() as folder:
        source, released = Path(folder, f"{NAME}.ipynb"), Path(folder, "released.ipynb")
        nbformat.write(solution(), source)
        nbformat.write(handed_in({}), released)
        return handout(source, released)


def assembled(notebook, files=None):
    """The submission in a notebook, and in the files beside it, read in this very process."""
    return assemble(small_handout(), cells(json.dumps(notebook).encode()), files=files)
