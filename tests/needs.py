"""What a test needs of its machine beside Python. Where that is not there, the test is skipped; where `VARIABLE` names
it, the test fails, so that a machine which is said to have it cannot be green without having tested.
"""

import os
import shutil
from importlib.util import find_spec

import pytest

VARIABLE = "COURSE_MUST_HAVE"
# Chrome before Chromium: Ubuntu's is a snap, whose confinement hides the profile that Playwright makes
CHROMIUM = next(filter(None, map(shutil.which, ("google-chrome", "chromium", "chromium-browser", "chrome"))), None)


def no_sandbox() -> str:
    """Return why nothing can be graded in a sandbox here; empty if it can."""
    from companion.workshop.grading.sandbox import bubblewrap

    return bubblewrap.missing()


def no_browser() -> str:
    """Return why no page can be looked at in a browser here; empty if one can."""
    absent = [name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    return "" if CHROMIUM else "no Chromium on PATH (Debian: apt install chromium)"


def no_model() -> str:
    """Return why there is no language model that others trained here; empty if there is."""
    from companion.pretrained.fetching import is_fetched

    return "" if is_fetched("smollm2") else "not on this machine: `python3 -m companion fetch smollm2` brings smollm2"


NEEDS = {"sandbox": no_sandbox, "browser": no_browser, "model": no_model}


def must_have() -> set[str]:
    """Return what `VARIABLE` names. Raises pytest's UsageError for any other word."""
    said = os.environ.get(VARIABLE, "")
    words = {word.strip() for word in said.split(",")} - {""}
    if not words <= set(NEEDS):
        raise pytest.UsageError(f"{VARIABLE} = {said!r}: must be some of {', '.join(NEEDS)}, with commas between them")
    return words


def require(need: str) -> None:
    """Skip the test that runs, or let it fail, if this machine lacks ``need``, one of `NEEDS`."""
    if why := NEEDS[need]():
        if need in must_have():
            pytest.fail(f"{VARIABLE} names {need}: {why}", pytrace=False)
        pytest.skip(f"no {need}: {why}")
