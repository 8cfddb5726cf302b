"""What is said of training has its budget beside it, and is measured at three times that budget, or on a list of what
that would cost.
"""

import ast
import csv
import re
from pathlib import Path

import nbformat
import pytest
from loops import LOOPS, needed
from sources import LESSONS

from companion.core.checkpoints import shipped, weights_path
from companion.core.measuring import look_up, measurements
from companion.core.recipe import recipe, times
from companion.lesson.claims import statements
from companion.workshop.cli.evidence import LONGER, table_of_runs
from companion.workshop.site.again import MEASURES, rests_on

OPEN = Path(__file__).parent / "open-budgets.csv"
CLAIMS = {(name, id): claim for name in LESSONS for id, claim in statements(name).items()}
ON_TRAINING = {key for key, claim in CLAIMS.items() if claim.trained}
BY_RUN = {(row["lesson"], row["claim"]) for row in table_of_runs(path=LONGER) if int(row["times"]) >= 3}
BUDGETS = {name for name in measurements() if name.endswith("-budgets")}


@pytest.mark.parametrize("key", CLAIMS, ids="-".join)
def test_a_claim_on_what_was_trained_says_for_how_long(key):
    evidence = CLAIMS[key].evidence
    rests = evidence and (evidence.checkpoint or any(list(look_up(name).recipes("course")) for name in evidence.stored))
    assert CLAIMS[key].trained or not rests


@pytest.mark.parametrize("key", [key for key in CLAIMS if CLAIMS[key].evidence and CLAIMS[key].trained], ids="-".join)
def test_that_is_what_its_checkpoints_recipes_say(key):
    due = {recipe(name).schedule.steps for name in CLAIMS[key].evidence.checkpoint}
    assert due <= {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", CLAIMS[key].trained)}


def test_it_is_measured_at_three_times_as_long_or_it_is_written_down_what_that_costs():
    with OPEN.open(newline="", encoding="utf-8") as file:
        left = {(row["lesson"], row["claim"]): float(row["minutes"]) for row in csv.DictReader(file)}
    by_table = {
        key
        for key, claim in CLAIMS.items()
        if claim.evidence
        and any(BUDGETS.intersection(each.stored) for each in (claim.evidence, *getattr(claim.evidence, "beside", ())))
    }
    for name, lesson in LESSONS.items():
        for path in lesson.notebooks:
            rests = rests_on(nbformat.read(path, as_version=4), BUDGETS)
            by_table |= {(name, id) for id, tables in rests.items() if tables and not CLAIMS[name, id].evidence}
    assert set(left) == ON_TRAINING - BY_RUN - by_table and BY_RUN <= ON_TRAINING
    assert all(minutes > 0 for minutes in left.values())


@pytest.mark.parametrize("name", LOOPS)
def test_the_loops_of_a_notebook_that_are_lengthened_are_there(name):
    claims, edits = LOOPS[name]
    (path,) = (path for path in LESSONS[name.removesuffix("-further")].notebooks if path.stem == name)
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    run = "\n".join(needed(cells, claims))
    assert set(claims) <= set(MEASURES.findall(run))
    for short, long in edits.items():
        assert run.count(short) == 1 and "TIMES * " in long
        run = run.replace(short, long)
    ast.parse(run)


def test_only_what_a_claim_rests_on_runs_again():
    cells = [
        "import math\nclaims = Claims()",
        "steps, figure = 3, 1",
        "def fit(start):\n    found = start + steps\n    return found",
        "found = other(figure)",
        "kept = {}\nfor start in (1, 2):\n    kept[start] = fit(start)",
        "figure = draw(kept)\nprint(figure)",
        'figure = draw(found)\nclaims.record("another", run=figure)',
        'figure = draw(kept)\nclaims.record("one", run=figure)',
    ]
    assert needed(cells, ("one",)) == [cells[place] for place in (0, 1, 2, 4, 7)]
    assert needed(cells, ("another",)) == [cells[place] for place in (0, 1, 3, 6)]


def test_where_all_is_trained_longer_recipes_checkpoints_and_tables_are(monkeypatch, tmp_path):
    short = recipe("attention-two-layers", "smoke")
    monkeypatch.setenv("COURSE_TIMES", "3")
    for module, folder in (("checkpoints", "weights"), ("measuring", "measured")):
        monkeypatch.setattr(f"companion.core.{module}.{folder.upper()}", tmp_path / "companion" / folder)
    assert recipe("attention-two-layers", "smoke").schedule.steps == 3 * short.schedule.steps
    path = weights_path("attention-two-layers", "smoke", 1)
    assert path.parent == tmp_path / "build/weights-3-times" and not path.is_file()
    _, header = shipped("attention-two-layers", "smoke", 1)
    made = path.stat().st_mtime_ns
    assert header.steps == 3 * short.schedule.steps and shipped("attention-two-layers", "smoke", 1)[1] == header
    assert path.stat().st_mtime_ns == made
    assert look_up("attention-wide-layers").path == tmp_path / "build/measured-3-times/attention-wide-layers.csv"


@pytest.mark.parametrize("told", ["0", "-1", "2.5", "three", ""])
def test_a_wrong_number_of_times_is_named(monkeypatch, told):
    monkeypatch.setenv("COURSE_TIMES", told)
    with pytest.raises(ValueError, match=r"COURSE_TIMES = .*: must be a whole number above 0"):
        times()
