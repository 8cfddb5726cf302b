"""What several files of these tests share. Imports stand inside: nothing of the companion is imported before types are
checked in it (`tests/conftest.py`).
"""

import pytest


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout; everything that is handed in as anything but a stub is right."""
    from workshop.grading.handing_in import without_sandbox

    return without_sandbox(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def process():
    """One for all, in which a whole notebook can be run: what is tested with it does not end it."""
    from workshop.grading.sharing import PATIENT, one_process

    with one_process(PATIENT, course=True) as process:
        yield process


@pytest.fixture
def shared(process):
    """All that is marked is marked in that one."""
    from workshop.grading.sharing import all_in

    with all_in(process):
        yield
