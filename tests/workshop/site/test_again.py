"""What a claim rests on, read off a notebook's code; and how that is made again."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.core.checkpoints import weights_path
from companion.core.measuring import look_up
from companion.workshop.cli.lessons import all_lessons
from companion.workshop.site.again import commands, rests_on

ROOT = Path(__file__).resolve().parents[3]
NAMES = {"regression-lstm", "regression-lstm-4", "regression-lstm-8", "regression-large", "facts-capacity-16", "facts"}


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
        ('%magic\nmodel = shipped("facts")', []),
    ],
)
def test_a_claim_rests_on_what_flows_into_its_figure(code, names):
    assert rests(code, 'claims.saw("it", f"{model}")')["it"] == names


def test_each_command_makes_again_what_is_there():
    found = commands(ROOT / "companion")
    assert found["bigrams-two-layers"] == "train bigrams-two-layers --scale paper"
    assert found["regression-isotropic"] == "train regression-isotropic"
    assert found["attention-two-layers"] == "train attention-two-layers --seed 1 (to 2)"
    for name, command in found.items():
        verb, named, *options = command.split()
        assert named == name and verb in ("train", "measure")
        if verb == "measure":
            assert look_up(name).path.is_file()
        else:
            scale = options[1] if "--scale" in options else "course"
            seed = int(options[options.index("--seed") + 1]) if "--seed" in options else 0
            assert weights_path(name, scale, seed).is_file()


def test_every_claim_of_a_shipped_checkpoint_or_a_table_names_it():
    names = set(commands(ROOT / "companion"))
    [lesson] = [lesson for lesson in all_lessons(ROOT) if lesson.name.startswith("02")]
    found = rests_on(nbformat.read(lesson.source, as_version=4), names)
    assert found["newton-linear-isotropic"] == ["regression-isotropic"]
    assert found["filter-is-not-newtons"] == ["regression-ill-conditioned"]
