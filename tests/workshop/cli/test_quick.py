"""``test --quick``: which tests a topic, a lesson or a change needs."""

import subprocess

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.workshop.cli import test as quick

FILES = [
    "tests/conftest.py",
    "tests/test_house.py",
    "tests/test_links.py",
    "tests/core/test_training.py",
    "tests/core/test_training_muon.py",
    "tests/core/test_decoder.py",
    "tests/models/test_waves.py",
    "tests/models/test_constructions_waves.py",
    "tests/models/test_tides.py",
    "tests/workshop/cli/test_run.py",
    "tests/lesson/widgets/test_explorer.py",
    "tests/lesson/widgets/test_frames.py",
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
    if "-k" not in arguments:
        return arguments, []
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
    with pytest.raises(quick.TopicError, match=r"TOPIC = 'stars': .* there is tides \(03-ebb\), waves \(01-waves, 02-"):
        quick.named(["waves", "stars"], root)


def test_a_topic_needs_its_files_and_its_part_of_those_of_all_topics(root):
    files, names = selected(quick.tests_of({"waves"}, root=root))
    assert files == ["tests/models/test_constructions_waves.py", "tests/models/test_waves.py"]
    assert names == ["waves", "01-waves", "02-surf", "test_constructions_waves.py", "test_waves.py"]
    files, names = selected(quick.tests_of({"tides"}, root=root))
    assert files == ["tests/models/test_tides.py", "tests/topics/tides/test_data.py"]
    assert names == ["tides", "03-ebb", "test_tides.py", "test_data.py"]


@pytest.mark.parametrize(
    ("paths", "due"),
    [
        (["companion/samplers/waves.py"], quick.tests_of),
        (["solutions/02-surf/02-surf.ipynb"], quick.tests_of),
        (["companion/published/01-waves.toml"], quick.tests_of),
        (["companion/weights/waves-tall-course.safetensors"], quick.tests_of),
        (["companion/core/training.py"], ["tests/core/test_training.py", "tests/core/test_training_muon.py"]),
        (["companion/core/decoder.py"], ["tests/core/test_decoder.py"]),
        (
            ["companion/lesson/widgets/style.py"],
            ["tests/lesson/widgets/test_explorer.py", "tests/lesson/widgets/test_frames.py"],
        ),
        (["tests/workshop/cli/test_run.py"], ["tests/workshop/cli/test_run.py"]),
        (["README.md"], ["tests/test_links.py"]),
        (["tests/conftest.py"], []),
    ],
)
def test_a_change_needs_the_tests_of_its_topic_or_those_that_mirror_it(root, paths, due):
    files, names = selected(quick.tests_of_changes(paths, root))
    if due is quick.tests_of:
        whole, wanted = selected(quick.tests_of({"waves"}, [quick.HOUSE], root))
        assert (files, names) == (whole, wanted)
    else:
        assert (files, names) == (sorted([*due, quick.HOUSE]), [])


def test_a_topic_and_shared_code_need_both(root):
    changed = ["companion/core/decoder.py", "lessons/03-ebb/03-ebb.ipynb"]
    files, names = selected(quick.tests_of_changes(changed, root))
    assert {"tests/core/test_decoder.py", "tests/models/test_tides.py", quick.HOUSE} <= set(files)
    assert {"tides", "test_decoder.py", "test_house.py"} <= set(names)


def test_what_changed_is_what_git_says(root):
    def git(*command):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *command], cwd=root, check=True, capture_output=True)

    with pytest.raises(quick.TopicError, match="--quick needs a TOPIC or LESSON here"):
        quick.changed_files(root)
    git("init")
    git("add", "tests/conftest.py")
    git("commit", "-m", "One")
    git("add", "tests")
    git("commit", "-m", "Two")
    assert all(path.startswith("solutions/") for path in quick.changed_files(root))
    git("add", ".")
    git("commit", "-m", "Three")
    assert [path for path in quick.changed_files(root) if not path.startswith("solutions/")] == []
    (root / "tests/conftest.py").write_text("import os\n")
    assert quick.changed_files(root) == ["tests/conftest.py"]


def test_the_course_s_own_topics_and_files_are_there():
    assert quick.topics().keys() >= {"attention", "regression", "calibration"}
    assert [path for path in (*quick.ALL_TOPICS, quick.HOUSE) if not (quick.ROOT / path).is_file()] == []
    assert "tests/topics/regression/test_probes.py" in quick.tests_of(quick.named(["02"]))
