"""What a claim rests on, read off a notebook's code; and how that is made again."""

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.core.checkpoints import weights_path
from companion.core.measuring import look_up
from companion.lesson.claims import statements
from companion.workshop.cli.lessons import all_lessons
from companion.workshop.site.again import commands, rests_on

ROOT = Path(__file__).resolve().parents[3]
NAMES = {"regression-lstm", "regression-lstm-4", "regression-lstm-8", "regression-large", "facts-capacity-16", "facts"}


@pytest.fixture(scope="module")
def made() -> dict[str, list[str]]:
    """The commands of the course."""
    return commands(ROOT / "companion")


def rests(*cells: str) -> dict[str, list[str]]:
    return rests_on(new_notebook(cells=[new_code_cell(cell) for cell in cells]), NAMES)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('model = shipped("regression-lstm")', ["regression-lstm"]),
        ('other = shipped("regression-lstm")\nmodel = 1', []),
        ('first = shipped("regression-lstm")\nmodel = first(xs)', ["regression-lstm"]),
        ('def model():\n    return shipped("regression-large")', ["regression-large"]),
        (
            'model = []\nfor n in (4, 8):\n    model.append(shipped(f"regression-lstm-{n}"))',
            ["regression-lstm-4", "regression-lstm-8"],
        ),
        ('model = {}\nmodel[1] = shipped("facts")', ["facts"]),
        ('model = shipped("facts")\nmodel = shipped("regression-large")', ["regression-large"]),
        ('model = 1\nmodel += shipped("facts")', ["facts"]),
        (
            "from companion.topics.facts.recipes import CAPACITY\n"
            "model = [shipped(f'facts-capacity-{d}') for d in CAPACITY]",
            ["facts-capacity-16"],
        ),
        ('import plt\nplt.plot(shipped("facts"))\nmodel = plt.gca()', []),
        ('claims.saw("other", shipped("facts"))\nmodel = 1', []),
        ('rows = [name for name in ("facts", "x")]\nmodel = [name for name in rows]', ["facts"]),
        ('[name for name in ("facts", "x")]\nmodel = [name for name in others]', []),
        ("model = shipped('facts')\nfor model in (1, 2):\n    model = 1\nmodel = model", []),
        ('found = {}\nfor d in (1,):\n    found.setdefault(d, []).append(shipped("facts"))\nmodel = found', ["facts"]),
        ('with no_grad():\n    model = shipped("facts")\n    model = 1', []),
        ('%magic\nmodel = shipped("facts")', []),
    ],
)
def test_a_claim_rests_on_what_flows_into_its_figure(code, names):
    assert rests(code, 'claims.saw("it", f"{model}")')["it"] == names


def test_each_command_makes_again_what_is_there(made):
    assert made["bigrams-two-layers"] == ["train bigrams-two-layers --scale paper"]
    assert made["regression-isotropic"] == ["train regression-isotropic"]
    assert made["attention-two-layers"] == ["train attention-two-layers --seed 1 (to 2)"]
    assert made["regression-lstms-at-ten"] == ["measure regression-lstms-at-ten"], "it trains its own"
    assert made["addition-cuts"] == ["train addition-filters --seed 0 (to 2)", "measure addition-cuts"]
    for name, listed in made.items():
        *needed, (verb, named, *options) = (command.split() for command in listed)
        assert named == name and verb in ("train", "measure")
        fetched = [words[1] for words in needed if words[0] == "fetch"]
        assert fetched == (list(look_up(name).models) if verb == "measure" else [])
        assert all([" ".join(words)] == made[words[1]] for words in needed[len(fetched) :])
        if verb == "measure":
            assert look_up(name).path.is_file()
        else:
            scale = options[1] if "--scale" in options else "course"
            seed = int(options[options.index("--seed") + 1]) if "--seed" in options else 0
            assert weights_path(name, scale, seed).is_file()


@pytest.mark.parametrize("lesson", all_lessons(ROOT), ids=lambda lesson: lesson.name)
def test_every_figure_of_a_checkpoint_names_what_makes_it_again(lesson, made):
    for path in lesson.notebooks:
        notebook = nbformat.read(path, as_version=4)
        rests = rests_on(notebook, set(made))
        for call in calls("record", notebook):
            id = call.args[0].value
            shipped = any(keyword.arg == "checkpoint" for keyword in call.keywords)
            assert not shipped or rests[id], id


@pytest.mark.parametrize("lesson", all_lessons(ROOT), ids=lambda lesson: lesson.name)
def test_what_evidence_is_stored_in_is_there(lesson):
    for id, claim in statements(lesson.name).items():
        for name in getattr(claim.evidence, "stored", ()):
            assert look_up(name).path.is_file(), id


@pytest.mark.parametrize("lesson", all_lessons(ROOT), ids=lambda lesson: lesson.name)
def test_what_a_lesson_calls_loads_nothing_that_its_own_code_does_not_name(lesson):
    """Only then does `rests_on` see every checkpoint and table."""
    for path in lesson.notebooks:
        notebook = nbformat.read(path, as_version=4)
        names = {name for cell in notebook.cells if cell.cell_type == "code" for name in imported(cell.source)}
        for name in names:
            found = pkgutil.resolve_name(name)
            for each in vars(found).values() if isinstance(found, ModuleType) else [found]:
                code = getattr(inspect.unwrap(each) if callable(each) else each, "__code__", None)
                assert not code or not {"shipped", "measured_table"} & set(code.co_names), f"{name}: {each}"


def calls(name: str, notebook) -> Iterator[ast.Call]:
    """The calls of ``claims.<name>`` in a notebook."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == f"claims.{name}":
                    yield node


def imported(source: str) -> Iterator[str]:
    """The dotted names of what a cell imports from the topics."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("companion.topics"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
