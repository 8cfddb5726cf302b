"""``test --quick``: which tests a topic or a lesson needs."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.workshop.cli import test as quick

FILES = [
    "tests/conftest.py",
    "tests/core/test_decoder.py",
    "tests/models/test_waves.py",
    "tests/models/test_constructions_waves.py",
    "tests/models/test_tides.py",
    "tests/workshop/cli/test_run.py",
    "tests/topics/tides/test_data.py",
]


@pytest.fixture
def root(tmp_path):
    """A checkout with the topics waves (two lessons) and tides (one), and empty tests."""
    for name, topic in (("01-waves", "waves"), ("02-surf", "waves"), ("03-ebb", "tides")):
        folder = tmp_path / "solutions" / name
        folder.mkdir(parents=True)
        cells = [new_code_cell(f"from companion.topics.{topic} import exercises")]
        nbformat.write(new_notebook(cells=cells), folder / f"{name}.ipynb")
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def selected(arguments):
    """The whole files, and the names that are wanted of the files of all topics."""
    *files, flag, names = arguments
    assert flag == "-k"
    assert tuple(files[-len(quick.ALL_TOPICS) :]) == quick.ALL_TOPICS
    return files[: -len(quick.ALL_TOPICS)], names.split(" or ")


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
    for words, named in ((["waves", "stars"], "stars"), ([], "")):
        with pytest.raises(quick.TopicError, match=rf"TOPIC = '{named}': .* there is tides \(03-ebb\), waves \(01-w"):
            quick.named(words, root)


def test_a_topic_needs_its_files_and_its_part_of_those_of_all_topics(root):
    files, names = selected(quick.tests_of({"waves"}, root=root))
    assert files == ["tests/models/test_constructions_waves.py", "tests/models/test_waves.py"]
    assert names == ["waves", "01-waves", "02-surf", "test_constructions_waves.py", "test_waves.py"]
    files, names = selected(quick.tests_of({"tides"}, root=root))
    assert files == ["tests/models/test_tides.py", "tests/topics/tides/test_data.py"]
    assert names == ["tides", "03-ebb", "test_tides.py", "test_data.py"]


def test_the_course_s_own_topics_and_files_are_there():
    assert quick.topics().keys() >= {"attention", "regression", "calibration"}
    assert [path for path in quick.ALL_TOPICS if not (quick.ROOT / path).is_file()] == []
    assert "tests/topics/regression/test_probes.py" in quick.tests_of(quick.named(["02"]))
