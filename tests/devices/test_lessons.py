"""The lessons, solved, at smoke scale, with another device than the CPU as the one that training takes."""

import os
import warnings

import nbformat
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

import companion.core.checkpoints  # before `pick_device` is another: what is shipped stays on the CPU
import companion.core.recipe
import companion.core.training
from companion.workshop.cli.lessons import all_lessons

pytestmark = [
    pytest.mark.types_unchecked,
    pytest.mark.skipif("COURSE_DEVICES" not in os.environ, reason="minutes long: weekly, with COURSE_DEVICES=1"),
]


@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)
def test_a_lesson_runs_to_its_end(lesson, device, monkeypatch):
    for module in (companion.core.training, companion.core.recipe):
        monkeypatch.setattr(module, "pick_device", lambda *_, **__: device)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(lesson.source.parent)
    shell = InteractiveShell()
    for number, cell in enumerate(nbformat.read(lesson.source, as_version=4).cells):
        source = cell.source
        if "parameters" in cell.metadata.get("tags", []):
            source = source.replace('"course"', '"smoke"')
        if cell.cell_type == "code":
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                done = shell.run_cell(source, store_history=False)
            assert done.success, f"cell {number}: {done.error_before_exec or done.error_in_exec!r}\n{source}"
    assert torch.empty(0).device.type == "cpu"
