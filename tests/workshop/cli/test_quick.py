"""``test``: how many run at a time, and with ``--quick`` which tests a topic or a lesson needs."""

import os
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.workshop.cli import test as quick

OF_THE_HOUSE = quick.HOUSE + quick.ALL_TOPICS
ALWAYS = [*(path.rpartition("/")[2] for path in quick.HOUSE), *quick.TOGETHER]
FILES = [
    "tests/conftest.py",
    "tests/core/test_decoder.py",
    "tests/benchmarks/test_waves.py",
    "tests/benchmarks/test_constructions_waves.py",
    "tests/benchmarks/test_tides.py",
    "tests/workshop/cli/test_run.py",
    "tests/topics/tides/test_data.py",
]


@pytest.fixture
def root(tmp_path):
    """A checkout with the topics waves (two lessons) and tides (one), and empty tests."""
    several = "(\n    data,\n    exercises,\n)"
    for name, topic, what in (
        ("01-waves", "waves", "exercises"),
        ("02-surf", "waves", several),
        ("03-ebb", "tides", "data, exercises"),
    ):
        folder = tmp_path / "solutions" / name
        folder.mkdir(parents=True)
        cells = [new_code_cell(f"from companion.topics.{topic} import {what}")]
        nbformat.write(new_notebook(cells=cells), folder / f"{name}.ipynb")
    exercises = tmp_path / "companion/topics/waves/exercises.py"
    exercises.parent.mkdir(parents=True)
    exercises.write_text(
        "@exercise(\n    draw=_draw,\n)\ndef swell(x):\n    return x\n\n\n@summit(1)\ndef crest(x):\n    return x\n"
    )
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def selected(arguments):
    """A topic's own files, and the names that are wanted of the files of all topics; of the house all is."""
    *files, flag, names = arguments
    own, names = files[: -len(OF_THE_HOUSE)], names.split(" or ")
    assert (flag, tuple(files[len(own) :]), names[-len(ALWAYS) :]) == ("-k", OF_THE_HOUSE, ALWAYS)
    return own, names[: -len(ALWAYS)]


def test_a_topic_has_its_lessons(root):
    assert quick.topics(root) == {"waves": ["01-waves", "02-surf"], "tides": ["03-ebb"]}


def test_a_second_notebook_belongs_to_its_lesson(root):
    cell = new_code_cell("from companion.topics.tides import exercises")
    nbformat.write(new_notebook(cells=[cell]), root / "solutions/01-waves/01-waves-further.ipynb")
    assert quick.topics(root) == {"waves": ["01-waves", "02-surf"], "tides": ["01-waves", "03-ebb"]}


@pytest.mark.parametrize(
    ("words", "topics"),
    [(["waves"], {"waves"}), (["02"], {"waves"}), (["surf"], {"waves"}), (["03-ebb", "waves"], {"tides", "waves"})],
)
def test_a_topic_goes_by_its_name_or_by_a_lesson(root, words, topics):
    assert quick.named(words, root) == topics


def test_an_unknown_topic_is_answered_with_what_there_is(root):
    for words, said in ((["waves", "stars"], "TOPIC = 'stars': .* there"), ([], r"which TOPIC\? There")):
        with pytest.raises(quick.TopicError, match=rf"^{said} is tides \(03-ebb\), waves \(01-w"):
            quick.named(words, root)
    nbformat.write(new_notebook(), root / "solutions/03-ebb/03-ebb.ipynb")
    with pytest.raises(
        quick.TopicError, match="TOPIC = '03': 03-ebb belongs to no topic; one of its notebooks must have `from comp"
    ):
        quick.named(["03"], root)


def test_a_topic_needs_its_files_and_its_part_of_those_of_all_topics(root):
    files, names = selected(quick.tests_of({"waves"}, root=root))
    assert files == ["tests/benchmarks/test_constructions_waves.py", "tests/benchmarks/test_waves.py"]
    assert names == ["waves", "01-waves", "02-surf", "swell", "crest", "test_constructions_waves.py", "test_waves.py"]
    files, names = selected(quick.tests_of({"tides"}, root=root))
    assert files == ["tests/benchmarks/test_tides.py", "tests/topics/tides/test_data.py"]
    assert names == ["tides", "03-ebb", "test_tides.py", "test_data.py"]


def test_a_topic_goes_by_its_exercises_whatever_its_lesson_is_called(root):
    (root / "solutions/03-ebb").rename(root / "solutions/03-moon-and-sea")
    (root / "solutions/03-moon-and-sea/03-ebb.ipynb").rename(root / "solutions/03-moon-and-sea/03-moon-and-sea.ipynb")
    assert quick.named(["03"], root) == {"tides"}
    assert selected(quick.tests_of({"tides"}, root=root))[1][:2] == ["tides", "03-moon-and-sea"]


def test_the_course_s_own_topics_and_files_are_there():
    assert quick.topics().keys() >= {"attention", "regression", "calibration"}
    assert [path for path in OF_THE_HOUSE if not (quick.ROOT / path).is_file()] == []
    text = "".join((quick.ROOT / path).read_text(encoding="utf-8") for path in quick.ALL_TOPICS)
    assert [name for name in quick.TOGETHER if f"def {name}(" not in text] == []
    assert "tests/topics/regression/test_probes.py" in quick.tests_of(quick.named(["02"]))


@pytest.mark.parametrize(("cores", "gib", "many"), [(2, 16, 2), (4, 15.6, 4), (3, 7, 2), (64, 4, 2), (64, 500, 4)])
def test_a_worker_has_a_core_and_memory(monkeypatch, cores, gib, many):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=int(gib * 2**30)))
    assert quick.workers() == many
