"""The table of what runs measured: a run takes the place of the one before, and another seed adds its own networks."""

from companion.lesson.claims import statements
from companion.workshop.cli.evidence import BUDGET, LONGER, add, put, table_of_runs

LESSON = "01-attention-basics"
SEEDS, CONSTRUCTION = "keys-carry-it", "trigram"  # an experiment of three seeds, a theorem


def entry(seed: int, **numbers: dict) -> dict:
    measured = {SEEDS: {"ours": [0.5 + seed]}, CONSTRUCTION: {"exact": [1.0], "fails": [0.0]}}
    return {"lesson": LESSON, "seed": seed, "evidence": measured | numbers}


def rows(root):
    return {(row["claim"], row["seed"]): (row["ours"], row["exact"], row["fails"]) for row in table_of_runs(root)}


def test_a_run_takes_the_place_of_the_one_before(tmp_path):
    (tmp_path / "tests/measured").mkdir(parents=True)
    assert table_of_runs(tmp_path) == []
    assert len(statements(LESSON)[SEEDS].evidence.ours) == 3
    add([entry(0)], tmp_path)
    first = {(SEEDS, "0"): ("0.5", "", ""), (CONSTRUCTION, "0"): ("", "1", "0")}
    assert rows(tmp_path) == first
    add([entry(1)], tmp_path)
    assert rows(tmp_path) == first | {(SEEDS, "1"): ("1.5", "", "")}, "only what is one of several seeds"
    add([entry(0, **{SEEDS: {"ours": [0.25, 1e-9]}})], tmp_path)
    assert rows(tmp_path)[SEEDS, "0"] == ("0.25 1e-09", "", "")
    assert rows(tmp_path)[SEEDS, "1"] == ("1.5", "", "")


def test_a_longer_run_leaves_what_it_cannot_lengthen(tmp_path, monkeypatch):
    (tmp_path / "tests/measured").mkdir(parents=True)
    monkeypatch.setenv("COURSE_TIMES", "3")
    of_recipes, of_loops = "looks-after-a-match", SEEDS
    row = dict.fromkeys(BUDGET, "") | {"lesson": LESSON, "times": "3", "seed": "0", "run": "before"}
    put([row | {"claim": of_recipes}, row | {"claim": of_loops}], LONGER, BUDGET, tmp_path)
    figures = {"expected": {"run": "as expected"}, "checkpoint": "-", "run": "now"}
    claims = [figures | {"id": id} for id in (of_recipes, of_loops)]
    add([{"lesson": LESSON, "seed": 0, "claims": claims}], tmp_path)
    found = {row["claim"]: row["run"] for row in table_of_runs(tmp_path, LONGER)}
    assert found == {of_recipes: "now", of_loops: "before"}
